//! TCP NRT: a timeout that finds the queues empty, before it and after it, was not congestion. A reconstruction.

use super::original::Original;
use super::{AfterTimeout, Assessment, Exit, Pardon, Timeout, TimeoutPolicy, TimeoutResponse, TimeoutWindow};
use crate::estimate::{Extremes, QueueUsage};
use crate::kit::{Build, Notes, Part};
use crate::path::Ack;
use crate::settings;
use crate::time::{Duration, Instant};

pub(super) const PART: Part<dyn TimeoutPolicy> = Part {
    name: "nrt",
    summary: "Forgives a timeout if the queues of the path were less than half full before it and during its repair (reconstruction).",
    reference: "Sreekumari & Chung 2013; Park & Chung 2010",
    notes: Notes {
        idea: "A queue has to be full before it drops. What waits in the queues before the silence and while the loss is repaired says more of the \
               cause of a timeout than the timeout itself does.",
        formula: "u = (RTT - RTT_min) / (RTT_max - RTT_min); forgive if u before the timeout and the median of u over the first min(cwnd, 8) \
                  samples of the repair are below theta and no ECN echo came",
        threshold: "theta: a larger one forgives more timeouts, rightly and wrongly.",
        fails: "Without SACK and timestamps retransmissions leave no sample, and every timeout is congestion. A path whose queue was never full, \
                or that others keep full, misleads it as it misleads LDA_EQ.",
        errata: "The texts that we could read name the three parts (detection, differentiation of spurious timeouts from random loss, reaction) and \
                 the quantity, not the formulas: all numbers are our reading. The back-off cannot be prevented before the cause is known; it is taken \
                 back with the pardon.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Usage of the queues from which on a timeout is congestion.
        theta: f64 = 0.5, 0.0..=1.0;
        /// The most samples of the repair that are waited for.
        samples: usize = 8, 1..=64;
        /// Distance of the extremes of the round-trip time in milliseconds below which nothing is forgiven.
        min_range_ms: f64 = 2.0, 0.0..=1000.0;
        /// Silence of the peer from which on nothing is forgiven, in retransmission timeouts without back-off.
        outage: f64 = 3.0, 1.0..=64.0;
    }
}

impl Build<dyn TimeoutPolicy> for Settings {
    fn build(self) -> Box<dyn TimeoutPolicy> {
        Box::new(Nrt::new(self.theta, self.samples, Duration::from_secs_f64(self.min_range_ms / 1000.0), self.outage))
    }
}

/// First whether the original arrived late; then how full the queues were at the last sample before the silence and are at the median of
/// the first samples of the repair. Until then the window is that of a standard timeout, so a wrong pardon comes a round trip late.
#[derive(Debug)]
pub struct Nrt {
    theta: f64,
    samples: usize,
    min_range: Duration,
    outage: f64,
    usage: QueueUsage,
    original: Original,
    /// What the queues held before the silence; `None` is no evidence.
    before: Option<f64>,
    /// What they hold since.
    after: Vec<f64>,
    wanted: usize,
    /// When the timer expired of which the cause is sought.
    expired_at: Option<Instant>,
    rto: Duration,
    /// Expiries beyond the first.
    repeated: u32,
    safe: bool,
}

impl Nrt {
    /// Forgives below a usage of `theta`, after at most `samples` samples, if the extremes are `min_range` apart and the peer was silent
    /// for less than `outage` timeouts.
    pub fn new(theta: f64, samples: usize, min_range: Duration, outage: f64) -> Self {
        Self {
            theta,
            samples,
            min_range,
            outage,
            usage: QueueUsage::new(Extremes::Lifetime),
            original: Original::default(),
            before: None,
            after: Vec::new(),
            wanted: 1,
            expired_at: None,
            rto: Duration::ZERO,
            repeated: 0,
            safe: false,
        }
    }

    fn is_outage(&self, silence: Duration) -> bool {
        silence.as_secs_f64() >= self.outage * self.rto.as_secs_f64()
    }

    /// The usage that a round trip of the repair means.
    fn place(&self, rtt: Duration) -> Option<f64> {
        let (min, range) = (self.usage.min(), self.usage.max().saturating_sub(self.usage.min()));
        (range >= self.min_range && range > Duration::ZERO)
            .then(|| rtt.saturating_sub(min).as_nanos() as f64 / range.as_nanos() as f64)
    }

    fn queues_are_empty(&mut self) -> bool {
        let full = |usage: f64| usage >= self.theta;
        if self.before.is_none_or(full) || self.after.is_empty() {
            return false;
        }
        self.after.sort_by(f64::total_cmp);
        !full(self.after[self.after.len() / 2]) // the upper median: in doubt congestion
    }
}

impl TimeoutPolicy for Nrt {
    fn on_ack(&mut self, ack: &Ack) {
        let Some(expired_at) = self.expired_at else {
            self.usage.on_ack(ack);
            return;
        };
        self.safe &= !ack.ece;
        // What was sent before the silence has waited for its end, not in queues.
        let sent_since = ack.newest_sent_at.is_none_or(|sent| sent >= expired_at);
        if let Some(usage) = ack.delay.or(ack.rtt).filter(|_| sent_since).and_then(|rtt| self.place(rtt)) {
            self.after.push(usage);
        }
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> TimeoutResponse {
        self.rto = timeout.path.rto;
        let safe = timeout.consecutive < 3 && !self.is_outage(timeout.silence);
        if !timeout.in_recovery {
            self.before = self.usage.usage(self.min_range);
            let segments = timeout.path.cwnd / u64::from(timeout.path.mss.max(1));
            self.wanted = self.samples.min(segments as usize).max(1);
            self.safe = safe;
        }
        self.safe &= safe;
        self.repeated = timeout.consecutive - 1;
        self.expired_at = Some(timeout.path.now);
        self.after.clear();
        self.original.on_timeout(timeout, true);
        TimeoutResponse { window: TimeoutWindow::Collapse, back_off: true, head_only: !timeout.in_recovery }
    }

    fn assess(&mut self, after: &AfterTimeout) -> Assessment {
        self.safe &= !self.is_outage(after.silence);
        let assessment = match self.original.assess(after) {
            Assessment::Genuine if !self.safe => Assessment::Genuine,
            Assessment::Genuine if self.after.len() < self.wanted && after.ack.path.una < after.recover => Assessment::Repairing,
            Assessment::Genuine if self.queues_are_empty() => {
                Assessment::Forgiven(Pardon { halvings: self.repeated, timer: true, exit: Exit::SlowStart })
            }
            other => other,
        };
        if !matches!(assessment, Assessment::Undecided | Assessment::Repairing) {
            self.expired_at = None;
        }
        assessment
    }

    fn on_undone(&mut self) {
        self.expired_at = None;
    }
}
