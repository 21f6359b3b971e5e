//! General additive increase, multiplicative decrease: Reno with other constants.

use super::slow_start::SlowStart;
use super::{CongestionControl, Window};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Path};
use crate::settings;

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "gaimd",
    summary: "Grows by alpha segments a round trip, falls to beta times the window.",
    reference: "Yang & Lam 2000",
    notes: Notes {
        errata: "The defaults lie on the paper's line alpha = 4 (1 - beta^2) / 3 of flows that are fair to Reno, which makes the cost of \
                 timeouts equal; without timeouts fairness would ask for alpha = 3 (1 - beta) / (1 + beta) = 0.2 instead of 0.31.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Segments by which the window grows in a round trip.
        alpha: f64 = 0.31, 0.001..=100.0;
        /// The factor by which congestion multiplies the window.
        beta: f64 = 0.875, 0.1..=0.99;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(Gaimd::new(self.alpha, self.beta))
    }
}

/// Yang & Lam 2000, section 2: `W += alpha` a round trip, `W *= beta` a congestion signal. A timeout halves as Reno's does.
#[derive(Debug)]
pub struct Gaimd {
    alpha: f64,
    beta: f64,
    slow_start: SlowStart,
}

impl Gaimd {
    /// `alpha` in segments a round trip, `beta` the factor of a reduction.
    pub fn new(alpha: f64, beta: f64) -> Self {
        Self { alpha, beta, slow_start: SlowStart::new(false) }
    }
}

impl CongestionControl for Gaimd {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.acked == 0 || ack.in_recovery {
            return;
        }
        if window.in_slow_start() {
            self.slow_start.on_ack(window, ack);
            return;
        }
        self.slow_start.on_left();
        if ack.window_limited {
            window.grow(self.alpha * f64::from(window.mss()) * ack.acked as f64 / window.cwnd() as f64);
        }
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> u64 {
        (window.used(path) as f64 * self.beta) as u64
    }

    fn timeout_threshold(&mut self, window: &Window, path: &Path) -> u64 {
        window.used(path) / 2
    }

    fn on_timeout(&mut self, _window: &mut Window, _path: &Path) {
        self.slow_start.on_timeout();
    }
}
