//! When segments left their sender, by its own clock: timestamps tell what a queue before the capture hides.
//!
//! A queue delays what a capture behind it sees, and spaces it evenly. What the sender waited for shows only in its timestamps.

use crate::trips::Reaction;
use whyloss_transport::time::{Duration, Instant};

/// Ticks of the timestamp clocks that are in use, in nanoseconds (RFC 7323, 5.4, and what systems do).
const TICKS: [u64; 4] = [1_000, 1_000_000, 4_000_000, 10_000_000];
/// The tick is known after so long,
const LONG_ENOUGH: u64 = 100_000_000;
/// and so many ticks.
const ENOUGH: u64 = 8;
/// The shortest delay counts for one or two of these spans, as clocks drift and paths change.
const SPAN: u64 = 30_000_000_000;
/// A queue holds nothing for so long. If it seems so, the timestamps come from no clock.
const LONGEST: u64 = 120_000_000_000;

/// The clock of one sender, as its timestamps show it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Departures {
    first: Option<(u64, u32)>,
    /// Nanoseconds; none until it is known.
    tick: u64,
    broken: bool,
    /// The smallest difference of the clocks in this span and in the one before, and when this one began.
    least: [i64; 2],
    began: u64,
    /// How long the sender takes from an acknowledgement in the capture to what it lets out, without the queue before the capture.
    pub reaction: Reaction,
}

impl Departures {
    /// A segment with data and this timestamp was captured.
    pub fn on_segment(&mut self, at: Instant, timestamp: u32) {
        let at = at.as_nanos();
        let Some((began, first)) = self.first else {
            self.first = Some((at, timestamp));
            return;
        };
        if self.broken {
            return;
        }
        if self.tick == 0 {
            let (passed, ticks) = (at.saturating_sub(began), u64::from(timestamp.wrapping_sub(first)));
            if passed < LONG_ENOUGH || !(ENOUGH..1 << 31).contains(&ticks) {
                return;
            }
            // A queue that grows or shrinks meanwhile changes what passes.
            let fits = |tick: &u64| (tick * 3 / 4..=tick + tick / 2).contains(&(passed / ticks));
            let Some(tick) = TICKS.into_iter().find(fits) else { return };
            self.tick = tick;
            (self.least, self.began) = ([i64::MAX; 2], at);
        }
        let apart = self.apart(at, timestamp);
        if at >= self.began.saturating_add(SPAN) {
            (self.least, self.began) = ([i64::MAX, self.least[0]], at);
        }
        self.least[0] = self.least[0].min(apart);
        self.broken = apart.abs_diff(self.least[0].min(self.least[1])) > LONGEST;
    }

    /// By how much the capture's clock is ahead of the sender's, from an origin of their own.
    fn apart(&self, at: u64, timestamp: u32) -> i64 {
        let (began, first) = self.first.unwrap_or_default();
        // Differences on circles, with their signs.
        let ticks = i64::from(timestamp.wrapping_sub(first) as i32);
        at.wrapping_sub(began) as i64 - ticks * self.tick as i64
    }

    /// The tick, once it is known.
    pub fn tick(&self) -> Option<Duration> {
        (self.tick > 0 && !self.broken).then(|| Duration::from_nanos(self.tick))
    }

    /// When what was captured at `at` with this timestamp would have been captured, had it waited nowhere.
    pub fn of(&self, at: Instant, timestamp: Option<u32>) -> Instant {
        let Some(timestamp) = timestamp.filter(|_| self.tick().is_some()) else { return at };
        let least = self.least[0].min(self.least[1]);
        let waited = self.apart(at.as_nanos(), timestamp).saturating_sub(least);
        // Within a tick anything can be.
        let waited = u64::try_from(waited).unwrap_or(0);
        if waited <= self.tick * 2 {
            return at;
        }
        Instant::from_nanos(at.as_nanos().saturating_sub(waited - self.tick / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn what_waited_left_earlier() {
        let mut departures = Departures::default();
        // Every 5 ms one leaves; 20 ms later it passes, and from the 100th on a queue grows by 2 ms with each.
        for number in 0..200_u64 {
            let queue = number.saturating_sub(100) * 2;
            departures.on_segment(at(20 + number * 5 + queue), 77 + number as u32 * 5);
        }
        assert_eq!(departures.tick(), Some(Duration::from_millis(1)));
        let passed = at(20 + 1000 + 200);
        let left = departures.of(passed, Some(77 + 1000));
        assert!(passed.since(left) >= Duration::from_millis(198) && passed.since(left) <= Duration::from_millis(201), "{left:?}");
        assert_eq!(departures.of(at(1021), Some(77 + 1000)), at(1021), "no queue");
        assert_eq!(departures.of(passed, None), passed);
    }

    #[test]
    fn timestamps_of_no_clock_say_nothing() {
        let mut departures = Departures::default();
        for number in 0..200_u64 {
            departures.on_segment(at(number * 5), (number as u32).wrapping_mul(0x9E37_79B9));
        }
        assert_eq!(departures.of(at(2000), Some(7)), at(2000));
        // 64 ticks a second: none of those that are in use.
        let mut odd = Departures::default();
        (0..200_u64).for_each(|number| odd.on_segment(at(number * 50), (number * 50 * 64 / 1000) as u32));
        assert_eq!(odd.tick(), None);
    }
}
