//! The timestamps of the fixed host, moved on by the time that segments were here.

use whyloss_transport::estimate::PeerClock;
use whyloss_transport::{Duration, Instant, Segment};

/// The timestamps of the fixed host.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    clock: PeerClock,
    /// The latest that has come.
    came: Option<u32>,
    /// The latest that has left.
    left: Option<u32>,
}

/// The later one of two timestamps.
fn later(one: u32, other: Option<u32>) -> u32 {
    other.filter(|other| (other.wrapping_sub(one) as i32) > 0).unwrap_or(one)
}

impl Stamps {
    /// A segment has come with the timestamp `value`.
    pub fn comes(&mut self, now: Instant, value: u32) {
        self.clock.on_timestamp(now, value);
        self.came = Some(later(value, self.came));
    }

    /// The timestamp with which a segment leaves that came with `value` and was here for `residence`.
    fn leaves(&mut self, value: u32, residence: Duration) -> u32 {
        let moved = match self.clock.trusted_tick() {
            Some(tick) => value.wrapping_add((residence.as_nanos() / tick.as_nanos()) as u32),
            None if residence > Duration::ZERO => later(value, self.came),
            None => value,
        };
        *self.left.insert(later(moved, self.left))
    }

    /// Moves the timestamp of a segment that leaves after it was here for `residence`.
    pub fn stamp(&mut self, segment: &mut Segment, residence: Duration) {
        if let Some(timestamps) = &mut segment.options.timestamps {
            timestamps.value = self.leaves(timestamps.value, residence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Timestamps of a clock that ticks every `tick` ms have come for `seconds`.
    fn known(tick: u64, seconds: u64) -> Stamps {
        let mut stamps = Stamps::default();
        for n in 0..seconds * 100 {
            stamps.comes(Instant::ZERO + ms(10 * n), 1000 + (10 * n / tick) as u32);
        }
        stamps
    }

    #[test]
    fn a_timestamp_moves_by_as_many_ticks_as_the_segment_was_here() {
        for (tick, moved) in [(1, 350), (10, 35), (100, 3)] {
            let mut stamps = known(tick, 30);
            assert_eq!(stamps.leaves(2000, ms(350)), 2000 + moved, "{tick} ms");
        }
        let mut stamps = known(1, 5);
        let mut segment = Segment::default();
        stamps.stamp(&mut segment, ms(350));
        assert_eq!(segment, Segment::default(), "no timestamp, nothing to move");
    }

    #[test]
    fn until_the_tick_is_known_none_moves_beyond_the_latest_that_came() {
        let mut stamps = Stamps::default();
        stamps.comes(Instant::ZERO, 7);
        stamps.comes(Instant::ZERO + ms(1), 9);
        assert_eq!(stamps.leaves(7, ms(5000)), 9);
        assert_eq!(Stamps::default().leaves(7, ms(5000)), 7);
    }

    #[test]
    fn none_is_older_than_one_that_has_left() {
        let mut stamps = known(1, 5);
        assert_eq!(stamps.leaves(5900, ms(100)), 6000);
        // The way to the base station took 3 ms longer.
        assert_eq!(stamps.leaves(5997, Duration::ZERO), 6000);
        assert_eq!(stamps.leaves(6001, Duration::ZERO), 6001);
    }

    #[test]
    fn timestamps_wrap() {
        let mut stamps = known(1, 5);
        assert_eq!(stamps.leaves(u32::MAX - 10, ms(30)), 19);
        assert_eq!(stamps.leaves(u32::MAX, Duration::ZERO), 19);
        assert_eq!(stamps.leaves(25, Duration::ZERO), 25);
    }
}
