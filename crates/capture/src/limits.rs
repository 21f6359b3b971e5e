//! What limited a direction of a connection at each time: its time is divided, without a rest.

use whyloss_transport::time::{Duration, Instant};

/// What data waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limit {
    /// The connection was being opened.
    Handshake,
    /// The application had nothing to send.
    Application,
    /// Nobody sent anything for a second or longer.
    Idle,
    /// The receiver's window was full.
    ReceiveWindow,
    /// The receiver's window was closed.
    ZeroWindow,
    /// The congestion window was full, and the path was not.
    CongestionWindow,
    /// What was under way stayed the same for many round trips, though neither window nor path asked for it: the send buffer.
    SendBuffer,
    /// Losses were repaired.
    Recovering,
    /// The retransmission timer had to expire.
    RetransmissionTimer,
    /// The timer of a tail loss probe had to expire.
    ProbeTimer,
    /// The receiver waited with its acknowledgement.
    DelayedAck,
    /// The path was full: data left as fast as it carries it.
    PathRate,
}

impl Limit {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Handshake,
        Self::Application,
        Self::Idle,
        Self::ReceiveWindow,
        Self::ZeroWindow,
        Self::CongestionWindow,
        Self::SendBuffer,
        Self::Recovering,
        Self::RetransmissionTimer,
        Self::ProbeTimer,
        Self::DelayedAck,
        Self::PathRate,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Application => "application",
            Self::Idle => "idle",
            Self::ReceiveWindow => "receive-window",
            Self::ZeroWindow => "zero-window",
            Self::CongestionWindow => "congestion-window",
            Self::SendBuffer => "send-buffer",
            Self::Recovering => "recovering",
            Self::RetransmissionTimer => "retransmission-timer",
            Self::ProbeTimer => "probe-timer",
            Self::DelayedAck => "delayed-ack",
            Self::PathRate => "path-rate",
        }
    }
}

/// A time in which nothing went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When it began.
    pub at: Instant,
    /// How long it was.
    pub lasted: Duration,
    /// What was waited for.
    pub limit: Limit,
    /// Octets under way.
    pub outstanding: u64,
}

/// How a direction stands before the next segment changes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing {
    /// Octets that are not acknowledged.
    pub outstanding: u64,
    /// Octets of which the sender did not know, when it sent last, that they were.
    pub flight: u64,
    /// When it learns of the latest acknowledgement.
    pub learns: Instant,
    /// When the latest acknowledgement passed that the sender has when it sends.
    pub heard: Instant,
    /// The receiver's window.
    pub window: Option<u64>,
    /// A recovery is under way.
    pub recovering: bool,
    /// The largest segment.
    pub mss: u32,
    /// The smoothed round trip, and the shortest.
    pub trip: Option<Duration>,
    /// See `trip`.
    pub shortest: Option<Duration>,
    /// How long the sender usually takes to answer an acknowledgement.
    pub reaction: Duration,
    /// When the connection's latest packet was captured, of either direction.
    pub latest: Instant,
}

impl Standing {
    /// A sender that answers an acknowledgement at all does it in this time.
    fn prompt(&self) -> Duration {
        self.reaction + self.reaction / 2 + Duration::from_millis(5)
    }

    /// Round trips are longer than they need be: data stands in a queue.
    fn is_queued(&self) -> bool {
        let (Some(trip), Some(shortest)) = (self.trip, self.shortest) else { return false };
        trip > shortest + shortest / 4 + Duration::from_millis(1)
    }
}

/// What left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// New data; if `short`, there was no more.
    New {
        /// Less than a full segment.
        short: bool,
    },
    /// A repair that acknowledgements asked for, or that follows a timeout.
    Repair,
    /// A repair after the retransmission timer expired.
    Expired,
    /// A tail loss probe.
    Probe,
    /// Something else, such as a probe of a closed window.
    Other,
}

/// The time of a direction, divided.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Up to here the time is divided.
    mark: Instant,
    opening: bool,
    spent: [Duration; Limit::ALL.len()],
    stalls: [u32; Limit::ALL.len()],
    /// The last new data was short of a segment.
    drained: bool,
    /// When the first acknowledgement passed that made room since new data left last.
    released: Option<Instant>,
    /// What left last left no room in the receiver's window.
    filled: bool,
    sent_at: Instant,
    round: Round,
    /// Rounds in a row with as much under way as this.
    alike: u32,
    level: u64,
    last: Round,
}

/// A round trip's worth of sending.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Over when this is acknowledged.
    end: u64,
    /// The most that was under way.
    peak: u64,
    segments: u32,
    /// Those of them that an acknowledgement let out.
    clocked: u32,
    /// The longest time between two segments.
    gap: Duration,
}

/// From here on silence of a connection is idleness.
const IDLE: Duration = Duration::from_secs(1);
/// A delay of an acknowledgement that no path explains.
const DELAYED: Duration = Duration::from_millis(25);

impl Limits {
    /// The connection begins.
    pub fn begin(&mut self, at: Instant) {
        self.mark = at;
    }

    /// A SYN passes.
    pub fn opens(&mut self) {
        self.opening = true;
    }

    /// The handshake is over.
    pub fn opened(&mut self, at: Instant) {
        if self.opening {
            self.opening = false;
            self.spend(at, Limit::Handshake);
        }
    }

    /// The time spent at each limit, and how often it was a stall.
    pub fn spent(&self) -> impl Iterator<Item = (Limit, Duration, u32)> + '_ {
        Limit::ALL.into_iter().map(|limit| (limit, self.spent[limit as usize], self.stalls[limit as usize]))
    }

    /// Something of this direction leaves at `at`: data up to `end`, while its sender knows that everything below `una` is
    /// acknowledged.
    pub fn on_sent(&mut self, at: Instant, sent: Sent, una: u64, end: u64, standing: &Standing) -> Option<Stall> {
        if self.opening {
            return None;
        }
        let limit = match sent {
            Sent::Expired => Some(Limit::RetransmissionTimer),
            Sent::Probe => Some(Limit::ProbeTimer),
            Sent::Repair => Some(Limit::Recovering),
            Sent::New { .. } | Sent::Other => None,
        };
        let stall = match limit {
            Some(limit) => self.wait(at, limit, standing),
            None => self.waited(at, standing),
        };
        if let Sent::New { short } = sent {
            self.released = None;
            let (window, mss) = (standing.window.unwrap_or(u64::MAX), u64::from(standing.mss));
            let under_way = end.saturating_sub(una);
            self.filled = under_way + mss > window;
            self.drained = short && under_way + mss < window;
            if una >= self.round.end {
                let tolerance = mss.max(self.level / 4);
                let alike = self.round.peak.abs_diff(self.level) <= tolerance && self.round.segments > 0;
                if alike {
                    self.alike += 1;
                } else {
                    (self.alike, self.level) = (0, self.round.peak);
                }
                self.last = self.round;
                self.round = Round { end, ..Round::default() };
            }
            self.round.peak = self.round.peak.max(under_way);
            self.round.segments += 1;
            self.round.clocked += u32::from(since(at, standing.heard) <= standing.prompt());
            self.round.gap = self.round.gap.max(since(at, self.sent_at));
            self.sent_at = at;
        }
        stall
    }

    /// An acknowledgement brings progress.
    pub fn on_progress(&mut self, at: Instant, standing: &Standing) -> Option<Stall> {
        if self.opening {
            return None;
        }
        let slow = standing.shortest.is_some_and(|trip| since(at, self.mark) > trip + trip / 2 + DELAYED);
        let few = standing.outstanding <= u64::from(standing.mss);
        let stall = if slow && few && !standing.recovering && standing.outstanding > 0 {
            self.wait(at, Limit::DelayedAck, standing)
        } else {
            self.waited(at, standing)
        };
        self.released.get_or_insert(at);
        stall
    }

    /// The connection is over, or no longer followed.
    pub fn finish(&mut self, at: Instant, standing: &Standing) -> Option<Stall> {
        if self.opening {
            self.spend(at, Limit::Handshake);
            return None;
        }
        self.waited(at, standing)
    }

    /// What was waited for until now follows from how the direction stood.
    fn waited(&mut self, at: Instant, standing: &Standing) -> Option<Stall> {
        let open = standing.window.is_none_or(|window| window >= u64::from(standing.mss));
        if standing.outstanding > 0 || !open || standing.flight > 0 && since(at, standing.learns) <= standing.prompt() {
            return self.wait(at, self.limit(at, standing), standing);
        }
        if standing.flight > 0 {
            // All has arrived, and the sender will know it soon.
            self.spend(standing.learns.min(at), self.limit(standing.learns, standing));
        }
        // Nothing was under way. While others of the connection speak it is the application that waits; then nobody does.
        let silent = since(at, standing.latest.max(self.mark));
        if silent < IDLE {
            return self.wait(at, Limit::Application, standing);
        }
        self.spend(standing.latest.min(at), Limit::Application);
        self.spend(at, Limit::Idle);
        None
    }

    /// What keeps a sender that has something under way from sending more.
    fn limit(&self, at: Instant, standing: &Standing) -> Limit {
        /// So many round trips with as much under way are no chance, if growth by a segment in each would have been noticed.
        const STEADY: u32 = 6;
        let mss = u64::from(standing.mss);
        match standing.window {
            Some(0) => return Limit::ZeroWindow,
            Some(window) if window < mss => return Limit::ReceiveWindow,
            _ => {}
        }
        if standing.recovering {
            return Limit::Recovering;
        }
        // Who always sends what acknowledgements let out has more to send, though no more under way than before.
        let outgrown = u64::from(self.alike) * mss > self.level / 4 + mss;
        let held = self.alike >= STEADY && outgrown && self.last.clocked * 5 >= self.last.segments * 4;
        let unused = standing.flight + 2 * mss <= self.last.peak.max(self.round.peak)
            && self.released.is_some_and(|released| since(at, released) > standing.prompt());
        // The last of the data may still stand in a queue.
        let queued = standing.is_queued() && standing.flight >= 4 * mss;
        if (self.drained && !held || unused) && !self.filled && !queued {
            return Limit::Application;
        }
        // What a full window lets out comes evenly, too, and late answers of the receiver look like a queue: the path is full beyond the
        // window only if there is a queue and it never runs empty.
        let queued = standing.is_queued();
        let busy = self.last.segments >= 8 && standing.trip.is_some_and(|trip| self.last.gap < trip / 4);
        if self.filled && !(queued && busy) {
            return Limit::ReceiveWindow;
        }
        if queued || self.flows(standing) {
            return Limit::PathRate;
        }
        if held {
            return Limit::SendBuffer;
        }
        Limit::CongestionWindow
    }

    /// Data leaves without pauses, as the path carries it.
    fn flows(&self, standing: &Standing) -> bool {
        self.last.segments >= 8 && standing.shortest.is_some_and(|shortest| self.last.gap < shortest / 4)
    }

    fn wait(&mut self, at: Instant, limit: Limit, standing: &Standing) -> Option<Stall> {
        /// Shorter pauses are none to a user.
        const SHORTEST: Duration = Duration::from_millis(100);
        let (began, lasted) = (self.mark, since(at, self.mark));
        self.spend(at, limit);
        let usual = standing.trip.map_or(IDLE, |trip| (trip * 2).max(SHORTEST));
        (lasted > usual).then(|| {
            self.stalls[limit as usize] += 1;
            Stall { at: began, lasted, limit, outstanding: standing.outstanding }
        })
    }

    fn spend(&mut self, at: Instant, limit: Limit) {
        self.spent[limit as usize] += since(at, self.mark);
        self.mark = self.mark.max(at);
    }
}

/// Time from one record to a later one; none if the clock went back.
fn since(at: Instant, before: Instant) -> Duration {
    if at > before {
        at.since(before)
    } else {
        Duration::ZERO
    }
}
