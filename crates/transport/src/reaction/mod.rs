//! What a verdict does to the window. One file a reaction.

mod keep;
mod reduce;

pub use keep::Keep;
pub use reduce::Reduce;

use crate::differentiation::Verdict;
use crate::path::Loss;
use crate::scheme::Part;
use std::fmt;

/// Turns the verdict on a loss into a response of the congestion window on fast recovery.
pub trait Reaction: fmt::Debug + Send {
    /// What to do about the loss. Asked once an episode, and again if a later loss of the same episode is judged congestion after
    /// the first was not.
    fn respond(&mut self, verdict: &Verdict, loss: &Loss) -> Response;
}

/// What fast recovery does to the congestion window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Response {
    /// As for congestion: the congestion control's threshold.
    Reduce,
    /// Repair the loss and leave window and threshold as they are.
    Keep,
    /// Multiply the window by this factor, in `(0, 1]`.
    Scale(f64),
    /// Set the window to this many octets, if that is less than it is.
    Limit(u64),
}

/// All reactions.
pub static TABLE: &[Part<dyn Reaction>] = &[reduce::PART, keep::PART];
