//! Syndrome (Chen et al. 2002): the base station numbers what it sends over its wireless link.

use super::agent::{notify, Agent, Transit};
use crate::address::EndpointId;
use std::collections::BTreeMap;
use whyloss_transport::Segment;

/// Counts data segments and writes their numbers into them.
#[derive(Debug, Default)]
pub(crate) struct ForwardCount {
    /// Data segments of each endpoint that the link's queue has taken.
    counts: BTreeMap<EndpointId, u32>,
}

impl Agent for ForwardCount {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment) {
        if transit.leaves && !segment.is_empty() {
            let count = self.counts.entry(transit.from).or_default();
            *count = count.wrapping_add(1);
            notify(segment, |notices| notices.forwarded = Some(*count));
        }
    }

    /// It was not sent after all. Of a segment that is dropped later, in favour of another, the number is already followed by others: the
    /// next one is then given twice, and the receiver takes the loss for one of the link.
    fn dropped(&mut self, from: EndpointId, segment: &Segment) {
        if !segment.is_empty() {
            let count = self.counts.entry(from).or_default();
            *count = count.wrapping_sub(1);
        }
    }
}
