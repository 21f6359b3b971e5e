//! Carries the verdicts of a differentiator at the receiver back to the sender.

use super::{Arrival, Damaged, ReceiveView, ReceiverAgent};
use crate::differentiation::{Cause, GapDifferentiator};
use crate::segment::{CauseReport, Report};
use std::collections::VecDeque;

/// Holes that are remembered; more than any window leaves open in practice. Beyond it the oldest verdict is forgotten, and the sender takes
/// the loss for congestion.
const MAX_HOLES: usize = 256;

/// Repeats on each acknowledgement the verdict on the lowest open hole until it is filled, so that lost acknowledgements lose nothing.
#[derive(Debug)]
pub struct LossCause {
    differentiator: Box<dyn GapDifferentiator>,
    classifier: u8,
    holes: VecDeque<Hole>,
    /// Segments judged corrupted so far.
    count: u8,
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    start: u64,
    end: u64,
    cause: Cause,
}

impl LossCause {
    /// Reports what `differentiator` judges; `classifier` (0 to 15) names it on the wire.
    pub fn new(classifier: u8, differentiator: Box<dyn GapDifferentiator>) -> Self {
        Self { differentiator, classifier, holes: VecDeque::new(), count: 0 }
    }
}

impl ReceiverAgent for LossCause {
    fn wants_reports(&self) -> bool {
        true
    }

    fn drop_precedence(&self) -> Option<u32> {
        self.differentiator.drop_precedence()
    }

    fn on_arrival(&mut self, arrival: &Arrival) {
        self.differentiator.on_arrival(arrival);
        let Some(gap) = &arrival.gap else { return };
        let cause = self.differentiator.judge(gap, arrival).cause;
        if cause == Cause::Corruption {
            self.count = self.count.wrapping_add(gap.missing as u8);
        }
        if self.holes.len() == MAX_HOLES {
            self.holes.pop_front();
        }
        self.holes.push_back(Hole { start: gap.start, end: gap.end, cause });
    }

    fn on_damaged(&mut self, damaged: &Damaged) -> bool {
        self.differentiator.on_damaged(damaged);
        false
    }

    fn report(&mut self, view: &ReceiveView) -> Option<Report> {
        while self.holes.front().is_some_and(|hole| hole.end <= view.next) {
            self.holes.pop_front();
        }
        let hole = self.holes.front()?;
        let hole_offset = hole.start.saturating_sub(view.next).try_into().unwrap_or(u32::MAX);
        Some(Report::Cause(CauseReport { cause: hole.cause, classifier: self.classifier, count: self.count, hole_offset }))
    }
}
