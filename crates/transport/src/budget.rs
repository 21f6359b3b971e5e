//! The rate limit of the hardened checksum scheme, the same at both ends.

use crate::time::{Duration, Instant};

/// In each interval at most a share of the segments that the interval before brought, and never fewer than a few: what a flood of
/// forged packets can set off stays in proportion to the connection's own traffic.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    begin: Instant,
    segments: u32,
    left: u32,
}

/// Grants an interval on a connection at rest.
const FLOOR: u32 = 4;
/// One grant for this many segments.
const SEGMENTS_A_GRANT: u32 = 4;

impl Budget {
    pub(crate) fn new() -> Self {
        Self { begin: Instant::ZERO, segments: 0, left: FLOOR }
    }

    /// Takes note of segments that arrived intact.
    pub(crate) fn earn(&mut self, now: Instant, interval: Duration, segments: u32) {
        self.roll(now, interval);
        self.segments = self.segments.saturating_add(segments);
    }

    /// Whether one more is within the limit; counts it if so.
    pub(crate) fn spend(&mut self, now: Instant, interval: Duration) -> bool {
        self.roll(now, interval);
        let granted = self.left > 0;
        self.left -= u32::from(granted);
        granted
    }

    fn roll(&mut self, now: Instant, interval: Duration) {
        let elapsed = now.since(self.begin);
        if elapsed < interval {
            return;
        }
        let recent = if elapsed < interval * 2 { self.segments } else { 0 };
        *self = Self { begin: now, segments: 0, left: FLOOR.max(recent / SEGMENTS_A_GRANT) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(budget: &mut Budget, at_ms: u64) -> usize {
        let now = Instant::ZERO + Duration::from_millis(at_ms);
        (0..1000).take_while(|_| budget.spend(now, Duration::from_millis(100))).count()
    }

    #[test]
    fn a_quarter_of_the_last_interval_and_never_less_than_four() {
        let interval = Duration::from_millis(100);
        let mut budget = Budget::new();
        assert_eq!(spent(&mut budget, 0), 4);
        assert_eq!(spent(&mut budget, 99), 0);
        budget.earn(Instant::ZERO + Duration::from_millis(100), interval, 80);
        assert_eq!(spent(&mut budget, 150), 4, "what has just come counts for the next interval");
        assert_eq!(spent(&mut budget, 200), 20);
        assert_eq!(spent(&mut budget, 300), 4);
        budget.earn(Instant::ZERO + Duration::from_millis(350), interval, 80);
        assert_eq!(spent(&mut budget, 900), 4, "old traffic does not count");
    }
}
