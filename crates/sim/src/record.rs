//! What a run leaves behind.

use crate::address::{FlowId, LinkId, NodeId, Way};
use crate::playback::PlaybackCounts;
use crate::truth::{Cause, CauseCounts, Truth};
use crate::web::PageCounts;
use whyloss_transport::segment::Flags;
use whyloss_transport::tcp::{Closing, LossRecord, Stats, TimeoutRecord};
use whyloss_transport::timeout::TimeoutOutcome;
use whyloss_transport::{Duration, Instant};

/// Everything that a run recorded. Flows, links and transfers are referred to by their index here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// Seed that all random numbers follow from, together with the number of the run.
    pub seed: u64,
    /// The number of the run.
    pub run: u64,
    /// When the run ended.
    pub ended_at: Instant,
    /// The largest random send overhead; zero if there was none.
    pub send_overhead: Duration,
    /// Length of the bins of [`FlowRecord::smoothness`].
    pub smoothness_bin: Duration,
    /// One entry a flow, in the order in which they were added; the connections of a striped transfer are flows too.
    pub flows: Vec<FlowRecord>,
    /// One entry a striped transfer.
    pub striped: Vec<StripedRecord>,
    /// One entry a loss that a sender noticed, in the order in which they were noticed.
    pub losses: Vec<LossRow>,
    /// One entry an expired retransmission timer.
    pub timeouts: Vec<TimeoutRow>,
    /// One entry a packet that did not arrive.
    pub drops: Vec<DropRecord>,
    /// One entry a packet that an endpoint sent, in the order in which they left; empty unless the builder was asked for a log.
    pub log: Vec<PacketRecord>,
    /// Packets that the log had no room for.
    pub log_left_out: u64,
    /// Two entries a link: forward, then reverse.
    pub links: Vec<LinkRecord>,
    /// One entry a middlebox, in the order in which they were added.
    pub middleboxes: Vec<MiddleboxRecord>,
    /// Time series of the flows.
    pub flow_samples: Vec<FlowSample>,
    /// Time series of the links.
    pub link_samples: Vec<LinkSample>,
    /// What became of all packets that hosts sent.
    pub packets: PacketCounts,
    /// Events that the run took.
    pub events: u64,
}

/// Records of a part of a run, as they will never change: the next ones of each kind, in the order of [`Records`].
#[derive(Debug, Default)]
pub struct Settled {
    /// Losses that senders noticed.
    pub losses: Vec<LossRow>,
    /// Expired retransmission timers.
    pub timeouts: Vec<TimeoutRow>,
    /// Packets that did not arrive.
    pub drops: Vec<DropRecord>,
    /// Packets that endpoints sent.
    pub log: Vec<PacketRecord>,
    /// Time series of the flows.
    pub flow_samples: Vec<FlowSample>,
    /// Time series of the links.
    pub link_samples: Vec<LinkSample>,
}

impl Records {
    /// Takes those that are settled at the end.
    pub fn take_settled(&mut self) -> Settled {
        Settled {
            losses: std::mem::take(&mut self.losses),
            timeouts: std::mem::take(&mut self.timeouts),
            drops: std::mem::take(&mut self.drops),
            log: std::mem::take(&mut self.log),
            flow_samples: std::mem::take(&mut self.flow_samples),
            link_samples: std::mem::take(&mut self.link_samples),
        }
    }
}

/// What became of packets. `sent + duplicated = delivered + suppressed + dropped + in_flight`, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Left an endpoint, or a middlebox that spoke in its name.
    pub sent: u64,
    /// Reached the endpoint that they were meant for, as far as it could tell intact.
    pub delivered: u64,
    /// Of those sent, sent by middleboxes.
    pub inserted: u64,
    /// Packets that a link made two of.
    pub duplicated: u64,
    /// Of those delivered, damaged in a way that no checksum noticed. With them the few whose damaged data was noticed and discarded, but not that
    /// the header which names it is damaged, too.
    pub damaged_unnoticed: u64,
    /// Ended at a middlebox that answers for them: no losses.
    pub suppressed: u64,
    /// Lost on the way, by true cause.
    pub dropped: CauseCounts,
    /// Under way at the end of the run.
    pub in_flight: u64,
}

impl PacketCounts {
    /// Whether no packet is missing and none was made from nothing.
    pub fn balanced(&self) -> bool {
        self.sent + self.duplicated == self.delivered + self.suppressed + self.dropped.total() + self.in_flight
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.inserted += other.inserted;
        self.duplicated += other.duplicated;
        self.delivered += other.delivered;
        self.damaged_unnoticed += other.damaged_unnoticed;
        self.suppressed += other.suppressed;
        self.dropped.merge(&other.dropped);
        self.in_flight += other.in_flight;
    }
}

/// What a run recorded of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// Name that the builder was given; `transfer/0`, `transfer/1`, … for the connections of a striped transfer.
    pub name: String,
    /// The striped transfer that it belongs to.
    pub striped: Option<usize>,
    /// When it was to start.
    pub start: Instant,
    /// When the sender's connection was established.
    pub connected: Option<Instant>,
    /// When the first data was in order at the receiver.
    pub first_data: Option<Instant>,
    /// When the last data was in order at the receiver.
    pub last_data: Option<Instant>,
    /// When everything that was to be sent was in order at the receiver.
    pub finished: Option<Instant>,
    /// How the sender's connection ended, if it did.
    pub closing: Option<Closing>,
    /// Octets in order at the receiver.
    pub octets_delivered: u64,
    /// Octets that reached the application with another value than they were sent with: damage that no checksum noticed.
    pub octets_corrupted: u64,
    /// Octets in order per second from the start to the finish, or to the end of the run if it did not finish, in bit/s.
    pub goodput_bps: f64,
    /// Octets of data sent, retransmissions included, per second over the same time, in bit/s; `None` for datagrams.
    pub sending_rate_bps: Option<f64>,
    /// How unevenly the sender sent: the coefficient of variation of its octets of data over bins of [`Records::smoothness_bin`], those that lie
    /// wholly in the same time. `None` for plain datagrams, and for a flow that sent nothing, or in fewer than two bins.
    pub smoothness: Option<f64>,
    /// How the player at the receiver fared, if there is one.
    pub playback: Option<PlaybackCounts>,
    /// What the web user at the receiver got, if there is one.
    pub pages: Option<PageCounts>,
    /// Counters of the sender's connection; `None` for datagrams.
    pub sender: Option<Stats>,
    /// Counters of the receiver's connection; `None` for datagrams.
    pub receiver: Option<Stats>,
    /// Names of the differentiators in shadow, those at the sender before those at the receiver, in the order of
    /// [`LossRecord::shadows`].
    pub shadows: Vec<String>,
    /// Packets from the sender to the receiver.
    pub forward: PacketCounts,
    /// Packets from the receiver to the sender.
    pub reverse: PacketCounts,
}

/// A file that travelled over several connections at once.
#[derive(Clone, Debug, PartialEq)]
pub struct StripedRecord {
    /// Name that the builder was given.
    pub name: String,
    /// Its length in octets.
    pub octets: u64,
    /// When it was to start.
    pub start: Instant,
    /// When its last octet was in order at the receiver.
    pub finished: Option<Instant>,
    /// Octets of the file in order at the receiver.
    pub octets_delivered: u64,
    /// The most octets that ever waited at the receiver for earlier ones.
    pub max_reordered: u64,
    /// Octets in order per second from the start to the finish, or to the end of the run, in bit/s.
    pub goodput_bps: f64,
}

/// A loss that a sender noticed, beside what really happened.
#[derive(Clone, Debug, PartialEq)]
pub struct LossRow {
    /// Index of the flow in [`Records::flows`].
    pub flow: usize,
    /// What the sender recorded.
    pub record: LossRecord,
    /// What really happened to this transmission.
    pub truth: Truth,
    /// When and where it was lost.
    pub dropped: Option<(Instant, LinkId, Way)>,
}

/// An expired retransmission timer.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeoutRow {
    /// Index of the flow in [`Records::flows`].
    pub flow: usize,
    /// What the sender recorded.
    pub record: TimeoutRecord,
    /// What the sender made of it in the end.
    pub outcome: TimeoutOutcome,
    /// When it had made up its mind.
    pub assessed: Option<Instant>,
    /// What really happened to the transmission whose acknowledgement did not come.
    pub truth: Truth,
}

impl TimeoutRow {
    /// A timeout of which nothing is known yet but that it happened.
    pub(crate) const fn new(flow: FlowId, record: TimeoutRecord) -> Self {
        Self { flow: flow.index(), record, outcome: TimeoutOutcome::Undecided, assessed: None, truth: Truth::Arrived }
    }
}

/// A packet that did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropRecord {
    /// When it was discarded or erased.
    pub at: Instant,
    /// Index of the flow in [`Records::flows`].
    pub flow: usize,
    /// [`Way::Forward`] from the flow's sender to its receiver, [`Way::Reverse`] back.
    pub way: Way,
    /// The link on which it was lost, or which damaged it last.
    pub link: LinkId,
    /// The direction of that link.
    pub link_way: Way,
    /// Why it did not arrive.
    pub cause: Cause,
    /// When its endpoint sent it.
    pub sent_at: Instant,
    /// Offset of its first octet of data in the flow's data stream.
    pub offset: u64,
    /// Octets of data; 0 for a bare acknowledgement.
    pub len: u32,
    /// Octets of the whole packet.
    pub octets: u32,
}

/// Which packets are written down one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpec {
    /// Those that left at this time or later.
    pub from: Instant,
    /// Those that left before this time.
    pub until: Instant,
    /// So many at most, the first ones. A row takes about 150 octets.
    pub at_most: usize,
}

/// A packet that an endpoint sent, as it left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// Index of the flow in [`Records::flows`].
    pub flow: usize,
    /// [`Way::Forward`] from the flow's sender to its receiver, [`Way::Reverse`] back.
    pub way: Way,
    /// When its endpoint sent it.
    pub sent_at: Instant,
    /// When it arrived at its endpoint, or was lost or suppressed; of several copies the first that arrived, else the last that was lost.
    pub ended: Option<Instant>,
    /// What became of it.
    pub truth: Truth,
    /// The link on which it was lost.
    pub link: Option<LinkId>,
    /// Offset of its first octet of data in the data stream of its endpoint.
    pub offset: u64,
    /// Octets of data, headers not included.
    pub len: u32,
    /// Octets of the whole packet.
    pub octets: u32,
    /// Its endpoint had sent the first of its data before.
    pub retransmission: bool,
    /// A middlebox sent it in the endpoint's name.
    pub inserted: bool,
    /// Control bits of a TCP segment.
    pub flags: Option<Flags>,
    /// Octets of the other end's data stream that it acknowledges.
    pub ack: Option<u64>,
    /// Octets beyond them that its endpoint is ready to take, after scaling.
    pub window: Option<u64>,
    /// Start and end of its SACK blocks, in the order of the option.
    pub sack: Vec<(u64, u64)>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRecord {
    /// The link's name, with its direction: `"a>b"` for the forward direction of a link from `a` to `b`.
    pub name: String,
    /// Packets that wanted to cross.
    pub offered: u64,
    /// Octets that wanted to cross.
    pub offered_octets: u64,
    /// Packets that reached the other end, damaged ones included.
    pub delivered: u64,
    /// Octets that reached the other end.
    pub delivered_octets: u64,
    /// Packets that the channel damaged.
    pub damaged: u64,
    /// Packets that came to the other end twice: `offered + duplicated = delivered + dropped + in_flight`.
    pub duplicated: u64,
    /// Packets lost here: full queue, erased by the channel, or given up by a station.
    pub dropped: CauseCounts,
    /// Packets in the queue, in transmission or on the way at the end of the run.
    pub in_flight: u64,
    /// Time spent transmitting, control frames included.
    pub busy: Duration,
    /// Mean number of packets that waited (the one in transmission not counted).
    pub mean_queue_packets: f64,
    /// Mean number of octets that waited.
    pub mean_queue_octets: f64,
    /// Most packets that waited.
    pub max_queue_packets: u64,
    /// Most octets that waited.
    pub max_queue_octets: u64,
    /// How often an error pattern came to its end.
    pub pattern_ends: u64,
    /// What happened to frames, if the link leads through the air.
    pub air: Option<AirCounts>,
}

/// What an agent at a router remembers at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Flows of which it keeps any state.
    pub flows: u64,
    /// Segments, or pieces of data of which it knows something.
    pub segments: u64,
    /// Octets of memory: the states of all flows, and the segments with their headers.
    pub octets: u64,
    /// Octets of memory for the flow that it has looked at last.
    pub flow_octets: u64,
}

impl Held {
    /// The larger of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            flows: self.flows.max(other.flows),
            segments: self.segments.max(other.segments),
            octets: self.octets.max(other.octets),
            flow_octets: self.flow_octets.max(other.flow_octets),
        }
    }
}

/// An agent at a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MiddleboxRecord {
    /// The router at which it stands.
    pub at: NodeId,
    /// The link whose segments it sees.
    pub link: LinkId,
    /// Its name in [`TABLE`](crate::middlebox::TABLE).
    pub kind: &'static str,
    /// Segments that crossed the link.
    pub seen: u64,
    /// Of those, the ones whose journey it ended.
    pub suppressed: u64,
    /// Segments that it sent itself.
    pub sent: u64,
    /// Flows of which it handed something over to the agent of another station, because their mobile host had gone there.
    pub moved_flows: u64,
    /// Octets of that.
    pub moved_octets: u64,
    /// The longest time from the arrival of a mobile host at the other station to that of what was handed over.
    pub longest_move: Duration,
    /// The most of each that it remembered at a time.
    pub peak: Held,
}

/// Frames from one station to another. Several frames may carry one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirCounts {
    /// Frames sent, RTS, CTS and ACK frames included.
    pub frames: u64,
    /// Of those, the ones that the other station could not decode because it heard something else or was sending itself.
    pub collided: u64,
    /// Of those, the ones that it would have decoded but for noise: the link's channel.
    pub noise: u64,
    /// Exchanges of this direction's data that failed and were tried again. One that is given up is not tried again.
    pub retries: u64,
}

/// A sender at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample {
    /// Time of the sample.
    pub at: Instant,
    /// Index of the flow in [`Records::flows`].
    pub flow: usize,
    /// Congestion window in octets.
    pub cwnd: u64,
    /// Slow-start threshold in octets.
    pub ssthresh: u64,
    /// Smoothed round-trip time, if measured.
    pub srtt: Option<Duration>,
    /// Octets believed to be in the network.
    pub pipe: u64,
    /// Octets in order at the receiver.
    pub octets_delivered: u64,
    /// Octets of data that the sender has sent, retransmissions included.
    pub data_octets_sent: u64,
    /// Segments that the sender has taken for lost.
    pub losses: u64,
    /// Retransmission timers that have expired.
    pub timeouts: u64,
}

/// A queue at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSample {
    /// Time of the sample.
    pub at: Instant,
    /// The link, by its number in the builder.
    pub link: LinkId,
    /// The direction of the link whose queue it is.
    pub way: Way,
    /// Packets that wait (the one in transmission not counted).
    pub queue_packets: u64,
    /// Octets of these packets.
    pub queue_octets: u64,
}
