//! Differentiators that work at the receiver: they judge a gap in what arrives, and the verdict travels back in a report.

use super::Verdict;
use crate::arrival::{Arrival, Damaged, Gap};
use std::fmt;

/// Judges at the receiver why segments are missing between two arrivals.
///
/// It only looks. The one that rules is carried by the receiver agent `LossCause`, whose reports the sender
/// reads with [`Relayed`](super::Relayed). Any number can listen in shadow: their verdicts do not travel, the receiver's driver is told of
/// them as [`Event::Gap`](crate::tcp::Event::Gap) and whoever sees both ends joins them with the sender's losses.
pub trait GapDifferentiator: fmt::Debug + Send {
    /// One data segment in how many the peer has to mark for preferential dropping, if it judges by such marks.
    fn drop_precedence(&self) -> Option<u32> {
        None
    }

    /// A segment with data arrived. Called for every arrival in order of arrival, and before [`Self::judge`] for the one that shows a gap.
    fn on_arrival(&mut self, _arrival: &Arrival) {}

    /// A damaged segment of the connection arrived.
    fn on_damaged(&mut self, _damaged: &Damaged) {}

    /// Why is this missing? Asked once a gap, when the first segment beyond it arrives.
    fn judge(&mut self, gap: &Gap, arrival: &Arrival) -> Verdict;
}

/// A differentiator chosen at run time is one like any other.
impl<T: GapDifferentiator + ?Sized> GapDifferentiator for Box<T> {
    fn drop_precedence(&self) -> Option<u32> {
        (**self).drop_precedence()
    }

    fn on_arrival(&mut self, arrival: &Arrival) {
        (**self).on_arrival(arrival);
    }

    fn on_damaged(&mut self, damaged: &Damaged) {
        (**self).on_damaged(damaged);
    }

    fn judge(&mut self, gap: &Gap, arrival: &Arrival) -> Verdict {
        (**self).judge(gap, arrival)
    }
}
