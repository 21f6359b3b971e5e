//! What a sender knows of its path, and the events that it tells its parts.
//!
//! The parts of a connection never see the connection itself. They see these structs, so a field can be added without touching any
//! of them. Positions are 64-bit stream positions (see [`crate::seq`]), lengths are octets.

use crate::choices;
use crate::segment::{Hop, Options, Report, Wave};
use crate::time::{Duration, Instant};

/// The sender's view of the path at the moment of an event.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Path {
    /// The time of the event.
    pub now: Instant,
    /// Smoothed round-trip time (RFC 6298); `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Round-trip time variation (RFC 6298).
    pub rttvar: Duration,
    /// The retransmission timeout without back-off.
    pub rto: Duration,
    /// The most recent round-trip time sample.
    pub latest_rtt: Option<Duration>,
    /// The smallest sample of the connection.
    pub min_rtt: Option<Duration>,
    /// The largest sample of the connection.
    pub max_rtt: Option<Duration>,
    /// Congestion window in octets.
    pub cwnd: u64,
    /// Slow-start threshold in octets.
    pub ssthresh: u64,
    /// `SND.NXT - SND.UNA` in octets.
    pub flight: u64,
    /// Octets believed to be in the network (RFC 6675 pipe).
    pub pipe: u64,
    /// Payload of a full segment in octets (SMSS less the options that every segment carries).
    pub mss: u32,
    /// Octets delivered since the connection began, by cumulative or selective acknowledgement.
    pub delivered: u64,
    /// `SND.UNA`, as a position in the stream.
    pub una: u64,
    /// `SND.NXT`, as a position in the stream.
    pub nxt: u64,
    /// Whether both sides have agreed on reports.
    pub reports: bool,
    /// A number that the driver has drawn at random for the connection, the same whenever a run is repeated: where parts take chances from.
    pub random: u64,
}

/// A segment with data left.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sent {
    /// When it was sent.
    pub now: Instant,
    /// Position of the first octet.
    pub start: u64,
    /// Octets of data.
    pub len: u32,
    /// How often this data had been sent before: 0 for new data.
    pub transmission: u32,
    /// Whether nothing was outstanding before.
    pub was_idle: bool,
    /// The wave that it carries, if segments carry waves; a retransmission carries the one under way.
    pub wave: Option<Wave>,
}

impl Sent {
    /// `len` octets from `start` on that leave at `now` for the first time, while others are outstanding.
    pub const fn new(now: Instant, start: u64, len: u32) -> Self {
        Self { now, start, len, transmission: 0, was_idle: false, wave: None }
    }
}

choices! {
    /// What makes a wave. The publication says that it is a number of segments "sent back-to-back", by default the window, which the clocking by
    /// acknowledgements may part into smaller groups; it gives no rule.
    pub enum Formation {
        /// A run of segments that leave without a pause, of a window at most (our reading).
        Train = "train",
        /// As many segments as the window holds when the wave begins, whenever they leave. Such waves drift against the flights and span the idle part
        /// of a round trip, so what they measure is throughput.
        Window = "cwnd",
        /// What leaves at one moment. In steady state that is one segment or two, too few to measure.
        Burst = "burst",
        /// The window, held back until all of it can leave back to back: until what left before is acknowledged. Recovery does not wait.
        Hold = "hold",
    }
}

/// A probe cycle has ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Probed {
    /// The round trips of the two probes.
    pub trips: [Duration; 2],
    /// The smallest sample of the connection before the cycle.
    pub best: Option<Duration>,
    /// The latest sample before the cycle.
    pub last: Option<Duration>,
    /// From the loss to the second answer.
    pub lasted: Duration,
}

impl Probed {
    /// Whether neither round trip is longer than the point so far `between` the best and the last one before the cycle; false if there was none.
    pub fn is_good(&self, between: f64) -> bool {
        let (Some(best), Some(last)) = (self.best, self.last) else { return false };
        let longest = best + last.saturating_sub(best).mul_f64(between);
        self.trips.iter().all(|trip| *trip <= longest)
    }
}

/// An acknowledgement, as congestion controls and differentiators see it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ack<'a> {
    /// The path, already updated by this acknowledgement.
    pub path: &'a Path,
    /// Octets newly acknowledged cumulatively.
    pub acked: u64,
    /// Octets newly delivered: cumulatively or selectively, each counted once.
    pub delivered: u64,
    /// The round-trip time sample that this acknowledgement gave, if any (Karn-valid).
    pub rtt: Option<Duration>,
    /// The round trip of the newest segment that this acknowledgement newly reports as delivered, on the engine's own clock: as [`Ack::rtt`],
    /// but not rounded to the ticks of the retransmission timer, and one for every acknowledgement, SACK-only ones included. `None` if
    /// retransmissions make it ambiguous. This is the delay that differentiators measure.
    pub delay: Option<Duration>,
    /// When the newest segment that this acknowledgement reports as delivered was sent, if it was sent only once.
    pub newest_sent_at: Option<Instant>,
    /// A duplicate acknowledgement (RFC 5681, 2) or one that only adds SACK information.
    pub duplicate: bool,
    /// Whether it carries the ECN-echo flag.
    pub ece: bool,
    /// Fast recovery holds the window, so the congestion control must not grow it. False in the slow start after a timeout, whose
    /// growth is the congestion control's (RFC 5681, 3.1).
    pub in_recovery: bool,
    /// The window was what limited the sender when this data was sent (RFC 7661: growth is only earned by using the window).
    pub window_limited: bool,
    /// The delivery rate, of connections whose congestion control [goes by a model](crate::congestion::CongestionControl::is_model_based), if it gave one.
    pub sample: Option<&'a RateSample>,
    /// All options of the segment that carried it: timestamps, and what receivers and the network say of losses.
    pub options: &'a Options,
}

impl<'a> Ack<'a> {
    /// An acknowledgement with these options that acknowledges nothing. Set what it does.
    pub const fn new(path: &'a Path, options: &'a Options) -> Self {
        Self {
            path,
            acked: 0,
            delivered: 0,
            rtt: None,
            delay: None,
            newest_sent_at: None,
            duplicate: false,
            ece: false,
            in_recovery: false,
            window_limited: true,
            sample: None,
            options,
        }
    }
}

/// How fast the path delivered what was outstanding with the newest segment that an acknowledgement delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateSample {
    /// Octets a second; 0 where the time was too short to tell.
    pub rate: u64,
    /// Octets delivered from when the segment left until now.
    pub delivered: u64,
    /// Octets delivered before it left, of all of the connection's.
    pub prior_delivered: u64,
    /// It left after the application had run out of data, and before what was outstanding then had been delivered.
    pub app_limited: bool,
    /// Octets believed to be in the network when it left, its own included.
    pub in_flight_when_sent: u64,
    /// Octets taken for lost before it left, of all of the connection's.
    pub lost_when_sent: u64,
    /// Octets taken for lost until now.
    pub lost: u64,
    /// Of these, those that no earlier sample has counted.
    pub newly_lost: u64,
}

impl RateSample {
    /// Octets taken for lost since the segment left.
    pub const fn lost_since_sent(&self) -> u64 {
        self.lost - self.lost_when_sent
    }
}

/// A segment is taken for lost that no verdict excuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostSegment {
    /// Position of the first octet.
    pub start: u64,
    /// Octets of sequence space.
    pub octets: u64,
    /// Octets believed to be in the network when it left, its own included.
    pub in_flight_when_sent: u64,
    /// Octets taken for lost since it left, its own included.
    pub lost_since_sent: u64,
    /// See [`RateSample::app_limited`].
    pub app_limited: bool,
}

/// What made the sender take a segment for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Duplicate acknowledgements or the SACK scoreboard (RFC 5681, RFC 6675).
    DuplicateAcks,
    /// A partial acknowledgement in fast recovery (RFC 6582).
    PartialAck,
    /// RACK's timing (RFC 8985).
    Rack,
    /// The receiver's loss report.
    Report,
    /// The receiver asks for it by a selective negative acknowledgement.
    Snack,
    /// A tail loss probe repaired it before anything else noticed (RFC 8985).
    TailProbe,
    /// The retransmission timer expired.
    Timeout,
}

impl Trigger {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DuplicateAcks => "duplicate-acks",
            Self::PartialAck => "partial-ack",
            Self::Rack => "rack",
            Self::Report => "report",
            Self::Snack => "snack",
            Self::TailProbe => "tail-probe",
            Self::Timeout => "timeout",
        }
    }
}

/// A segment is taken for lost.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Loss<'a> {
    /// The path at this moment, before any reaction.
    pub path: &'a Path,
    /// Position of the first octet.
    pub start: u64,
    /// Octets of data.
    pub len: u32,
    /// Which transmission of this data is taken for lost: 0 for the first.
    pub transmission: u32,
    /// When that transmission left.
    pub sent_at: Instant,
    /// Why it is taken for lost.
    pub trigger: Trigger,
    /// Whether this is the first loss of its episode.
    pub first_of_episode: bool,
}

impl<'a> Loss<'a> {
    /// The first transmission of `len` octets from `start` on, which left at `sent_at`: the first loss of its episode.
    pub const fn new(path: &'a Path, start: u64, len: u32, sent_at: Instant, trigger: Trigger) -> Self {
        Self { path, start, len, transmission: 0, sent_at, trigger, first_of_episode: true }
    }
}

/// Data was lost, and the window stays.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Forgiven<'a> {
    /// The path at this moment.
    pub path: &'a Path,
    /// Octets of data lost.
    pub octets: u64,
    /// The congestion window that stays, in octets: what recovery makes of it for its own purposes does not count.
    pub cwnd: u64,
    /// The retransmission timer found out.
    pub timeout: bool,
    /// Segments that have to be outstanding so that acknowledgements tell of a loss before the timer expires.
    pub fewest: u32,
}

impl<'a> Forgiven<'a> {
    /// `octets` lost of a window of `cwnd` octets, as acknowledgements tell.
    pub const fn new(path: &'a Path, octets: u64, cwnd: u64) -> Self {
        Self { path, octets, cwnd, timeout: false, fewest: 1 }
    }
}

/// What really became of a transmission. Only a driver that sees the whole network knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransmissionFate {
    /// Position of the first octet.
    pub start: u64,
    /// Octets of data.
    pub len: u32,
    /// When that transmission left.
    pub sent_at: Instant,
    /// Why it did not arrive.
    pub cause: TrueCause,
}

impl TransmissionFate {
    /// What became of `len` octets from `start` on that left at `sent_at`.
    pub const fn new(start: u64, len: u32, sent_at: Instant, cause: TrueCause) -> Self {
        Self { start, len, sent_at, cause }
    }
}

/// Why a transmission did not arrive, in the terms of differentiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrueCause {
    /// A queue had no room.
    Congestion,
    /// A channel disturbed it.
    Corruption,
    /// A shared radio channel gave it up after too many collisions.
    Collision,
}

/// A base station says that data has come over the first hop, or is about to be sent over the last.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Passed<'a> {
    /// The path at this moment.
    pub path: &'a Path,
    /// The hop at which the base station stands.
    pub hop: Hop,
    /// Position of the first octet.
    pub start: u64,
    /// Octets of data.
    pub len: u32,
}

impl<'a> Passed<'a> {
    /// `len` octets from `start` on.
    pub const fn new(path: &'a Path, hop: Hop, start: u64, len: u32) -> Self {
        Self { path, hop, start, len }
    }
}

/// A loss report of the receiver arrived, after the acknowledgement that carried it has been processed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Reported<'a> {
    /// The path, already updated by the acknowledgement.
    pub path: &'a Path,
    /// The report as it came.
    pub report: &'a Report,
    /// Whether the report is new: reports are repeated.
    pub news: bool,
    /// The outstanding transmission that the report names.
    pub segment: Option<ReportedSegment>,
}

impl<'a> Reported<'a> {
    /// A new report that names no outstanding segment.
    pub const fn new(path: &'a Path, report: &'a Report) -> Self {
        Self { path, report, news: true, segment: None }
    }
}

/// The outstanding segment that a report names.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReportedSegment {
    /// Position of the first octet.
    pub start: u64,
    /// Octets of data.
    pub len: u32,
    /// Number of the transmission whose nonce the report echoes; the latest one if it echoes none or no transmission's. 0 is the first.
    pub transmission: u32,
    /// When the latest transmission left.
    pub sent_at: Instant,
    /// The nonce of that transmission, if segments carry one. A report that does not echo it is false.
    pub nonce: Option<u32>,
}

impl ReportedSegment {
    /// The first transmission of `len` octets from `start` on, which left at `sent_at` without a nonce.
    pub const fn new(start: u64, len: u32, sent_at: Instant) -> Self {
        Self { start, len, transmission: 0, sent_at, nonce: None }
    }
}
