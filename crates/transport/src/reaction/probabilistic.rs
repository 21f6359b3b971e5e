//! Reduce as often as congestion is likely.

use super::{Reaction, Response};
use crate::kit::{Build, Notes, Part};
use crate::path::Loss;
use crate::settings;
use crate::verdict::{Cause, Verdict};
use siphasher::sip::SipHasher13;
use std::hash::Hasher;

pub(super) const PART: Part<dyn Reaction> = Part {
    name: "probabilistic",
    summary: "Reduces with the probability that the score leaves to congestion, else keeps the window.",
    reference: "after Eddy, Ostermann & Allman 2004",
    notes: Notes::NONE,
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// The probability of reducing is never less (our reading: 1 in 20, so that no score makes a sender deaf).
        least: f64 = 0.05, 0.0..=1.0;
        /// Another one throws another coin for every loss.
        seed: u64 = 0, 0..=9_007_199_254_740_992;
    }
}

impl Build<dyn Reaction> for Settings {
    fn build(self) -> Box<dyn Reaction> {
        Box::new(Probabilistic::new(self.least, self.seed))
    }
}

/// The coin of `CETEN_C` with `P = 1 - score` in the place of the share of congestion among the losses (Eddy, Ostermann & Allman 2004, section 3).
///
/// The engine has no random numbers: the coin is a hash of the seed and of the transmission that was lost, so that the same run throws it
/// the same way. One coin is thrown an episode; if a later loss of it is judged again, its probability is held against the same coin.
/// The verdict itself is not asked, except that the unknown is congestion. Meant for scores that are probabilities; other
/// scores are taken as if they were.
#[derive(Debug)]
pub struct Probabilistic {
    least: f64,
    seed: u64,
    /// The episode's coin, in `[0, 1)`.
    coin: f64,
}

impl Probabilistic {
    /// Reduces with a probability of `least` or more, by the coins of `seed`.
    pub fn new(least: f64, seed: u64) -> Self {
        Self { least, seed, coin: 0.0 }
    }

    fn throw(&self, loss: &Loss) -> f64 {
        let mut hasher = SipHasher13::new_with_keys(self.seed, 0);
        hasher.write_u64(loss.start);
        hasher.write_u32(loss.transmission);
        hasher.write_u64(loss.sent_at.as_nanos());
        (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Reaction for Probabilistic {
    fn respond(&mut self, verdict: &Verdict, loss: &Loss) -> Response {
        if loss.first_of_episode {
            self.coin = self.throw(loss);
        }
        let congestion = (1.0 - verdict.score).max(self.least);
        if verdict.cause == Cause::Unknown || self.coin < congestion {
            Response::Reduce
        } else {
            Response::Keep
        }
    }
}
