//! Reduce a little when the loss was corruption.

use super::{Reaction, Response};
use crate::kit::{Build, Notes, Part};
use crate::path::Loss;
use crate::settings;
use crate::verdict::{Cause, Verdict};

pub(super) const PART: Part<dyn Reaction> = Part {
    name: "scale",
    summary: "Multiplies the window by a factor when the loss was corruption.",
    reference: "Fu & Liew 2003",
    notes: Notes::NONE,
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// The factor for corruption.
        factor: f64 = 0.8, 0.1..=1.0;
    }
}

impl Build<dyn Reaction> for Settings {
    fn build(self) -> Box<dyn Reaction> {
        Box::new(Scale::new(self.factor))
    }
}

/// Reduce for congestion and for the unknown, `factor` for corruption: what limits the harm of a wrong verdict (Fu & Liew 2003,
/// section III-B: 4/5).
#[derive(Debug)]
pub struct Scale {
    factor: f64,
}

impl Scale {
    /// With `factor` in `(0, 1]`.
    pub fn new(factor: f64) -> Self {
        Self { factor }
    }
}

impl Reaction for Scale {
    fn respond(&mut self, verdict: &Verdict, _loss: &Loss) -> Response {
        match verdict.cause {
            Cause::Corruption => Response::Scale(self.factor),
            Cause::Congestion | Cause::Unknown => Response::Reduce,
        }
    }
}
