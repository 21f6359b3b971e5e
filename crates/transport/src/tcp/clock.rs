//! The clock that a host's coarse timers follow.
//!
//! BSD has no timer of its own for each connection. The host's clock ticks, and each tick takes one from every timer that runs: a timer of `n`
//! ticks ends at the `n`-th tick after its start and so lasts between `n - 1` and `n` ticks, for all connections of the host alike
//! (Wright & Stevens 1995, 25.2 and 25.3).

use super::Granularity;
use crate::time::{Duration, Instant};

/// Rounds the ends of timers to the ticks of the host's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostClock {
    /// The length of a tick; zero: timers end exactly when they should.
    tick: Duration,
    /// When the first tick is.
    phase: Duration,
}

impl HostClock {
    /// That of a host whose timers have this `granularity` and whose clock ticks first at `phase`.
    pub fn new(granularity: Granularity, phase: Option<Duration>) -> Self {
        let tick = granularity.host_tick().unwrap_or(Duration::ZERO);
        // ns-2's ticks, which no timer waits for, begin at the origin of time.
        let phase = phase.filter(|_| tick > Duration::ZERO).unwrap_or(Duration::ZERO);
        Self { tick, phase }
    }

    /// Ticks of length `tick` after `from`, up to and including `to`.
    pub fn ticks_between(&self, tick: Duration, from: Instant, to: Instant) -> u64 {
        self.ticks_until(tick, to).saturating_sub(self.ticks_until(tick, from))
    }

    /// When a timer of `span` ends that starts at `now`. One that is shorter than a tick follows a faster clock, whose period it is
    /// (BSD's fast timer, which is there for delayed acknowledgements).
    pub fn after(&self, now: Instant, span: Duration) -> Instant {
        let tick = self.tick.min(span);
        if tick == Duration::ZERO {
            return now + span;
        }
        let ticks = span.as_nanos().div_ceil(tick.as_nanos());
        let since_tick = Duration::from_nanos((now.as_nanos() + self.lead(tick)) % tick.as_nanos());
        now + (tick * ticks - since_tick)
    }

    /// Ticks up to and including `at`, from some beginning.
    fn ticks_until(&self, tick: Duration, at: Instant) -> u64 {
        (at.as_nanos() + self.lead(tick)) / tick.as_nanos().max(1)
    }

    /// How long before the origin of time the last tick was, in nanoseconds.
    fn lead(&self, tick: Duration) -> u64 {
        let tick = tick.as_nanos().max(1);
        (tick - self.phase.as_nanos() % tick) % tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + ms(millis)
    }

    fn clock(granularity: Granularity, phase: u64) -> HostClock {
        HostClock::new(granularity, Some(ms(phase)))
    }

    #[test]
    fn n_ticks_last_between_n_less_one_and_n() {
        let clock = clock(Granularity::Net3(ms(500)), 120);
        // Ticks at 120, 620, 1120, 1620, 2120 ms ...
        for (start, span, end) in [
            (700, 1000, 1620),
            (621, 1000, 1620),
            (620, 1000, 1620),
            (619, 1000, 1120),
            (1119, 1000, 1620),
            (1119, 3000, 3620),
            (700, 1200, 2120),
            (50, 500, 120),
        ] {
            assert_eq!(clock.after(at(start), ms(span)), at(end), "{span} ms from {start} ms");
        }
    }

    #[test]
    fn a_timer_within_a_tick_has_a_faster_clock() {
        let clock = clock(Granularity::FreeBsd(ms(500)), 120);
        // 120, 320, 520, 720 ms ...
        for (start, end) in [(320, 520), (321, 520), (519, 520), (0, 120)] {
            assert_eq!(clock.after(at(start), ms(200)), at(end), "{start} ms");
        }
    }

    #[test]
    fn ticks_are_counted_on_the_hosts_clock() {
        let clock = clock(Granularity::Net3(ms(500)), 120);
        for (from, to, ticks) in [(121, 619, 0), (619, 620, 1), (620, 1119, 0), (600, 1121, 2), (0, 120, 1)] {
            assert_eq!(clock.ticks_between(ms(500), at(from), at(to)), ticks, "{from} to {to} ms");
        }
    }

    #[test]
    fn other_models_end_their_timers_to_the_nanosecond() {
        for granularity in [Granularity::Ticks(ms(10)), Granularity::Fine(ms(1))] {
            assert_eq!(clock(granularity, 120).after(at(3), ms(1001)), at(1004));
        }
    }
}
