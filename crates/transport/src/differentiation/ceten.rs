//! CETEN: routers tell how likely corruption is on the path, and what is lost beyond that is congestion.

use super::coin::uniform;
use super::{Cause, LossDifferentiator, Verdict};
use crate::kit::{Build, Notes, Part};
use crate::path::{Loss, Reported, Sent};
use crate::segment::Report;
use crate::settings;
use std::collections::VecDeque;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "ceten",
    summary: "Throws a coin with the share of corruption among all losses, which follows from what routers measured.",
    reference: "Krishnan et al. 2004; Eddy, Ostermann & Allman 2004",
    notes: Notes {
        idea: "Routers cannot say why this segment was lost, but how often their links corrupt: each multiplies a field of the packet by the share that \
               survives its link, and the receiver sends the product back. The sender counts all its losses; what corruption does not explain is congestion.",
        formula: "q = 1 - (1 - p) / S, with p the share of lost packets and S the probability to survive; corruption with probability 1 - max(floor, q / p)",
        threshold: "",
        fails: "Says nothing of a single loss: whatever its aggregate, it confuses as a coin of the same bias does. p has a relative error of about one over \
                the root of the number of losses that it is made of. Anybody on the path can lie.",
        errata: "The window of p, as many packets as hold 100 losses but at least 1000, and the bounds 0.05 and 1 of q / p are our reading. The score is \
                 1 - q / p, a probability; the verdict is the realisation of a coin, so that another threshold on the score does not give it. CETEN_C reacts to \
                 the verdict, CETEN_A (reaction `graded`) to the score.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Losses that the window of the loss rate holds.
        losses: usize = 100, 1..=10_000;
        /// Packets that the window of the loss rate holds at least.
        packets: u64 = 1000, 1..=1_000_000;
        /// The smallest share of congestion.
        floor: f64 = 0.05, 0.0..=1.0;
        /// Chooses another sequence of throws.
        seed: u64 = 0, 0..=1_000_000_000;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Ceten {
            losses: self.losses,
            packets: self.packets,
            floor: self.floor,
            seed: self.seed,
            sent: 0,
            lost_at: VecDeque::new(),
            survival: None,
        })
    }
}

/// Counts packets and losses, and takes what routers report of the links.
#[derive(Debug)]
pub struct Ceten {
    losses: usize,
    packets: u64,
    floor: f64,
    seed: u64,
    /// Packets sent so far.
    sent: u64,
    /// How many packets had been sent when each loss was noticed.
    lost_at: VecDeque<u64>,
    survival: Option<f64>,
}

impl Ceten {
    /// The share of packets that were lost, of late; above zero, because one was.
    fn loss_rate(&mut self) -> f64 {
        self.lost_at.push_back(self.sent);
        while self.lost_at.len() > self.losses && self.lost_at.front().is_some_and(|&at| at + self.packets < self.sent) {
            self.lost_at.pop_front();
        }
        let oldest = if self.lost_at.len() >= self.losses { self.lost_at.front().copied().unwrap_or(0) } else { 0 };
        let packets = (self.sent - oldest).max(self.packets.min(self.sent)).max(1);
        (self.lost_at.len() as f64 / packets as f64).min(1.0)
    }
}

/// The share of congestion among losses with probability `p` where packets survive corruption with probability `survival`: `q / p` from
/// `1 - p = survival * (1 - q)`, not below `floor` nor above 1.
fn congestion_share(p: f64, survival: f64, floor: f64) -> f64 {
    let q = 1.0 - (1.0 - p) / survival;
    // Not `clamp`, so that a survival of 0 makes no NaN.
    (q / p).max(floor).min(1.0)
}

impl LossDifferentiator for Ceten {
    fn wants_reports(&self) -> bool {
        true
    }

    fn wants_survival(&self) -> bool {
        true
    }

    fn on_sent(&mut self, _sent: &Sent) {
        self.sent += 1;
    }

    fn on_report(&mut self, reported: &Reported) {
        if let Report::Survival(survival) = reported.report {
            self.survival = Some(f64::from(*survival) / f64::from(u16::MAX));
        }
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let p = self.loss_rate();
        let Some(survival) = self.survival else { return Verdict { cause: Cause::Unknown, score: 0.0 } };
        let share = congestion_share(p, survival, self.floor);
        let congestion = uniform(self.seed, loss.start, loss.transmission) < share;
        Verdict { cause: if congestion { Cause::Congestion } else { Cause::Corruption }, score: 1.0 - share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Path, Trigger};
    use crate::reaction::{Graded, Reaction, Response};
    use crate::time::Instant;

    fn ceten() -> Ceten {
        Ceten { losses: 100, packets: 1000, floor: 0.05, seed: 0, sent: 0, lost_at: VecDeque::new(), survival: Some(0.98) }
    }

    fn loss(path: &Path, start: u64) -> Loss<'_> {
        let (sent_at, trigger) = (Instant::ZERO, Trigger::Rack);
        Loss { path, start, len: 1000, transmission: 0, sent_at, trigger, first_of_episode: true }
    }

    #[test]
    fn what_corruption_does_not_explain_is_congestion() {
        // e = 0.02, p = 0.05: q = 1 - 0.95 / 0.98 = 0.0306, q / p = 0.612, and the window is multiplied by 0.694.
        let share = congestion_share(0.05, 0.98, 0.05);
        assert!((share - 0.612).abs() < 5e-4, "{share}");
        let path = Path::default();
        let verdict = Verdict { cause: Cause::Corruption, score: 1.0 - share };
        let Response::Scale(factor) = Graded::new(1.0).respond(&verdict, &loss(&path, 0)) else { panic!("it scales") };
        assert!((factor - 0.694).abs() < 5e-4, "{factor}");
        assert_eq!(congestion_share(0.01, 0.98, 0.05), 0.05, "more corruption than losses");
        assert_eq!(congestion_share(0.05, 1.0, 0.05), 1.0);
        assert_eq!(congestion_share(1.0, 0.0, 0.05), 0.05, "no number");
        assert_eq!(congestion_share(0.5, 0.0, 0.05), 0.05);
    }

    #[test]
    fn the_loss_rate_is_that_of_a_hundred_losses_or_a_thousand_packets() {
        let mut few = ceten();
        few.sent = 2000;
        assert_eq!(few.loss_rate(), 1.0 / 2000.0, "everything, until there are a hundred losses");
        let mut many = ceten();
        for _ in 0..500 {
            many.sent += 20;
            many.loss_rate();
        }
        many.sent += 20;
        // The hundred and first loss before is 100 losses and 2000 packets away.
        let p = many.loss_rate();
        assert!((p - 0.05).abs() < 0.001, "{p}");
    }

    #[test]
    fn the_coin_falls_as_often_as_the_score_says() {
        let path = Path::default();
        let mut ceten = ceten();
        let (mut corruption, mut expected) = (0, 0.0);
        for n in 0..20_000 {
            ceten.sent += 20;
            let verdict = ceten.judge(&loss(&path, n * 1000));
            expected += verdict.score;
            corruption += u32::from(verdict.cause == Cause::Corruption);
        }
        // Four standard errors of a binomial share of about 0.39.
        assert!((f64::from(corruption) - expected).abs() < 4.0 * (20_000.0_f64 * 0.39 * 0.61).sqrt(), "{corruption} {expected}");
    }
}
