//! Keep the window when the loss was corruption.

use super::{Reaction, Response};
use crate::differentiation::{Cause, Verdict};
use crate::path::Loss;

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
