//! Trend: trips that keep getting longer mean that a queue is filling.

use super::{Cause, Gap, GapDifferentiator, Verdict};
use crate::arrival::Arrival;
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::settings;

pub(super) const PART: Part<dyn GapDifferentiator> = Part {
    name: "trend",
    summary: "Congestion if the one-way trip time has been rising.",
    reference: "Hsiao et al. 2005",
    notes: Notes {
        idea: "A queue that is about to overflow is growing, and while it grows each packet takes longer than the one before.",
        formula: "S = (1 - gain) S + gain [ROTT > ROTT before], congestion iff S > threshold",
        threshold: "threshold: the larger, the higher A_w and the lower A_c",
        fails: "Queues that stay full, and jitter, which rises as often as it falls: S is then about 1/2. Timestamps that tick more slowly than \
                the queue grows make equal trips of longer ones.",
        errata: "Constants and comparison from a public implementation; no verdict before `min_samples` packets (our reading), because S begins at 0.",
    },
    thresholds: &[Threshold::of_corruption("threshold", Cut::Complement)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Share of rising trips above which it is congestion.
        threshold: f64 = 0.4, 0.0..=1.0;
        /// Weight of the latest trip.
        gain: f64 = 1.0 / 30.0, 0.0001..=1.0;
        /// Packets before there is a verdict.
        min_samples: u64 = 30, 1..=1_000_000;
    }
}

impl Build<dyn GapDifferentiator> for Settings {
    fn build(self) -> Box<dyn GapDifferentiator> {
        let samples = self.min_samples;
        Box::new(Trend::new(self.threshold, self.gain, samples))
    }
}

/// The smoothed share of trips that were longer than the one before.
#[derive(Debug)]
pub struct Trend {
    threshold: f64,
    gain: f64,
    needed: u64,
    samples: u64,
    last: Option<i64>,
    rising: f64,
}

impl Trend {
    /// Congestion above `threshold`; no verdict before `min_samples` packets.
    pub fn new(threshold: f64, gain: f64, samples: u64) -> Self {
        Self { threshold, gain, needed: samples, samples: 0, last: None, rising: 0.0 }
    }
}

impl GapDifferentiator for Trend {
    fn on_arrival(&mut self, arrival: &Arrival) {
        let Some(trip) = arrival.trip else { return };
        self.samples += 1;
        if let Some(last) = self.last.replace(trip) {
            let rose = if trip > last { 1.0 } else { 0.0 };
            self.rising = (1.0 - self.gain) * self.rising + self.gain * rose;
        }
    }

    fn judge(&mut self, _gap: &Gap, arrival: &Arrival) -> Verdict {
        if arrival.trip.is_none() || self.samples < self.needed {
            return Verdict { cause: Cause::Unknown, score: 0.0 };
        }
        let cause = if self.rising > self.threshold { Cause::Congestion } else { Cause::Corruption };
        Verdict { cause, score: 1.0 - self.rising }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differentiation::line::Line;

    #[test]
    fn a_rising_trip_is_congestion() {
        let mut line = Line::new(Trend::new(0.4, 0.25, 4));
        assert_eq!(line.cause(1, 0, 0), Cause::Unknown);
        // S: 0.25, 0.4375, 0.578125; a trip that stays the same does not rise
        line.packet(2, 0, 1);
        line.packet(3, 0, 2);
        let verdict = line.packet(5, 0, 3).unwrap();
        assert_eq!(verdict, Verdict { cause: Cause::Congestion, score: 1.0 - 0.578_125 });
        assert_eq!(line.packet(7, 0, 3).unwrap().score, 1.0 - 0.433_593_75);
        assert_eq!(line.cause(9, 0, 2), Cause::Corruption);
    }
}
