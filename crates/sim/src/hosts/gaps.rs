//! What differentiators at the receivers thought of gaps.

use crate::address::FlowId;
use std::collections::BTreeMap;
use whyloss_transport::differentiation::{Cause, Verdict};
use whyloss_transport::tcp::{GapRecord, LossRecord};

/// The gaps that receivers found, by flow and offset.
#[derive(Debug, Default)]
pub(crate) struct Gaps(BTreeMap<(FlowId, u64), GapRecord>);

impl Gaps {
    pub fn insert(&mut self, flow: FlowId, gap: GapRecord) {
        self.0.insert((flow, gap.offset), gap);
    }

    /// Appends the receiver's verdicts to those of the sender. They are on the gap in which the loss lies, so only on first
    /// transmissions: a lost retransmission leaves no gap.
    pub fn join(&self, flow: FlowId, judges: usize, record: &mut LossRecord) {
        let unknown = Verdict { cause: Cause::Unknown, score: 0.0 };
        let gap = self.0.range((flow, 0)..=(flow, record.offset)).next_back().map(|(_, gap)| gap);
        let gap = gap.filter(|gap| record.transmission == 0 && record.offset < gap.offset + gap.len);
        match gap {
            Some(gap) => record.shadows.extend_from_slice(&gap.verdicts),
            None => record.shadows.extend(std::iter::repeat_n(unknown, judges)),
        }
    }

    /// Forgets the gaps that end at `below` of their flow or before it, from the first on: a later one can hide it.
    pub fn forget(&mut self, below: impl Fn(FlowId) -> u64) {
        let mut kept = None;
        self.0.retain(|(flow, _), gap| {
            if kept == Some(*flow) || gap.offset + gap.len > below(*flow) {
                kept = Some(*flow);
                return true;
            }
            false
        });
    }
}
