//! The standard reaction: reduce whatever the verdict.

use super::{Reaction, Response};
use crate::kit::{Notes, Part};
use crate::path::Loss;
use crate::verdict::Verdict;

pub(super) const PART: Part<dyn Reaction> = Part {
    name: "reduce",
    summary: "Reduces the window whatever the verdict.",
    reference: "RFC 5681",
    notes: Notes::NONE,
    ..Part::fixed(|_| Box::new(Reduce))
};

/// RFC 5681: every loss is congestion.
#[derive(Debug, Default)]
pub struct Reduce;

impl Reaction for Reduce {
    fn listens(&self) -> bool {
        false
    }

    fn respond(&mut self, _verdict: &Verdict, _loss: &Loss) -> Response {
        Response::Reduce
    }
}
