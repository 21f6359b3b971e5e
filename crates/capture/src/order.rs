//! Segments in the order of time: captures of several interfaces, or of a card with several queues, have records that stand a little later than
//! they should.

use crate::headers::Segment;
use std::collections::VecDeque;
use whyloss_transport::time::{Duration, Instant};

/// So many segments wait at least for earlier ones, and at most twice as many,
const COUNT: usize = 1 << 10;
/// unless so much time has passed since them in the capture; twice as much, as the work is done now and then.
const SPAN: Duration = Duration::from_secs(1);

/// Brings segments that stand a little out of order into that of time.
///
/// One that is earlier than what was handed on already is handed on where it stands, behind all that waits.
#[derive(Debug, Default)]
pub struct InOrder {
    waiting: VecDeque<Segment>,
    /// Some of those that wait are out of order.
    disordered: bool,
    /// The latest time of one that was handed on since the clock was last turned back.
    reached: Instant,
    /// Segments that stood too far behind.
    pub late: u64,
}

impl InOrder {
    /// The next segment of the capture; `next` gets those whose turn has come.
    pub fn push(&mut self, segment: Segment, next: &mut dyn FnMut(&Segment)) {
        if segment.at < self.reached {
            self.late += 1;
            self.finish(next);
            self.reached = segment.at;
        }
        self.disordered |= self.waiting.back().is_some_and(|last| segment.at < last.at);
        self.waiting.push_back(segment);
        let first = self.waiting.front().map_or(segment.at, |first| first.at);
        if self.waiting.len() >= 2 * COUNT {
            self.hand_on(COUNT, next);
        } else if segment.at > first && segment.at.since(first) > SPAN * 2 {
            self.sort();
            let over = self.waiting.partition_point(|one| one.at < segment.at && segment.at.since(one.at) > SPAN);
            self.hand_on(over, next);
        }
    }

    /// No more will come.
    pub fn finish(&mut self, next: &mut dyn FnMut(&Segment)) {
        self.hand_on(self.waiting.len(), next);
    }

    /// Hands on the earliest ones.
    fn hand_on(&mut self, count: usize, next: &mut dyn FnMut(&Segment)) {
        self.sort();
        for segment in self.waiting.drain(..count) {
            self.reached = segment.at;
            next(&segment);
        }
    }

    fn sort(&mut self) {
        if self.disordered {
            // Those of the same time stay as they are.
            self.waiting.make_contiguous().sort_by_key(|segment| segment.at);
            self.disordered = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::tests::segment;

    /// The numbers of segments at these times, in microseconds, as they are handed on, and how many came too late.
    fn order(micros: &[u64]) -> (Vec<u64>, u64) {
        let mut in_order = InOrder::default();
        let mut numbers = Vec::new();
        let mut next = |segment: &Segment| numbers.push(segment.number);
        for (number, micros) in micros.iter().enumerate() {
            in_order.push(Segment { number: number as u64, at: Instant::from_nanos(1_000 * micros), ..segment() }, &mut next);
        }
        in_order.finish(&mut next);
        (numbers, in_order.late)
    }

    #[test]
    fn segments_come_in_the_order_of_time_and_else_of_the_capture() {
        assert_eq!(order(&[10, 30, 20, 20, 40]), (vec![0, 2, 3, 1, 4], 0));
    }

    #[test]
    fn each_comes_once_however_many_there_are() {
        // Blocks of 500 whose order is turned round.
        let times: Vec<u64> = (0..10_000).map(|number| number / 500 * 500 + 499 - number % 500).collect();
        let (numbers, late) = order(&times);
        assert_eq!(late, 0);
        assert!(numbers.iter().map(|number| times[*number as usize]).eq(0..10_000));
    }

    #[test]
    fn what_lies_too_far_back_is_counted_and_stays_behind() {
        // By count: the first 1024 were handed on when the one before it came.
        let mut times: Vec<u64> = (0..2 * COUNT as u64).map(|number| 1_000 + number).collect();
        times.push(1_001);
        let (numbers, late) = order(&times);
        assert_eq!((late, numbers.last()), (1, Some(&(2 * COUNT as u64))));
        // By time: after two seconds those of the first are gone.
        assert_eq!(order(&[0, 100, 2_500_000, 50, 2_600_000]), (vec![0, 1, 2, 3, 4], 1));
        // A clock that was turned back by an hour is followed, at the cost of one.
        let hour = 3_600_000_000;
        assert_eq!(order(&[hour, hour + 1, 5, 7, 6, 2_500_000]).1, 0);
        assert_eq!(order(&[hour, hour + 3_000_000, hour + 3_000_001, 5, 7, 6]), (vec![0, 1, 2, 3, 5, 4], 1));
    }
}
