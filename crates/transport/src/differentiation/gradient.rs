//! What a larger window brought (Biaz & Vaidya 1998): the normalised gradients of throughput and of delay.

use super::common::{squash, window};
use super::{LossDifferentiator, Verdict};
use crate::estimate::Backlog;
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss};
use crate::settings;

/// The row of the throughput gradient.
pub(super) const THROUGHPUT: Part<dyn LossDifferentiator> = Part {
    name: "ntg",
    summary: "Takes a loss for congestion if a larger window has brought little throughput.",
    reference: "Biaz & Vaidya 1998, after Wang & Crowcroft 1991",
    notes: Notes {
        idea: "Below saturation one more segment in the window brings one more segment a round trip; above it, nothing.",
        formula: "NTG = (W_i / RTT_i - W_j / RTT_j) / (W_i - W_j) * BaseRTT over the last two rounds of different windows; congestion if NTG < theta, \
                  else corruption",
        threshold: "`theta`: a larger one takes more losses for congestion, so A_w falls and A_c rises.",
        fails: "One segment more or less disappears in the noise of the round-trip time: its authors found it no better than a coin.",
        errata: "The publication divides by the throughput of a window of one segment; MSS / BaseRTT stands for it here.",
    },
    thresholds: &[Threshold::of_congestion("theta", Cut::Own)],
    ..Part::of::<ThroughputSettings>()
};

settings! {
    /// What can be set.
    struct ThroughputSettings {
        /// Gradient below which a loss is congestion: 1 is what an empty path gives, 0 what a full one gives.
        theta: f64 = 0.5, -100.0..=100.0;
    }
}

impl Build<dyn LossDifferentiator> for ThroughputSettings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Gradient::new(Quantity::Throughput, self.theta))
    }
}

/// The row of the delay gradient.
pub(super) const DELAY: Part<dyn LossDifferentiator> = Part {
    name: "ndg",
    summary: "Takes a loss for congestion if the delay has grown with the window.",
    reference: "Biaz & Vaidya 1998, after Jain 1989",
    notes: Notes {
        idea: "Below saturation the round-trip time does not depend on the window; above it, it grows with it.",
        formula: "NDG = (RTT_i - RTT_j) (W_i + W_j) / ((RTT_i + RTT_j) (W_i - W_j)) over the last two rounds of different windows; congestion if \
                  NDG > theta, else corruption",
        threshold: "`theta`: a larger one takes more losses for corruption, so A_w rises and A_c falls.",
        fails: "The sign of a small difference of two noisy round-trip times: its authors found it no better than a coin.",
        errata: "",
    },
    thresholds: &[Threshold::of_corruption("theta", Cut::Own)],
    ..Part::of::<DelaySettings>()
};

settings! {
    /// What can be set.
    struct DelaySettings {
        /// Gradient above which a loss is congestion.
        theta: f64 = 0.0, -100.0..=100.0;
    }
}

impl Build<dyn LossDifferentiator> for DelaySettings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Gradient::new(Quantity::Delay, self.theta))
    }
}

/// What is followed as the window changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The window in a round-trip time.
    Throughput,
    /// The mean round-trip time.
    Delay,
}

/// A predictor by gradient.
#[derive(Debug)]
pub struct Gradient {
    /// The quantity whose gradient is taken.
    pub quantity: Quantity,
    /// The gradient that divides congestion from corruption.
    pub theta: f64,
    rounds: Backlog,
    /// The window in segments at the beginning of the round under way.
    window: f64,
    /// Window and mean round-trip time in seconds of the last complete round.
    before: Option<(f64, f64)>,
    latest: Option<f64>,
}

impl Gradient {
    /// A predictor by the gradient of `quantity`; `theta` is the gradient that divides congestion from corruption.
    pub fn new(quantity: Quantity, theta: f64) -> Self {
        Self { quantity, theta, rounds: Backlog::default(), window: 0.0, before: None, latest: None }
    }

    /// The gradient from one round to another.
    fn between(&self, earlier: (f64, f64), later: (f64, f64)) -> Option<f64> {
        let ((w0, rtt0), (w1, rtt1)) = (earlier, later);
        match self.quantity {
            Quantity::Throughput => Some((w1 / rtt1 - w0 / rtt0) / (w1 - w0) * self.rounds.base_rtt()?.as_secs_f64()),
            Quantity::Delay => Some((rtt1 - rtt0) * (w1 + w0) / ((rtt1 + rtt0) * (w1 - w0))),
        }
    }
}

impl LossDifferentiator for Gradient {
    fn on_ack(&mut self, ack: &Ack) {
        let over = self.rounds.on_ack(ack);
        if !over && self.window > 0.0 {
            return;
        }
        let window = std::mem::replace(&mut self.window, window(ack.path));
        let Some(rtt) = self.rounds.round().mean().filter(|rtt| over && rtt.as_nanos() > 0) else { return };
        let round = (window, rtt.as_secs_f64());
        match self.before {
            Some(before) if before.0 == window => {}
            Some(before) => self.latest = self.between(before, round),
            None => {}
        }
        self.before = Some(round);
    }

    fn judge(&mut self, _loss: &Loss) -> Verdict {
        match (self.quantity, self.latest) {
            (_, None) => Verdict::UNKNOWN,
            (Quantity::Throughput, Some(gradient)) => Verdict::decided(gradient >= self.theta, squash(gradient)),
            (Quantity::Delay, Some(gradient)) => Verdict::decided(gradient <= self.theta, squash(-gradient)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};

    /// The verdict after rounds with these windows and round-trip times, and the score.
    fn after(name: &str, rounds: &[(u64, f64)]) -> (super::super::Cause, f64) {
        let mut sender = Script::new(built(name, &[]));
        for &(window, rtt) in rounds {
            // A change of the window takes a round to show; the third round has nothing else in it.
            sender.window(window).rounds(3, rtt);
        }
        (sender.judge().cause, sender.judge().score)
    }

    #[test]
    fn below_saturation_the_gradient_of_throughput_is_one_and_above_zero() {
        assert_eq!(after("ntg", &[(10, 100.0)]).0, Unknown, "one window has no gradient");
        let (cause, score) = after("ntg", &[(10, 100.0), (12, 100.0)]);
        assert_eq!(cause, Corruption);
        assert!((score - 0.75).abs() < 1e-9, "1 stands halfway between the middle and the top: {score}");
        assert_eq!(after("ntg", &[(10, 100.0), (20, 200.0)]).0, Congestion);
    }

    #[test]
    fn delay_that_grows_with_the_window_is_congestion() {
        assert_eq!(after("ndg", &[(10, 100.0)]).0, Unknown);
        assert_eq!(after("ndg", &[(10, 100.0), (20, 200.0)]).0, Congestion);
        assert_eq!(after("ndg", &[(10, 100.0), (20, 90.0)]).0, Corruption);
        assert_eq!(after("ndg", &[(10, 100.0), (12, 100.0)]), (Corruption, 0.5), "no change is no growth");
    }

    #[test]
    fn the_gradients_are_those_of_two_rounds() {
        use super::{Gradient, Quantity};
        let mut gradient = Gradient::new(Quantity::Delay, 0.0);
        // (0.12 - 0.10) * 22 / (0.22 * 2) = 1
        assert!((gradient.between((10.0, 0.10), (12.0, 0.12)).unwrap() - 1.0).abs() < 1e-12);
        gradient.quantity = Quantity::Throughput;
        assert_eq!(gradient.between((10.0, 0.10), (12.0, 0.12)), None, "BaseRTT is unknown");
    }
}
