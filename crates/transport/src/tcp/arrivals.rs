//! What the order and the times of arrivals say, for those who judge gaps.

use crate::arrival::Gap;
use crate::estimate::OneWay;
use crate::time::{Duration, Instant};

/// Follows the arrivals of segments with data.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// End of the highest data so far; 0 before the first.
    highest: u64,
    last_at: Option<Instant>,
    trips: OneWay,
}

/// What one arrival said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timing {
    pub spacing: Option<Duration>,
    pub trip: Option<i64>,
    pub gap: Option<Gap>,
}

impl Arrivals {
    /// Takes the peer's timestamps for ticks of this length until they have been measured.
    pub fn expect_tick(&mut self, tick: Duration) {
        self.trips.expect(tick);
    }

    /// A segment with the timestamp `value` arrived, with data or without: it tells of the peer's clock.
    pub fn on_timestamp(&mut self, now: Instant, value: u32) {
        self.trips.on_timestamp(now, value);
    }

    /// Takes note of data `[start, end)` that arrived; `first` is where the stream begins, `full_segment` the payload of a full
    /// segment, `value` its `TSval`, which [`Self::on_timestamp`] knows.
    pub fn note(&mut self, now: Instant, (start, end): (u64, u64), first: u64, full_segment: u32, value: Option<u32>) -> Timing {
        let expected = self.highest.max(first);
        let spacing = self.last_at.replace(now).map(|last| now.since(last));
        let trip = value.and_then(|value| self.trips.trip(now, value));
        let gap = (start > expected).then(|| Gap {
            start: expected,
            end: start,
            missing: (start - expected).div_ceil(u64::from(full_segment.max(1))) as u32,
        });
        self.highest = expected.max(end);
        Timing { spacing, trip, gap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(1);

    #[test]
    fn gaps_spacing_and_trips() {
        let mut arrivals = Arrivals::default();
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        for ms in 0..=50 {
            arrivals.on_timestamp(at(ms), (ms as u32).wrapping_sub(43));
        }
        let mut note = |ms: u64, start: u64, value: u32| arrivals.note(at(ms), (start, start + 100), 1000, 100, Some(value));
        assert_eq!(note(50, 1000, 7), Timing { spacing: None, trip: Some(0), gap: None });
        assert_eq!(note(60, 1100, 15), Timing { spacing: Some(TICK * 10), trip: Some(2_000_000), gap: None });
        let gap = Gap { start: 1200, end: 1400, missing: 2 };
        assert_eq!(note(61, 1400, 18), Timing { spacing: Some(TICK), trip: Some(0), gap: Some(gap) });
        // The repair is below what has arrived, and what follows is in order again.
        assert_eq!(note(62, 1200, 18).gap, None);
        assert_eq!(note(63, 1500, 20).gap, None);
        assert_eq!(note(64, 1650, 20).gap, Some(Gap { start: 1600, end: 1650, missing: 1 }));
    }

    #[test]
    fn a_stream_can_begin_with_a_gap() {
        let timing = Arrivals::default().note(Instant::ZERO, (1100, 1200), 1000, 100, None);
        assert_eq!((timing.gap, timing.trip), (Some(Gap { start: 1000, end: 1100, missing: 1 }), None));
    }
}
