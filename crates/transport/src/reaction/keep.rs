//! Keep the window when the loss was corruption.

use super::{Reaction, Response};
use crate::kit::{Notes, Part};
use crate::path::Loss;
use crate::verdict::{Cause, Verdict};

pub(super) const PART: Part<dyn Reaction> = Part {
    name: "keep",
    summary: "Leaves the window as it is when the loss was corruption.",
    reference: "Garcia & Brunstrom 2004",
    notes: Notes::NONE,
    ..Part::fixed(|_| Box::new(Keep))
};

/// Reduce for congestion and for the unknown, keep for corruption.
#[derive(Debug, Default)]
pub struct Keep;

impl Reaction for Keep {
    fn respond(&mut self, verdict: &Verdict, _loss: &Loss) -> Response {
        match verdict.cause {
            Cause::Corruption => Response::Keep,
            Cause::Congestion | Cause::Unknown => Response::Reduce,
        }
    }
}
