//! No differentiation: every loss is congestion.

use super::{Cause, LossDifferentiator, Verdict};
use crate::kit::{Notes, Part};
use crate::path::Loss;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "none",
    summary: "Takes every loss for congestion.",
    reference: "RFC 5681",
    notes: Notes {
        idea:
            "Every loss is a queue that overflowed: what TCP has assumed since 1988, and right where links do not lose packets.",
        formula: "congestion, always",
        threshold: "",
        fails: "Wherever a link damages packets: A_w is 0 by construction.",
        errata: "",
    },
    ..Part::fixed(|_| Box::new(None))
};

/// What standard TCP assumes.
#[derive(Debug, Default)]
pub struct None;

impl LossDifferentiator for None {
    fn listens(&self) -> bool {
        false
    }

    fn judge(&mut self, _loss: &Loss) -> Verdict {
        Verdict { cause: Cause::Congestion, score: 0.0 }
    }
}
