//! What the order and the times of arrivals say, for those who judge gaps.

use crate::differentiation::Gap;
use crate::time::{Duration, Instant};

/// Follows the arrivals of segments with data.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// End of the highest data so far; 0 before the first.
    highest: u64,
    last_at: Option<Instant>,
    /// The first `TSval` and when it came: later ones are measured from here, so that the clocks need not agree.
    origin: Option<(Instant, u32)>,
}

/// What one arrival said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timing {
    pub spacing: Option<Duration>,
    pub trip: Option<i64>,
    pub gap: Option<Gap>,
}

impl Arrivals {
    /// Takes note of data `[start, end)` that arrived; `first` is where the stream begins, `full_segment` the payload of a full
    /// segment, `value` its `TSval` in units of `tick`.
    pub fn note(
        &mut self,
        now: Instant,
        (start, end): (u64, u64),
        first: u64,
        full_segment: u32,
        timestamp: Option<(u32, Duration)>,
    ) -> Timing {
        let expected = self.highest.max(first);
        let spacing = self.last_at.replace(now).map(|last| now.since(last));
        let trip = timestamp.map(|(value, tick)| {
            let &mut (at, base) = self.origin.get_or_insert((now, value));
            let sent = i64::from(value.wrapping_sub(base) as i32) * tick.as_nanos() as i64;
            now.since(at).as_nanos() as i64 - sent
        });
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
        let mut note = |ms: u64, start: u64, value: u32| {
            arrivals.note(Instant::ZERO + Duration::from_millis(ms), (start, start + 100), 1000, 100, Some((value, TICK)))
        };
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
