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
        errata: "Without `alpha` a flow lies on the paper's line alpha = 4 (1 - beta^2) / 3 of flows that are fair to Reno, which makes the cost of \
                 timeouts equal; without timeouts fairness would ask for alpha = 3 (1 - beta) / (1 + beta) = 0.2 instead of 0.3125, which the paper \
                 rounds to 0.31.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Segments by which the window grows in a round trip; 0: so many that it is fair to Reno by the paper, 4 (1 - beta^2) / 3.
        alpha: f64 = 0.0, 0.0..=100.0;
        /// The factor by which congestion multiplies the window.
        beta: f64 = 0.875, 0.1..=0.99;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        let alpha = if self.alpha > 0.0 { self.alpha } else { friendly(self.beta) };
        Box::new(Gaimd::new(alpha, self.beta))
    }
}

/// Yang & Lam 2000, the relation of flows that are fair to Reno (eq. 1 of Tsaoussidis & Zhang 2002).
fn friendly(beta: f64) -> f64 {
    4.0 * (1.0 - beta * beta) / 3.0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_friendly_line_goes_through_reno_and_the_paper_s_choice() {
        assert!((friendly(0.5) - 1.0).abs() < 1e-12);
        assert!((friendly(0.875) - 0.3125).abs() < 1e-12);
    }
}
