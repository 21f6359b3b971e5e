//! Veno's test of the backlog (Fu & Liew 2003).

use super::common::{falling, window};
use super::{LossDifferentiator, Verdict};
use crate::estimate::{backlog, Backlog};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss, Path};
use crate::{choices, settings};

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "veno",
    summary: "Takes a loss for congestion if at least three segments of the flow wait in queues.",
    reference: "Fu & Liew 2003",
    notes: Notes {
        idea: "Vegas' estimate of how many of its own segments a flow has in the queues of its path. A flow with next to nothing there can hardly have \
               overflowed one.",
        formula: "N = W (RTT - BaseRTT) / RTT; corruption if N < beta, else congestion",
        threshold: "`beta`: a larger one takes more losses for corruption, so A_w rises and A_c falls.",
        fails: "beta counts segments, whatever the queue holds: several flows that share a queue have few segments each, so its overflow looks like \
                corruption; where the round-trip time varies by itself, as on 802.11, three segments seem to wait all the time.",
        errata: "Which round-trip time and window count is told differently. Here RTT is the smallest sample of the last complete round and N is computed \
                 at the last acknowledgement of new data before the loss; `evaluated = at-loss` takes the latest sample and the window at the \
                 loss instead. With fewer than three samples there is no verdict, as in Linux.",
    },
    thresholds: &[Threshold::of_corruption("beta", Cut::Falling)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Segments in queues from which on a loss is congestion.
        beta: f64 = 3.0, 0.0..=1000.0;
        /// When the backlog is computed: at the last acknowledgement of new data, or at the loss.
        evaluated: Evaluated;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Veno { beta: self.beta, evaluated: self.evaluated, backlog: Backlog::default(), window: 0.0 })
    }
}

/// Samples that are evidence.
const FEWEST: u64 = 3;

/// The differentiator of TCP Veno.
#[derive(Debug)]
pub struct Veno {
    /// Backlog in segments from which on a loss is congestion.
    pub beta: f64,
    /// When the backlog is computed.
    pub evaluated: Evaluated,
    /// What it is computed from.
    pub backlog: Backlog,
    /// The window in segments at the last acknowledgement of new data outside recovery.
    window: f64,
}

choices! {
    /// When the backlog is computed.
    pub enum Evaluated {
        /// At the last acknowledgement of new data, from the smallest sample of the last round.
        LastAck = "last-ack",
        /// At the loss, from the latest sample.
        AtLoss = "at-loss",
    }
}

impl Veno {
    fn segments(&self, path: &Path) -> Option<f64> {
        match self.evaluated {
            Evaluated::LastAck => self.backlog.segments(self.window),
            Evaluated::AtLoss => Some(backlog(window(path), self.backlog.base_rtt()?, self.backlog.latest_rtt()?)),
        }
    }
}

impl LossDifferentiator for Veno {
    fn on_ack(&mut self, ack: &Ack) {
        // What arrives in recovery was sent by another window than the one that lost.
        if self.evaluated == Evaluated::LastAck && (ack.duplicate || ack.in_recovery) {
            return;
        }
        self.backlog.on_ack(ack);
        self.window = window(ack.path);
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        match self.segments(loss.path).filter(|_| self.backlog.samples() >= FEWEST) {
            None => Verdict::UNKNOWN,
            Some(segments) => Verdict::decided(segments < self.beta, falling(segments)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};

    /// A window of 20 segments over a path of 100 ms whose last round took `rtt`.
    fn sender(evaluated: &str, rtt: f64) -> Script {
        let mut sender = Script::new(built("veno", &[("evaluated", evaluated.into())]));
        sender.window(20);
        sender.rounds(3, 100.0).rounds(3, rtt);
        sender
    }

    #[test]
    fn three_segments_are_congestion() {
        for evaluated in ["last-ack", "at-loss"] {
            // 20 * 17 / 117 = 2.906 and 20 * 18 / 118 = 3.051
            for (rtt, cause, segments) in [(117.0, Corruption, 2.906), (118.0, Congestion, 3.051)] {
                let verdict = sender(evaluated, rtt).judge();
                assert_eq!(verdict.cause, cause, "{rtt}");
                assert!((1.0 / verdict.score - 1.0 - segments).abs() < 0.001);
            }
        }
    }

    #[test]
    fn duplicate_acknowledgements_count_only_at_the_loss() {
        for (evaluated, cause) in [("last-ack", Corruption), ("at-loss", Congestion)] {
            let mut sender = sender(evaluated, 117.0);
            sender.duplicate(Some(118.0)).duplicate(Some(118.0)).duplicate(Some(118.0));
            assert_eq!(sender.judge().cause, cause, "{evaluated}");
        }
    }

    #[test]
    fn the_smallest_sample_of_a_round_counts() {
        let mut sender = sender("last-ack", 117.0);
        for n in 0..60 {
            sender.ack(if n % 20 == 7 { 110.0 } else { 150.0 });
        }
        // 20 * 10 / 110
        assert!((1.0 / sender.judge().score - 1.0 - 200.0 / 110.0).abs() < 1e-9);
    }

    #[test]
    fn two_samples_are_no_evidence() {
        let mut sender = Script::new(built("veno", &[]));
        sender.ack(100.0).ack(100.0);
        assert_eq!(sender.judge().cause, Unknown);
        sender.ack(100.0);
        assert_eq!((sender.judge().cause, sender.judge().score), (Corruption, 1.0));
    }
}
