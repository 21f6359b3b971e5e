//! The other end's clock, read from the timestamps of its segments.

use crate::time::{Duration, Instant};

/// Ticks that timestamp clocks have: RFC 7323, 5.4 asks for 1 ms to 1 s; Linux also knows 1 us.
const TICKS: [Duration; 16] = [
    Duration::from_micros(1),
    Duration::from_micros(10),
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(4),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(40),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
];

/// Ticks that must have passed before their length is measured.
const FEWEST_TICKS: u64 = 20;

/// Learns how long a tick of the peer's timestamp clock is, which no option says, and counts its ticks.
#[derive(Clone, Debug, Default)]
pub struct PeerClock {
    origin: Option<Instant>,
    latest: u32,
    ticks: u64,
    tick: Option<Duration>,
    /// The last two measurements gave the same tick.
    trusted: bool,
    /// Time from the origin at which the tick is measured again.
    measure_at: Duration,
}

impl PeerClock {
    /// A segment with the timestamp `value` arrived at `now`. Returns the ticks from the first one to the latest.
    pub fn on_timestamp(&mut self, now: Instant, value: u32) -> u64 {
        let Some(origin) = self.origin else {
            (self.origin, self.latest) = (Some(now), value);
            return 0;
        };
        let step = value.wrapping_sub(self.latest) as i32;
        if step > 0 {
            self.latest = value;
            self.ticks += step as u64;
        }
        let elapsed = now.since(origin);
        if elapsed >= self.measure_at && self.ticks >= FEWEST_TICKS {
            // The delay of a segment varies, but what it varies by matters less and less.
            self.measure_at = elapsed * 2;
            let tick = Some(nearest_tick(elapsed / self.ticks));
            self.trusted = tick == self.tick;
            self.tick = tick;
        }
        self.ticks
    }

    /// The length of a tick, once enough have passed.
    pub fn tick(&self) -> Option<Duration> {
        self.tick
    }

    /// The length of a tick, once measuring twice as long has confirmed it.
    pub fn trusted_tick(&self) -> Option<Duration> {
        self.tick.filter(|_| self.trusted)
    }

    /// Over what time the tick was measured last.
    pub fn measured_over(&self) -> Duration {
        self.measure_at / 2
    }

    /// Ticks from the first timestamp to `value`, which may be older than the latest.
    pub fn ticks_to(&self, value: u32) -> i64 {
        self.ticks as i64 + i64::from(value.wrapping_sub(self.latest) as i32)
    }
}

/// The one of [`TICKS`] that has the smallest ratio to `measured`, in either direction.
fn nearest_tick(measured: Duration) -> Duration {
    let above = TICKS.partition_point(|tick| *tick < measured);
    let (Some(higher), Some(lower)) = (TICKS.get(above), above.checked_sub(1).map(|below| TICKS[below])) else {
        return TICKS[above.min(TICKS.len() - 1)];
    };
    // measured / lower < higher / measured
    let square = u128::from(measured.as_nanos()) * u128::from(measured.as_nanos());
    if square < u128::from(lower.as_nanos()) * u128::from(higher.as_nanos()) {
        lower
    } else {
        *higher
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that starts at `start`, a timestamp of which arrives every 7 ms over a path whose delay swings by 60 ms.
    fn after(tick: Duration, start: u32, timestamps: u64) -> PeerClock {
        let mut clock = PeerClock::default();
        for n in 0..timestamps {
            let sent = Duration::from_millis(7 * n);
            let delay = Duration::from_millis(20 + 60 * (n % 10) / 10);
            let value = start.wrapping_add((sent.as_nanos() / tick.as_nanos()) as u32);
            clock.on_timestamp(Instant::ZERO + sent + delay, value);
        }
        clock
    }

    #[test]
    fn the_tick_is_learned_and_survives_a_wrap() {
        for micros in [1, 1000, 4000, 10_000, 100_000] {
            let tick = Duration::from_micros(micros);
            for start in [0, u32::MAX - 3] {
                let clock = after(tick, start, 2000);
                assert_eq!(clock.tick(), Some(tick), "start {start}");
                assert_eq!(clock.ticks, 1999 * 7_000 / micros);
            }
        }
        assert_eq!(after(Duration::from_millis(500), 0, 100).tick(), None, "one tick in 0.7 s says nothing");
    }

    #[test]
    fn a_clock_that_stands_still_or_runs_backwards_has_no_tick() {
        let mut clock = PeerClock::default();
        for n in 0..1000u32 {
            assert_eq!(clock.on_timestamp(Instant::ZERO + Duration::from_millis(u64::from(n)), 500 - n % 2), 0);
        }
        assert_eq!(clock.tick(), None);
    }

    #[test]
    fn the_nearest_tick_is_nearest_by_ratio() {
        let nearest = |micros| nearest_tick(Duration::from_micros(micros)).as_nanos() / 1000;
        assert_eq!(
            [0, 1, 3, 4, 900, 1400, 1450, 4470, 4480, 70_000, 5_000_000].map(nearest),
            [1, 1, 1, 10, 1000, 1000, 2000, 4000, 5000, 50_000, 1_000_000]
        );
    }
}
