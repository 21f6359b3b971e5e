//! LIMD/H's three answers: halve, step back, keep.

use super::{Reaction, Response};
use crate::kit::{Kind, Notes, Parameter, Part};
use crate::path::Loss;
use crate::verdict::{Cause, Verdict};

/// Its row.
pub(super) const PART: Part<dyn Reaction> = Part {
    name: "limd-h",
    summary: "Reduces for certain congestion, steps back a little for congestion that is not certain, keeps the window for corruption.",
    reference: "after Kim, Lu & Bharghavan 1999",
    notes: Notes {
        errata: "A reconstruction: the paper has three answers, but how far a probe loss steps back is our reading. A verdict has two causes; \
                 the differentiator `limd-h` scores congestion 0, and probe losses, which are congestion too, above 0. The second episode in \
                 quick succession scores 0 and halves.",
        ..Notes::NONE
    },
    parameters: &[Parameter {
        name: "step",
        summary: "The share of the window that a probe loss costs.",
        kind: Kind::Number { default: 0.1, min: 0.0, max: 0.5 },
    }],
    build: |arguments| Box::new(LimdH::new(arguments.number("step"))),
};

/// Congestion with a score of 0 is congestion loss, with a larger one probe loss: the flow's own increase went too far.
#[derive(Debug)]
pub struct LimdH {
    step: f64,
}

impl LimdH {
    /// A probe loss costs `step` of the window.
    pub fn new(step: f64) -> Self {
        Self { step }
    }
}

impl Reaction for LimdH {
    fn respond(&mut self, verdict: &Verdict, _loss: &Loss) -> Response {
        match verdict.cause {
            Cause::Corruption => Response::Keep,
            Cause::Congestion if verdict.score > 0.0 => Response::Scale(1.0 - self.step),
            Cause::Congestion | Cause::Unknown => Response::Reduce,
        }
    }
}
