//! The standard reaction: reduce whatever the verdict.

use super::{Reaction, Response};
use crate::differentiation::Verdict;
use crate::path::Loss;

/// RFC 5681: every loss is congestion.
#[derive(Debug, Default)]
pub struct Reduce;

impl Reaction for Reduce {
    fn respond(&mut self, _verdict: &Verdict, _loss: &Loss) -> Response {
        Response::Reduce
    }
}
