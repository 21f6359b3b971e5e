//! Extremes that last for ever or for a while.

use super::{Extent, Recent};
use crate::time::{Duration, Instant};

/// Parts of the window that are forgotten one at a time.
const SLOTS: usize = 12;

/// How long extremes are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extremes {
    /// As long as the connection lasts, every sample counting: what the publications say.
    Lifetime,
    /// For this long, give or take a twelfth, and without what looks like an outlier: our reading of what keeps a rerouted path or one
    /// delay spike from spoiling an estimate for good. What an outlier is depends on the quantity.
    Windowed(Duration),
}

/// The extremes and the mean of what was seen within the time that [`Extremes`] gives.
#[derive(Clone, Debug)]
pub struct Remembered(Kept);

#[derive(Clone, Debug)]
enum Kept {
    Lifetime(Extent),
    Windowed(Box<Windowed>),
}

#[derive(Clone, Debug)]
struct Windowed {
    recent: Recent<SLOTS>,
    slot: Duration,
    began: Instant,
}

impl Remembered {
    /// No numbers; they are kept for as long as `extremes` says.
    pub fn new(extremes: Extremes) -> Self {
        Self(match extremes {
            Extremes::Lifetime => Kept::Lifetime(Extent::default()),
            Extremes::Windowed(window) => Kept::Windowed(Box::new(Windowed {
                recent: Recent::default(),
                slot: (window / SLOTS as u64).max(Duration::from_nanos(1)),
                began: Instant::ZERO,
            })),
        })
    }

    /// Whether old numbers are forgotten.
    pub const fn forgets(&self) -> bool {
        matches!(self.0, Kept::Windowed(_))
    }

    /// Adds a number seen at `now`.
    pub fn insert(&mut self, number: u64, now: Instant) {
        match &mut self.0 {
            Kept::Lifetime(extent) => extent.insert(number),
            Kept::Windowed(windowed) => windowed.at(now).insert(number),
        }
    }

    /// Sees a number that may be the smallest but not the largest.
    pub fn insert_low(&mut self, number: u64, now: Instant) {
        match &mut self.0 {
            Kept::Lifetime(extent) => extent.insert_low(number),
            Kept::Windowed(windowed) => windowed.at(now).insert_low(number),
        }
    }

    /// If it forgets, forgets every smallest number now.
    pub fn forget_lows(&mut self) {
        if let Kept::Windowed(windowed) = &mut self.0 {
            windowed.recent.forget_lows();
        }
    }

    /// Extremes and mean of the numbers that are not forgotten.
    pub fn extent(&self) -> Extent {
        match &self.0 {
            Kept::Lifetime(extent) => *extent,
            Kept::Windowed(windowed) => windowed.recent.extent(),
        }
    }
}

impl Windowed {
    /// What is remembered at `now`.
    fn at(&mut self, now: Instant) -> &mut Recent<SLOTS> {
        let mut slots = 0;
        while now.since(self.began) >= self.slot && slots <= SLOTS {
            self.recent.advance();
            self.began += self.slot;
            slots += 1;
        }
        if slots > SLOTS {
            self.began = now; // silent for longer than the window
        }
        &mut self.recent
    }
}
