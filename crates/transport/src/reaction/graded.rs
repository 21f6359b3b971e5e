//! Reduce by as much as congestion is likely.

use super::{Reaction, Response};
use crate::kit::{Build, Notes, Part};
use crate::path::Loss;
use crate::settings;
use crate::verdict::{Cause, Verdict};

pub(super) const PART: Part<dyn Reaction> = Part {
    name: "graded",
    summary: "Multiplies the window by 1 - P/2, where P is what the score leaves to congestion.",
    reference: "after Eddy, Ostermann & Allman 2004",
    notes: Notes::NONE,
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// The power to which P is raised.
        exponent: f64 = 1.0, 0.1..=10.0;
    }
}

impl Build<dyn Reaction> for Settings {
    fn build(self) -> Box<dyn Reaction> {
        Box::new(Graded::new(self.exponent))
    }
}

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
