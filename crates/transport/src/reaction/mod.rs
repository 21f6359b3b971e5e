//! What a verdict does to the window. One file a reaction.

mod bandwidth;
mod bulk_repeat;
mod graded;
mod keep;
mod limd_h;
mod probabilistic;
mod probing;
mod reduce;
mod scale;
mod selective;
#[cfg(test)]
mod tests;

pub use bandwidth::Bandwidth;
pub use bulk_repeat::BulkRepeat;
pub use graded::Graded;
pub use keep::Keep;
pub use limd_h::LimdH;
pub use probabilistic::Probabilistic;
pub use probing::Probing;
pub use reduce::Reduce;
pub use scale::Scale;
pub use selective::Selective;

use crate::kit::Part;
use crate::path::{Ack, Loss, Probed, Reported};
use crate::verdict::Verdict;
use std::fmt;

/// Turns the verdict on a loss into a response of the congestion window on fast recovery.
pub trait Reaction: fmt::Debug + Send {
    /// Whether it is to be told of acknowledgements. Asked once, when the connection is made; false spares each packet a call in vain.
    fn listens(&self) -> bool {
        true
    }

    /// An acknowledgement arrived. For reactions that measure the path.
    fn on_ack(&mut self, _ack: &Ack) {}

    /// The receiver reported something: the window to set in octets, if that says it.
    fn on_report(&mut self, _reported: &Reported) -> Option<u64> {
        None
    }

    /// Whether the first loss of an episode sets off a probe cycle, during which data waits, and the factor by which the probe timer grows with each probe in a row
    /// that is lost.
    fn probes(&self) -> Option<f64> {
        None
    }

    /// The probe cycle is over; [`respond`](Self::respond) comes next, unless everything has arrived by now.
    fn on_probed(&mut self, _probed: &Probed) {}

    /// What to do about the loss. Asked once an episode, and again if a later loss of the same episode is judged congestion after
    /// the first was not.
    fn respond(&mut self, verdict: &Verdict, loss: &Loss) -> Response;

    /// What fast recovery sends again. Asked at its beginning.
    fn repair(&mut self, _verdict: &Verdict) -> Repair {
        Repair::Lost
    }
}

/// What fast recovery sends again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// What is taken for lost.
    Lost,
    /// All that may be missing. With SACK: everything below the highest SACKed octet that is not SACKed, without waiting for more to be
    /// SACKed above it. Without SACK: everything that is outstanding, one segment for each duplicate acknowledgement.
    Bulk,
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
    /// Set the threshold to this many octets, and the window to no more.
    Limit(u64),
}

/// The built-in reactions, which scenarios can name.
pub static TABLE: &[Part<dyn Reaction>] = &[
    reduce::PART,
    keep::PART,
    scale::PART,
    bandwidth::PART,
    graded::PART,
    probabilistic::PART,
    bulk_repeat::PART,
    limd_h::PART,
    selective::PART,
    probing::PART,
];
