//! Random connections: what a sender might see of a path, event after event.

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;

/// One connection's path and the state of its random numbers.
pub struct World {
    rng: Pcg64Mcg,
    /// Octets of a segment.
    pub mss: u32,
    /// Microseconds since the beginning of the clock.
    pub now: u64,
    base: u64,
    room: u64,
    waiting: u64,
    service: u64,
    /// Microseconds of a tick of the receiver's clock, if it sends timestamps.
    pub tick: Option<u64>,
    /// Smoothed round-trip time, in microseconds.
    pub srtt: u64,
}

/// An acknowledgement, in segments and microseconds.
pub struct Arrival {
    pub acked: u32,
    pub delivered: u32,
    pub delay: Option<u64>,
    pub limited: bool,
    pub duplicate: bool,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let base = 100 << rng.random_range(0..12);
        let base = base + rng.random_range(0..base);
        Self {
            mss: rng.random_range(536..9000),
            // Some clocks wrap.
            now: if rng.random_bool(0.2) {
                (1 << 32) - rng.random_range(0..100_000_000)
            } else {
                rng.random_range(10_000_000..1 << 31)
            },
            base,
            room: base * rng.random_range(1..400) / 100 + rng.random_range(0..3000),
            waiting: 0,
            service: (base / rng.random_range(1..200)).max(1),
            tick: [None, Some(1), Some(1000), Some(1000), Some(4000), Some(10_000)][rng.random_range(0..6)],
            srtt: 0,
            rng,
        }
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    pub fn below(&mut self, end: u32) -> u32 {
        self.rng.random_range(0..end)
    }

    /// Time passes until the next acknowledgement.
    pub fn pass(&mut self) {
        self.now += match self.below(100) {
            0..6 => 0,
            6..97 => self.rng.random_range(0..2 * self.service + 2),
            97..99 => self.rng.random_range(0..2 * self.base),
            _ => self.rng.random_range(0..3_000_000),
        };
    }

    /// The next acknowledgement of a window of `cwnd` segments.
    pub fn ack(&mut self, cwnd: u32) -> Arrival {
        self.pass();
        let step = self.rng.random_range(0..2 * self.service + self.room / 8 + 1);
        self.waiting = if self.chance(0.5) { (self.waiting + step).min(self.room) } else { self.waiting.saturating_sub(step) };
        let duplicate = self.chance(0.06);
        let delivered = if duplicate || self.chance(0.4) { 1 } else { 2 + u32::from(self.chance(0.02)) * self.below(8) };
        let delay = (!self.chance(0.04)).then_some(self.base + self.waiting);
        if let Some(delay) = delay {
            self.srtt = if self.srtt == 0 { delay } else { (7 * self.srtt + delay) / 8 };
        }
        let delivered = delivered.min(cwnd.max(1));
        Arrival { acked: if duplicate { 0 } else { delivered }, delivered, delay, limited: !self.chance(0.1), duplicate }
    }
}
