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
        /// The first reduction, and any in slow start, halve the window, as in ns-2.
        halve_first: bool = false;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        let alpha = if self.alpha > 0.0 { self.alpha } else { friendly(self.beta) };
        Box::new(Gaimd { halves: Halves { first: self.halve_first, early: self.halve_first }, ..Gaimd::new(alpha, self.beta) })
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
    halves: Halves,
    undo: Halves,
}

/// When a reduction halves the window all the same.
#[derive(Clone, Copy, Debug, Default)]
struct Halves {
    /// The next one does.
    first: bool,
    /// Any in slow start does.
    early: bool,
}

impl Gaimd {
    /// `alpha` in segments a round trip, `beta` the factor of a reduction.
    pub fn new(alpha: f64, beta: f64) -> Self {
        Self { alpha, beta, slow_start: SlowStart::new(false), halves: Halves::default(), undo: Halves::default() }
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

    fn save(&mut self) {
        self.undo = self.halves;
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> u64 {
        let first = std::mem::take(&mut self.halves.first);
        let halve = first || self.halves.early && window.in_slow_start();
        (window.used(path) as f64 * if halve { 0.5 } else { self.beta }) as u64
    }

    fn timeout_threshold(&mut self, window: &Window, path: &Path) -> u64 {
        self.halves.first = false;
        window.used(path) / 2
    }

    fn on_timeout(&mut self, _window: &mut Window, _path: &Path) {
        self.slow_start.on_timeout();
    }

    fn on_undo(&mut self, _window: &mut Window, _path: &Path) {
        self.halves = self.undo;
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

    #[test]
    fn in_ns_2_the_first_reduction_and_any_in_slow_start_halve() {
        let path = Path { flight: 16_000, ..Path::default() };
        let beyond = |ssthresh| Window::new(1000, 16_000, ssthresh);
        let mut plain = Settings::default().build();
        assert_eq!(plain.threshold(&beyond(u64::MAX), &path), 14_000);
        let mut ns2 = Settings { halve_first: true, ..Settings::default() }.build();
        ns2.save();
        assert_eq!(ns2.threshold(&beyond(16_000), &path), 8000, "the first");
        assert_eq!(ns2.threshold(&beyond(16_000), &path), 14_000);
        assert_eq!(ns2.threshold(&beyond(17_000), &path), 8000, "in slow start");
        ns2.on_undo(&mut beyond(16_000), &path);
        assert_eq!(ns2.threshold(&beyond(16_000), &path), 8000, "the first again");
        let mut timed_out = Settings { halve_first: true, ..Settings::default() }.build();
        assert_eq!(timed_out.timeout_threshold(&beyond(16_000), &path), 8000);
        assert_eq!(timed_out.threshold(&beyond(16_000), &path), 14_000, "the timeout was the first");
    }
}
