//! TCP Vegas: a few segments in the queue, and no losses to find out how many fit.

use super::slow_start::SlowStart;
use super::{CongestionControl, Window};
use crate::estimate::{backlog, Backlog, Round};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Path};
use crate::{choices, settings};

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "vegas",
    summary: "Keeps between alpha and beta segments of its own in the queues of the path.",
    reference: "Brakmo & Peterson 1995",
    notes: Notes {
        fails: "Gives way to flows that fill queues, and takes a longer route for a queue.",
        errata: "The thresholds are the paper's Vegas-2,4 and Linux's; ns-2 has 1 and 3. Finding losses by a finer timer at the first \
                 duplicate is not the window's business here: RACK does that for every congestion control.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

choices! {
    /// What stands for the round-trip times of a round.
    enum Sample {
        /// The mean of all samples of the round.
        Mean = "mean",
        /// The smallest sample of the round.
        Min = "min",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// With fewer segments queued the window grows by one a round trip.
        alpha: f64 = 2.0, 0.0..=1000.0;
        /// With more segments queued the window shrinks by one a round trip.
        beta: f64 = 4.0, 0.0..=1000.0;
        /// With more segments queued slow start ends.
        gamma: f64 = 1.0, 0.0..=1000.0;
        /// What stands for the round-trip times of a round: their mean, as in ns-2, or the smallest, as in Linux.
        sample: Sample;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(Vegas::new([self.alpha, self.beta, self.gamma], self.sample == Sample::Min))
    }
}

/// Once a round trip the backlog decides (Brakmo & Peterson 1995, sections 3.2 and 3.3): below `alpha` the window grows by a segment,
/// above `beta` it shrinks by one. Slow start doubles every other round trip, and ends with an eighth less once the backlog exceeds
/// `gamma`. A loss costs a quarter of the window, a timeout half.
#[derive(Debug)]
pub struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    by_smallest: bool,
    backlog: Backlog,
    slow_start: SlowStart,
    /// In slow start the window stands still every other round, so that the backlog can be compared.
    resting: bool,
}

impl Vegas {
    /// With the thresholds `[alpha, beta, gamma]` in segments; rounds stand for their smallest sample or for the mean of all.
    pub fn new([alpha, beta, gamma]: [f64; 3], by_smallest: bool) -> Self {
        Self { alpha, beta, gamma, by_smallest, backlog: Backlog::default(), slow_start: SlowStart::new(false), resting: false }
    }

    /// Segments that the last round left in queues.
    fn queued(&self, window: &Window) -> Option<f64> {
        let round = self.backlog.round();
        let rtt = if self.by_smallest { Round::min } else { Round::mean };
        Some(backlog(window.segments(), self.backlog.base_rtt()?, rtt(&round)?))
    }

    fn decide(&mut self, window: &mut Window, queued: f64) {
        let mss = u64::from(window.mss());
        if window.in_slow_start() {
            self.resting = !self.resting;
            if queued > self.gamma {
                window.set_ssthresh(0);
                window.set_cwnd((window.cwnd() - window.cwnd() / 8).max(2 * mss));
            }
        } else if queued > self.beta {
            window.set_cwnd((window.cwnd() - mss.min(window.cwnd())).max(2 * mss));
        } else if queued < self.alpha {
            window.grow(mss as f64);
        }
    }
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let round_over = self.backlog.on_ack(ack);
        if ack.acked == 0 || ack.in_recovery {
            return;
        }
        // An unused window says nothing of the queue, and has not earned a larger one.
        if let (true, true, Some(queued)) = (round_over, ack.window_limited, self.queued(window)) {
            self.decide(window, queued);
        }
        if !window.in_slow_start() {
            self.slow_start.on_left();
        } else if !self.resting {
            self.slow_start.on_ack(window, ack);
        }
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> u64 {
        let used = window.used(path);
        used - used / 4
    }

    fn timeout_threshold(&mut self, window: &Window, path: &Path) -> u64 {
        window.used(path) / 2
    }

    fn on_timeout(&mut self, _window: &mut Window, _path: &Path) {
        self.resting = false;
        self.slow_start.on_timeout();
    }
}
