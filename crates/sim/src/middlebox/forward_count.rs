//! Syndrome (Chen et al. 2002): the base station numbers what it sends over its wireless link.

use super::{notify, Agent, Crossing};
use std::collections::BTreeMap;
use whyloss_transport::Segment;

/// The agent.
#[derive(Debug, Default)]
pub(crate) struct ForwardCount {
    /// Data segments of each outlet that the link's queue has taken.
    counts: BTreeMap<u32, u32>,
}

impl Agent for ForwardCount {
    fn pass(&mut self, crossing: &Crossing, segment: &mut Segment) {
        if crossing.leaves && !segment.is_empty() {
            let count = self.counts.entry(crossing.from).or_default();
            *count = count.wrapping_add(1);
            notify(segment, |notices| notices.forwarded = Some(*count));
        }
    }

    /// It was not sent after all. Of a segment that is dropped later, in favour of another, the number is already followed by others: the
    /// next one is then given twice, and the receiver takes the loss for one of the link.
    fn dropped(&mut self, from: u32, segment: &Segment) {
        if !segment.is_empty() {
            let count = self.counts.entry(from).or_default();
            *count = count.wrapping_sub(1);
        }
    }
}
