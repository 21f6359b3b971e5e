//! The links of a direction, and what is measured at them.

use super::super::audit::HopAudit;
use whyloss_sim::{Crossing, CrossingCounts};
use whyloss_transport::BitRate;

/// What came out at the full rate is measured over at least this many nanoseconds.
const SHORTEST_MEASUREMENT: u64 = 10_000_000;

/// A link of the chain at work.
#[derive(Debug)]
pub(super) struct Stage {
    pub name: String,
    /// `None` if a trace says when it can send.
    pub rate: Option<BitRate>,
    pub crossing: Crossing,
    pub chance: Chance,
}

/// How many errors a channel should have made.
#[derive(Debug)]
pub(super) struct Chance {
    pub spec: whyloss_sim::ChannelSpec,
    /// The length asked for last, and its probability.
    pub last: (u32, Option<f64>),
    pub crossed: u64,
    /// Sum of the probabilities; `None` once one is not known.
    pub expected: Option<f64>,
}

impl Chance {
    pub fn add(&mut self, octets: u32) {
        if octets != self.last.0 {
            self.last = (octets, self.spec.error_probability(octets));
        }
        self.crossed += 1;
        self.expected = self.expected.zip(self.last.1).map(|(sum, more)| sum + more);
    }

    pub fn share(&self) -> Option<f64> {
        self.expected.map(|sum| sum / self.crossed.max(1) as f64)
    }
}

impl Stage {
    /// What it has done.
    pub fn audit(&self) -> HopAudit {
        let counts: CrossingCounts = self.crossing.counts();
        HopAudit::new(&self.name, self.rate.map(BitRate::as_bps), self.chance.share(), &counts)
    }
}

/// The rate at which packets leave while others wait.
#[derive(Debug, Default)]
pub(super) struct EgressRate {
    last: Option<(u64, u64)>,
    nanoseconds: u64,
    octets: u64,
}

impl EgressRate {
    /// A packet that was due at `due` has left at `left`; `span` is its time of transmission at the slowest link.
    pub fn note(&mut self, due: u64, left: u64, octets: u32, span: u64) {
        if let Some((before, left_before)) = self.last {
            if due.saturating_sub(before) <= span + 1 {
                self.nanoseconds += left.saturating_sub(left_before);
                self.octets += u64::from(octets);
            }
        }
        self.last = Some((due, left));
    }

    pub fn rate(&self) -> Option<f64> {
        (self.nanoseconds >= SHORTEST_MEASUREMENT).then(|| self.octets as f64 * 8e9 / self.nanoseconds as f64)
    }
}

/// The smallest rate of a chain; `None` if one of its links has none.
pub(super) fn slowest(stages: &[Stage]) -> Option<BitRate> {
    stages.iter().map(|stage| stage.rate).min_by_key(|rate| rate.map(BitRate::as_bps)).flatten()
}
