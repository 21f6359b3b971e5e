//! BBR: a model of the path, its bandwidth and its shortest round trip, says how fast to send and how much may be outstanding.
//!
//! Here stands what both versions share. Octets, and octets a second.

pub(super) mod policer;
pub(super) mod v1;
pub(super) mod v3;

use crate::estimate::Recent;
use crate::path::{Ack, Path, RateSample};
use crate::time::{Duration, Instant};
use siphasher::sip::SipHasher13;
use std::hash::Hasher;

/// Part of the bandwidth that is left to the queue (`PacingMarginPercent`).
const MARGIN: f64 = 0.01;
/// Growth of the bandwidth in a round that says that the pipe is not full yet.
const FULL_GROWTH: f64 = 1.25;
/// Rounds without such growth that say that it is.
const FULL_ROUNDS: u32 = 3;
/// Segments that keep a path going whose receiver acknowledges every other one (`MinPipeCwnd`).
const MIN_SEGMENTS: u64 = 4;
/// How long the window stays small for the sake of the shortest round trip (`ProbeRTTDuration`).
const PROBE_TRIP: Duration = Duration::from_millis(200);
/// How much the window makes room for acknowledgements that come together, as a time at full bandwidth (Linux).
const MOST_TOGETHER: f64 = 0.1;

/// What a bandwidth delivers in `time`, multiplied.
fn volume(rate: u64, time: Duration, gain: f64) -> u64 {
    (rate as f64 * time.as_secs_f64() * gain) as u64
}

/// Draws from the chances of the connection, one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Chances {
    random: u64,
    drawn: u64,
}

impl Chances {
    fn new(path: &Path) -> Self {
        Self { random: path.random, drawn: 0 }
    }

    /// Uniform in `[0, 1)`.
    fn draw(&mut self) -> f64 {
        let mut hasher = SipHasher13::new_with_keys(self.random, self.drawn);
        hasher.write_u64(self.drawn);
        self.drawn += 1;
        (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform among the numbers below `n`.
    fn below(&mut self, n: u32) -> u32 {
        (self.draw() * f64::from(n)) as u32
    }
}

/// Rounds counted by segments: one ends when a segment is delivered that left after it had begun.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    /// What had been delivered when the one under way began.
    until: u64,
    count: u32,
    /// The latest acknowledgement ended one.
    over: bool,
}

impl Rounds {
    fn on_sample(&mut self, sample: &RateSample, delivered: u64) {
        self.over = sample.prior_delivered >= self.until;
        if self.over {
            self.until = delivered;
            self.count += 1;
        }
    }

    /// One begins now.
    fn restart(&mut self, delivered: u64) {
        self.until = delivered;
    }
}

/// Looks for the end of growth.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    baseline: u64,
    rounds: u32,
}

impl FullPipe {
    /// A round ended at this bandwidth. Returns whether it has grown little for long enough.
    fn on_round(&mut self, rate: u64) -> bool {
        if rate as f64 >= self.baseline as f64 * FULL_GROWTH {
            *self = Self { baseline: rate, rounds: 0 };
            return false;
        }
        self.rounds += 1;
        self.rounds >= FULL_ROUNDS
    }
}

/// How much more is acknowledged at once than the bandwidth delivers in the time.
#[derive(Clone, Copy, Debug, Default)]
struct Together {
    since: Instant,
    acked: u64,
    extra: Recent<9>,
}

impl Together {
    /// Takes an acknowledgement. `round`: it ended one. `grown`: the most of ten rounds counts; until then, that of one.
    fn on_ack(&mut self, ack: &Ack, rate: u64, round: bool, grown: bool) {
        if round {
            self.extra.advance();
            if !grown {
                self.extra = Recent::default();
            }
        }
        let now = ack.path.now;
        let mut expected = volume(rate, now.since(self.since), 1.0);
        if self.acked <= expected {
            (self.since, self.acked, expected) = (now, 0, 0);
        }
        self.acked += ack.delivered;
        self.extra.insert((self.acked - expected).min(ack.path.cwnd));
    }

    /// Nothing was under way.
    fn restart(&mut self, now: Instant) {
        (self.since, self.acked) = (now, 0);
    }

    fn extra(&self) -> u64 {
        self.extra.extent().max()
    }
}

/// What is between data segments.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    rate: u64,
    /// It comes from a round trip that was measured.
    measured: bool,
}

impl Pace {
    /// The rate to begin with: a window a round trip; without one measured, a millisecond.
    fn begin(&mut self, window: u64, gain: f64, trip: Option<Duration>) {
        self.measured = trip.is_some();
        let trip = trip.unwrap_or(Duration::from_millis(1)).max(Duration::from_micros(1));
        self.rate = (window as f64 * gain / trip.as_secs_f64()) as u64;
    }

    /// Until the pipe is `full` it only grows.
    fn set(&mut self, bandwidth: u64, gain: f64, full: bool) {
        let rate = (bandwidth as f64 * gain * (1.0 - MARGIN)) as u64;
        if rate > 0 && (full || rate > self.rate) {
            self.rate = rate;
        }
    }

    fn separation(&self, octets: u32) -> Option<Duration> {
        (self.rate > 0).then(|| Duration::from_nanos((f64::from(octets) * 1e9 / self.rate as f64) as u64))
    }

    /// What may leave at once.
    fn quantum(&self, least: u64) -> u64 {
        (self.rate / 1000).min(64 << 10).max(least)
    }
}

/// What was in the network before an acknowledgement.
fn in_flight_before(ack: &Ack) -> u64 {
    ack.path.pipe + ack.delivered + ack.sample.map_or(0, |sample| sample.newly_lost)
}

#[cfg(test)]
mod tests;
