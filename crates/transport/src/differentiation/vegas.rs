//! The three-state predictor that reads Vegas' backlog (after Bregni, Fratta & Martignon 2003).

use super::common::{falling, window};
use super::{LossDifferentiator, Verdict};
use crate::estimate::{backlog, Backlog};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss};
use crate::settings;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "vegas",
    summary: "Takes a loss for congestion if many segments wait in queues, for corruption if few, and for what the last one was in between.",
    reference: "after Bregni, Fratta & Martignon 2003",
    notes: Notes {
        idea: "Vegas' backlog is a poor predictor where it is neither high nor low; there the last clear verdict says more than the backlog does.",
        formula: "V = W (RTT - BaseRTT) / RTT at the loss; congestion if V >= beta, corruption if V <= alpha, in between as the loss before",
        threshold: "`beta`: a larger one takes more losses for corruption, so A_w rises and A_c falls. `alpha` has the same effect.",
        fails: "As Veno: the thresholds count segments, whatever the queue holds and however many share it. Biaz & Vaidya 1998 found such predictors \
                no better than a coin.",
        errata: "The constants are recalled, not verified. Between the thresholds there is no verdict until one loss has been clear.",
    },
    thresholds: &[Threshold::of_corruption("beta", Cut::Own), Threshold::of_corruption("alpha", Cut::Nowhere)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Segments in queues up to which a loss is corruption.
        alpha: f64 = 1.0, 0.0..=1000.0;
        /// Segments in queues from which on a loss is congestion; below `alpha` it counts as `alpha`.
        beta: f64 = 3.0, 0.0..=1000.0;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Vegas { alpha: self.alpha, beta: self.beta, backlog: Backlog::default(), crest: 0.0, drained: false })
    }
}

/// The predictor with memory.
#[derive(Debug)]
pub struct Vegas {
    /// Backlog in segments up to which a loss is corruption.
    pub alpha: f64,
    /// Backlog in segments from which on it is congestion.
    pub beta: f64,
    /// What the backlog is computed from.
    pub backlog: Backlog,
    /// The largest backlog at a loss since it was last at most `alpha` at one, or ever: all losses are congestion from the first that reaches
    /// `beta` on.
    crest: f64,
    /// Whether a loss has found the backlog at most at `alpha`.
    drained: bool,
}

impl LossDifferentiator for Vegas {
    fn on_ack(&mut self, ack: &Ack) {
        self.backlog.on_ack(ack);
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let Some((base, rtt)) = self.backlog.base_rtt().zip(self.backlog.latest_rtt()) else { return Verdict::UNKNOWN };
        let segments = backlog(window(loss.path), base, rtt);
        let low = segments <= self.alpha;
        self.drained |= low;
        self.crest = if low { segments } else { self.crest.max(segments) };
        match self.drained {
            true => Verdict::decided(self.crest <= self.alpha || self.crest < self.beta, falling(self.crest)),
            // With no threshold has there been corruption to go on with.
            false if self.crest >= self.beta => Verdict::decided(false, 0.0),
            false => Verdict::UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};

    #[test]
    fn between_the_thresholds_the_last_loss_counts() {
        let mut sender = Script::new(built("vegas", &[]));
        sender.window(20);
        assert_eq!(sender.judge().cause, Unknown);
        sender.ack(100.0);
        // V = 20 (RTT - 100) / RTT: 1 at 105.26, 3 at 117.65.
        let expected = [
            (110.0, Unknown),
            (118.0, Congestion),
            (110.0, Congestion),
            (105.0, Corruption),
            (110.0, Corruption),
            (117.0, Corruption),
            (118.0, Congestion),
            (106.0, Congestion),
            (105.0, Corruption),
        ];
        for (rtt, cause) in expected {
            sender.ack(rtt);
            assert_eq!(sender.judge().cause, cause, "{rtt}");
        }
    }
}
