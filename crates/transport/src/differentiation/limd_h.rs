//! LIMD/H (Kim, Lu & Bharghavan 1999), reconstructed: losses told apart by the history of rates.

use super::common::falling;
use super::{LossDifferentiator, Verdict};
use crate::estimate::{Backlog, RoundRate};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss, Path, Trigger};
use crate::settings;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "limd-h",
    summary: "Takes a loss for congestion if the network delivers less than it is sent, or the rate is back where it failed before (reconstructed).",
    reference: "after Kim, Lu & Bharghavan 1999",
    notes: Notes {
        idea: "A rate that the path refused before will be refused again, and one that falls behind what is sent says that somebody else has come. A loss \
               well below either has another cause.",
        formula: "R = W / RTT, E the rate delivered in the last round, H the mean of E at earlier throttles with gain 1/8; congestion if \
                  E < (1 - shortfall) R and E has fallen; a probe too far if R >= (1 - margin) H; else corruption",
        threshold: "`margin`: a larger one takes more losses for congestion, so A_w falls and A_c rises. `shortfall`: a larger one has the opposite effect.",
        fails: "H is stale after the capacity has grown: then a probe too far looks like corruption. Rates by acknowledgements are noisy, which blurs all \
                three classes.",
        errata: "A reconstruction: three classes by the history of effective rate and throttling are known, constants and inequalities are not, so no \
                 number here may be held against the published ones. Throttles are those of the sender, whoever ruled. Episodes that follow each other \
                 within a window escalate, the second to a probe, the third to congestion; they count however they were judged, so that no verdict \
                 depends on an earlier one. Congestion and probe are both congestion here. Before the first throttle there is no verdict.",
    },
    thresholds: &[Threshold::of_congestion("margin", Cut::Own), Threshold::of_corruption("shortfall", Cut::Nowhere)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Share of H below H from which on a rate is back where it failed before.
        margin: f64 = 0.15, 0.0..=1.0;
        /// Share of what is sent that has to be missing from what is delivered.
        shortfall: f64 = 0.15, 0.0..=1.0;
        /// Take the second and later ones of episodes that follow each other within a window for congestion.
        escalate: bool = true;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(LimdH::new(self.margin, self.shortfall, self.escalate))
    }
}

/// Weight of a throttle in the rate at which the path refused.
const GAIN: f64 = 0.125;

/// What a loss is for LIMD/H.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The network delivers less than it did: halve.
    Congestion,
    /// The flow's own increase went too far: step back.
    Probe,
    /// Neither: keep the window.
    NonCongestion,
}

/// The differentiator of LIMD/H.
#[derive(Debug)]
pub struct LimdH {
    /// Share below the rate that failed before.
    pub margin: f64,
    /// Share of what is sent that is not delivered.
    pub shortfall: f64,
    /// Take quick successions of episodes for congestion.
    pub escalate: bool,
    delivery: RoundRate,
    delay: Backlog,
    /// `H` in octets a second.
    refused: Option<f64>,
    /// The slow-start threshold and the delivery rate at the latest loss, until it is known whether it was a throttle.
    pending: Option<(u64, f64)>,
    /// Episodes in quick succession, the latest included.
    succession: u32,
    /// `SND.NXT` at the beginning of the latest.
    episode_end: u64,
}

impl LimdH {
    /// A predictor without history.
    pub fn new(margin: f64, shortfall: f64, escalate: bool) -> Self {
        Self {
            margin,
            shortfall,
            escalate,
            delivery: RoundRate::default(),
            delay: Backlog::default(),
            refused: None,
            pending: None,
            succession: 0,
            episode_end: 0,
        }
    }

    /// The class of a loss now, with the rate in proportion to the one that was refused; `None` without history.
    pub fn classify(&self, path: &Path) -> Option<(Class, f64)> {
        let delivered = self.delivery.last()?;
        let sending = path.cwnd as f64 / self.delay.round().mean()?.as_secs_f64();
        let level = sending / self.refused?;
        let falling_behind = delivered < (1.0 - self.shortfall) * sending && self.delivery.before_last() > Some(delivered);
        let class = match self.succession {
            3.. if self.escalate => Class::Congestion,
            _ if falling_behind => Class::Congestion,
            2 if self.escalate => Class::Probe,
            _ if level >= 1.0 - self.margin => Class::Probe,
            _ => Class::NonCongestion,
        };
        let decided = falling_behind || self.escalate && self.succession > 1;
        Some((class, if decided { f64::INFINITY } else { level }))
    }
}

impl LossDifferentiator for LimdH {
    fn on_ack(&mut self, ack: &Ack) {
        self.delivery.on_ack(ack);
        self.delay.on_ack(ack);
        if let Some((threshold, rate)) = self.pending.take() {
            if ack.path.ssthresh != threshold {
                self.refused = Some(self.refused.map_or(rate, |refused| refused + GAIN * (rate - refused)));
            }
        }
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let path = loss.path;
        if loss.first_of_episode || loss.trigger == Trigger::Timeout {
            let quick = self.succession > 0 && path.una < self.episode_end + path.cwnd;
            self.succession = if quick { self.succession + 1 } else { 1 };
            self.episode_end = path.nxt;
            self.pending = self.delivery.last().map(|rate| (path.ssthresh, rate));
        }
        match self.classify(path) {
            None => Verdict::UNKNOWN,
            Some((class, level)) => Verdict::decided(class == Class::NonCongestion, falling(level)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};

    /// A path that delivers 100 segments a second and has refused that rate once.
    fn throttled() -> Script {
        let mut sender = Script::new(built("limd-h", &[]));
        sender.rounds(5, 100.0);
        assert_eq!(sender.judge().cause, Unknown, "the path has never refused a rate");
        sender.path.ssthresh = 5000;
        sender.rounds(5, 100.0);
        sender
    }

    #[test]
    fn back_at_the_rate_that_failed_it_is_congestion_and_well_below_it_not() {
        let mut sender = throttled();
        assert_eq!((sender.judge().cause, sender.judge_later().score), (Congestion, 0.5), "R = H");
        let mut sender = throttled();
        sender.window(5).rounds(6, 100.0);
        assert_eq!(sender.judge().cause, Corruption, "R = H / 2");
        let mut sender = throttled();
        sender.window(9).rounds(6, 100.0);
        assert_eq!(sender.judge().cause, Congestion, "R = 0.9 H");
    }

    #[test]
    fn a_delivery_that_falls_behind_is_congestion() {
        let mut sender = throttled();
        sender.window(5).rounds(4, 100.0);
        // The same window takes 100 ms, but only every third segment is acknowledged.
        for _ in 0..4 {
            sender.pause(60.0).ack(100.0);
        }
        sender.pause(200.0).ack(100.0).pause(200.0).ack(100.0).pause(200.0).ack(100.0);
        assert_eq!((sender.judge().cause, sender.judge_later().score), (Congestion, 0.0));
    }

    #[test]
    fn a_loss_that_throttled_nothing_teaches_nothing() {
        let mut sender = Script::new(built("limd-h", &[]));
        sender.rounds(5, 100.0);
        sender.judge();
        sender.rounds(5, 100.0);
        assert_eq!(sender.judge().cause, Unknown);
    }

    #[test]
    fn episodes_in_quick_succession_escalate() {
        let mut sender = throttled();
        sender.window(5).rounds(12, 100.0);
        assert_eq!(sender.judge().cause, Corruption);
        assert_eq!(sender.judge_later().cause, Corruption, "the same episode");
        sender.rounds(1, 100.0);
        assert_eq!(sender.judge().cause, Congestion, "the second within a window");
        sender.rounds(4, 100.0);
        assert_eq!(sender.judge().cause, Corruption, "a window without a loss has passed");
    }
}
