//! Reduce a little when the loss was corruption.

use super::{Reaction, Response};
use crate::kit::{Kind, Notes, Parameter, Part};
use crate::path::Loss;
use crate::verdict::{Cause, Verdict};

/// Its row.
pub(super) const PART: Part<dyn Reaction> = Part {
    name: "scale",
    summary: "Multiplies the window by a factor when the loss was corruption.",
    reference: "Fu & Liew 2003",
    notes: Notes::NONE,
    parameters: &[Parameter {
        name: "factor",
        summary: "The factor for corruption.",
        kind: Kind::Number { default: 0.8, min: 0.1, max: 1.0 },
    }],
    build: |arguments| Box::new(Scale::new(arguments.number("factor"))),
};

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
