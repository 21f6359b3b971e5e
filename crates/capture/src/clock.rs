//! The clock of a capture: how fine it is, and whether it jumped.

use serde::Serialize;
use whyloss_transport::time::{Duration, Instant};

/// Units that clocks have, in nanoseconds.
const UNITS: [u64; 7] = [1_000_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100];

/// What the times of records show of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Clock {
    /// All times are multiples of so many nanoseconds; 0 without records.
    pub resolution_ns: u64,
    /// Records that are earlier than the one before them.
    pub backward: u64,
    /// By how much at most.
    pub most_backward_ns: u64,
    /// Jumps that the timestamps of the hosts do not follow, as so many connections saw them.
    pub jumps: u64,
    /// The largest of these, forward.
    pub largest_jump_ns: u64,
    /// Segments that stood so far behind earlier ones that they were not brought into the order of time.
    pub late: u64,
    #[serde(skip)]
    latest: u64,
    #[serde(skip)]
    unit: usize,
}

impl Clock {
    /// A record has this time.
    pub fn note(&mut self, at: Instant) {
        let at = at.as_nanos();
        while self.unit < UNITS.len() && at % UNITS[self.unit] != 0 {
            self.unit += 1;
        }
        self.resolution_ns = UNITS.get(self.unit).copied().unwrap_or(1);
        if at < self.latest {
            self.backward += 1;
            self.most_backward_ns = self.most_backward_ns.max(self.latest - at);
        }
        self.latest = at;
    }

    /// Connections saw it jump.
    pub fn note_jumps(&mut self, hosts: &Pace) {
        self.jumps += hosts.jumps;
        self.largest_jump_ns = self.largest_jump_ns.max(hosts.largest.as_nanos());
    }
}

/// How a host's timestamps go with the clock of the capture.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    first: Option<(u32, Instant)>,
    latest: Option<(u32, Instant)>,
    /// Times at which the clock went on much further than the host's.
    pub jumps: u64,
    /// The most.
    pub largest: Duration,
    doubted: Option<Doubted>,
}

/// A jump that may have been a wait on the way: how things stood before it.
#[derive(Clone, Copy, Debug)]
struct Doubted {
    first: (u32, Instant),
    latest: (u32, Instant),
    largest: Duration,
    /// Host's ticks a second.
    rate: f64,
    ahead: f64,
}

impl Pace {
    /// A timestamp of the host passes.
    pub fn note(&mut self, timestamp: u32, at: Instant) {
        /// A rate needs so much time, and a jump has to be so long, to be told from waiting.
        const ENOUGH: Duration = Duration::from_secs(1);
        let (Some(first), Some(latest)) = (self.first, self.latest) else {
            (self.first, self.latest) = (Some((timestamp, at)), Some((timestamp, at)));
            return;
        };
        let ticks = timestamp.wrapping_sub(latest.0);
        if at < latest.1 || ticks > 1 << 31 {
            return;
        }
        self.reconsider(timestamp, at);
        let first = self.first.unwrap_or(first);
        let passed = at.since(latest.1);
        if passed > ENOUGH && latest.1.since(first.1) > ENOUGH {
            let rate = f64::from(latest.0.wrapping_sub(first.0)) / latest.1.since(first.1).as_secs_f64();
            let by_host = f64::from(ticks) / rate;
            let ahead = passed.as_secs_f64() - by_host;
            if rate > 0.0 && ahead > ENOUGH.as_secs_f64() + passed.as_secs_f64() / 10.0 {
                self.doubted = Some(Doubted { first, latest, largest: self.largest, rate, ahead });
                self.jumps += 1;
                self.largest = self.largest.max(Duration::from_secs_f64(ahead));
                // What comes now is measured with the new time.
                self.first = Some((timestamp, at));
            }
        }
        self.latest = Some((timestamp, at));
    }

    /// A host whose timestamps catch up had not stood still: its packets were held back on the way.
    fn reconsider(&mut self, timestamp: u32, at: Instant) {
        let Some(doubted) = self.doubted else { return };
        let by_host = f64::from(timestamp.wrapping_sub(doubted.latest.0)) / doubted.rate;
        if at.since(doubted.latest.1).as_secs_f64() - by_host < doubted.ahead / 2.0 {
            self.jumps -= 1;
            self.largest = doubted.largest;
            self.first = Some(doubted.first);
            self.doubted = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(1_600_000_000_000_000_000) + Duration::from_micros(micros)
    }

    #[test]
    fn resolution_and_steps_back_are_noticed() {
        let mut clock = Clock::default();
        for micros in [10, 20, 35, 30, 50] {
            clock.note(at(micros));
        }
        assert_eq!((clock.resolution_ns, clock.backward, clock.most_backward_ns), (1_000, 1, 5_000));
    }

    #[test]
    fn a_jump_is_what_the_hosts_did_not_wait_for() {
        let mut pace = Pace::default();
        for second in 0..5 {
            pace.note(1000 * second, at(1_000_000 * u64::from(second)));
        }
        // It waits ten seconds, and then the clock is put an hour forward.
        pace.note(14_000, at(14_000_000));
        assert_eq!(pace.jumps, 0);
        pace.note(15_000, at(3_615_000_000));
        assert_eq!((pace.jumps, pace.largest.as_secs_f64().round()), (1, 3600.0));
    }

    #[test]
    fn packets_that_were_held_back_are_no_jump() {
        let mut pace = Pace::default();
        for second in 0..5 {
            pace.note(1000 * second, at(1_000_000 * u64::from(second)));
        }
        // The link stands still for five seconds; then comes what was sent before, and soon what is sent now.
        pace.note(4_010, at(9_010_000));
        assert_eq!(pace.jumps, 1, "it cannot be known yet");
        pace.note(9_020, at(9_030_000));
        assert_eq!((pace.jumps, pace.largest), (0, Duration::ZERO));
    }
}
