//! No differentiation: every loss is congestion.

use super::{Cause, LossDifferentiator, Verdict};
use crate::path::Loss;

/// What standard TCP assumes.
#[derive(Debug, Default)]
pub struct None;

impl LossDifferentiator for None {
    fn judge(&mut self, _loss: &Loss) -> Verdict {
        Verdict { cause: Cause::Congestion, score: 0.0 }
    }
}
