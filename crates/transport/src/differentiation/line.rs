//! For tests: feeds a differentiator at the receiver with packets by number and time.

use super::{Cause, Gap, GapDifferentiator, Verdict};
use crate::arrival::{Arrival, ReceiveView};
use crate::segment::Segment;
use crate::time::{Duration, Instant};

const FULL: u64 = 1000;
const FIRST: u64 = 77;

/// What a receiver sees of a stream of full segments, numbered from 0.
#[derive(Debug)]
pub(super) struct Line<D> {
    pub differentiator: D,
    next: u64,
    last: Option<Instant>,
}

impl<D: GapDifferentiator> Line<D> {
    pub fn new(differentiator: D) -> Self {
        Self { differentiator, next: 0, last: None }
    }

    /// Packet `number` arrives at `at` µs after a relative trip of `trip` µs; the verdict if it shows a gap.
    pub fn packet(&mut self, number: u64, at: u64, trip: i64) -> Option<Verdict> {
        let now = Instant::ZERO + Duration::from_micros(at);
        let position = |number: u64| FIRST + number * FULL;
        let missing = number.saturating_sub(self.next);
        let gap = (missing > 0).then(|| Gap { start: position(self.next), end: position(number), missing: missing as u32 });
        let duplicate = number < self.next;
        self.next = self.next.max(number + 1);
        let end = position(self.next);
        let segment = Segment::default();
        let view = ReceiveView {
            first: FIRST,
            window_end: end + 100 * FULL,
            islands: &[],
            full_segment: FULL as u32,
            ..ReceiveView::new(now, end)
        };
        let spacing = self.last.replace(now).map(|last| now.since(last));
        let trip = Some(trip * 1000);
        let arrival =
            Arrival { view, start: position(number), len: FULL as u32, duplicate, spacing, trip, gap, segment: &segment };
        self.differentiator.on_arrival(&arrival);
        gap.map(|gap| self.differentiator.judge(&gap, &arrival))
    }

    /// As [`Self::packet`], only the cause.
    #[track_caller]
    pub fn cause(&mut self, number: u64, at: u64, trip: i64) -> Cause {
        self.packet(number, at, trip).expect("no gap").cause
    }
}
