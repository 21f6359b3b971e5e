//! Reduce by as much as congestion is likely.

use super::{Reaction, Response};
use crate::kit::{Kind, Notes, Parameter, Part};
use crate::path::Loss;
use crate::verdict::{Cause, Verdict};

/// Its row.
pub(super) const PART: Part<dyn Reaction> = Part {
    name: "graded",
    summary: "Multiplies the window by 1 - P/2, where P is what the score leaves to congestion.",
    reference: "after Eddy, Ostermann & Allman 2004",
    notes: Notes::NONE,
    parameters: &[Parameter {
        name: "exponent",
        summary: "The power to which P is raised.",
        kind: Kind::Number { default: 1.0, min: 0.1, max: 10.0 },
    }],
    build: |arguments| Box::new(Graded::new(arguments.number("exponent"))),
};

/// The factor `1 - P^k / 2` of `CETEN_A`, with `P = 1 - score` in the place of the share of congestion among the losses: half the window if
/// congestion is certain, all of it if corruption is (Eddy, Ostermann & Allman 2004, section 3).
///
/// The verdict itself is not asked, except that the unknown is congestion. Meant for scores that are probabilities; other scores are
/// taken as if they were.
#[derive(Debug)]
pub struct Graded {
    exponent: f64,
}

impl Graded {
    /// With `P` raised to `exponent`.
    pub fn new(exponent: f64) -> Self {
        Self { exponent }
    }
}

impl Reaction for Graded {
    fn respond(&mut self, verdict: &Verdict, _loss: &Loss) -> Response {
        if verdict.cause == Cause::Unknown {
            return Response::Reduce;
        }
        let factor = 1.0 - libm::pow(1.0 - verdict.score, self.exponent) / 2.0;
        if factor < 1.0 {
            Response::Scale(factor)
        } else {
            Response::Keep
        }
    }
}
