//! Syndrome (Chen et al. 2002): the base station numbers what it sends over its wireless link.

use super::agent::{notify, Agent, Handling, Outbox, Side, Transit};
use super::table::Table;
use crate::address::{EndpointId, FlowId};
use crate::record::Held;
use whyloss_transport::kit::{Build, Notes, Part};
use whyloss_transport::{settings, Segment};

pub(super) const PART: Part<dyn Agent> = Part {
    name: "syndrome",
    summary: "Numbers the data segments that leave over the link; the differentiator `syndrome` reads the numbers.",
    reference: "Chen et al. 2002",
    notes: Notes {
        idea: "A receiver that finds a gap in the sequence numbers and none in the base station's knows that the segment never came to the link.",
        fails: "Where its option is stripped, and where the queue of the link drops what it has numbered before others that it keeps.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// How much it remembers.
    pub(super) struct Settings {
        /// Flows that are remembered; the one that was quiet for longest makes room, and is numbered from 1 again.
        flows: usize = 1024, 1..=1_000_000;
    }
}

impl Build<dyn Agent> for Settings {
    fn build(self) -> Box<dyn Agent> {
        Box::new(ForwardCount { counts: Table::new(self.flows) })
    }
}

/// Counts data segments and writes their numbers into them.
#[derive(Debug)]
pub(super) struct ForwardCount {
    /// Data segments of each endpoint of a flow that the link's queue has taken.
    counts: Table<[u32; 2]>,
}

impl ForwardCount {
    fn count(&mut self, from: EndpointId) -> &mut u32 {
        &mut self.counts.get_or_insert(from.flow(), Default::default).0[from.way().index()]
    }
}

impl Agent for ForwardCount {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment, _out: &mut Outbox) -> Handling {
        if transit.side == Side::Fixed && !segment.is_empty() {
            let count = self.count(transit.from);
            *count = count.wrapping_add(1);
            notify(segment, |notices| notices.forwarded = Some(*count));
        }
        Handling::Forward
    }

    /// It was not sent after all. Of a segment that is dropped later, in favour of another, the number is already followed by others: the
    /// next one is then given twice, and the receiver takes the loss for one of the link.
    fn dropped(&mut self, from: EndpointId, segment: &Segment) {
        if !segment.is_empty() {
            let count = self.count(from);
            *count = count.wrapping_sub(1);
        }
    }

    fn forget(&mut self, flow: FlowId) {
        self.counts.remove(flow);
    }

    fn restart(&mut self) {
        self.counts.clear();
    }

    fn held(&self) -> Held {
        const FLOW_OCTETS: u64 = size_of::<[u32; 2]>() as u64;
        let flows = self.counts.len() as u64;
        Held { flows, segments: 0, octets: flows * FLOW_OCTETS, flow_octets: flows.min(1) * FLOW_OCTETS }
    }
}
