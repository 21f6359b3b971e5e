//! Throws a coin: the lower bound. Whatever is worse than this knows less than nothing.

use super::{LossDifferentiator, Verdict};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::Loss;
use crate::settings;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "coin",
    summary: "Throws a coin for each loss.",
    reference: "lower bound",
    notes: Notes {
        idea: "Looks at nothing. A differentiator that is not better than a coin of the same bias has learned nothing from what it measured.",
        formula: "corruption if x > 1 - p, with x uniform in [0, 1) by position and transmission",
        threshold: "p: the larger, the higher A_w = p and the lower A_c = 1 - p",
        fails: "Everywhere equally: its trade-off is the diagonal.",
        errata: "",
    },
    thresholds: &[Threshold::of_corruption("p", Cut::Complement)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// The probability of corruption.
        p: f64 = 0.5, 0.0..=1.0;
        /// Chooses another sequence of throws.
        seed: u64 = 0, 0..=1_000_000_000;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Coin { p: self.p, seed: self.seed })
    }
}

/// A coin with a bias.
#[derive(Debug)]
pub struct Coin {
    p: f64,
    seed: u64,
}

impl LossDifferentiator for Coin {
    fn judge(&mut self, loss: &Loss) -> Verdict {
        Verdict::by_threshold(uniform(self.seed, loss.start, loss.transmission), 1.0 - self.p)
    }
}

/// A number in `[0, 1)` that depends on nothing but the arguments: `SplitMix64`'s finaliser (Steele, Lea & Flood 2014) over their mix.
pub(super) fn uniform(seed: u64, start: u64, transmission: u32) -> f64 {
    let mut x =
        seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ start.wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ u64::from(transmission) << 56;
    for multiplier in [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB] {
        x = (x ^ x >> 30).wrapping_mul(multiplier);
    }
    ((x ^ x >> 31) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throws_are_even() {
        let n = 100_000;
        let mean: f64 = (0..n).map(|i| uniform(3, i * 1448, 0)).sum::<f64>() / n as f64;
        // Four standard errors of the mean of a uniform variable.
        assert!((mean - 0.5).abs() < 4.0 * (1.0 / 12.0 / n as f64).sqrt(), "{mean}");
        let below: usize = (0..n).filter(|&i| uniform(3, i * 1448, 1) < 0.1).count();
        assert!((below as f64 / n as f64 - 0.1).abs() < 4.0 * (0.09 / n as f64).sqrt(), "{below}");
    }
}
