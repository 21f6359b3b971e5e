//! `ZigZag`: the more packets are missing, the longer the trip may have been for it not to be congestion.

use super::{Cause, Gap, GapDifferentiator, Verdict};
use crate::arrival::Arrival;
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::settings;

pub(super) const PART: Part<dyn GapDifferentiator> = Part {
    name: "zigzag",
    summary: "Corruption if the one-way trip time is below a threshold that depends on the number of missing packets.",
    reference: "Cen, Cosman & Voelker 2003",
    notes: Notes {
        idea: "Congestion shows in the trip time, and the more in a row were lost the higher it is. So the trip is compared with its mean, and the \
               threshold goes up with the length of the gap.",
        formula: "corruption iff ROTT < mean + (s + k) dev with k = -1, -1/2, 0 for n = 1, 2, 3 and n4 for more; mean and deviation are smoothed with \
                  gains 1/32 and 1/16",
        threshold: "s: the larger, the higher A_w and the lower A_c",
        fails: "The mean follows slow changes, so about half of all trips are below it even in lasting congestion; without congestion only the \
                trips one deviation below the mean count as corruption when one packet is missing.",
        errata: "For n > 3 the literature disagrees on the sign: -1/2, which gives the name, is the default. Mean and deviation begin with the first \
                 packet and zero, and there is no verdict before `min_samples` packets (our reading). They take in the packet after the gap first.",
    },
    thresholds: &[Threshold::of_corruption("s", Cut::Own)],
    ..Part::of::<Settings>()
};

settings! {
    /// Where the thresholds stand.
    pub(super) struct Thresholds {
        /// Offset of the threshold for more than three missing packets, in deviations.
        pub n4: f64 = -0.5, -4.0..=4.0;
        /// Shift of all thresholds, in deviations.
        pub s: f64 = 0.0, -100.0..=100.0;
    }
}

settings! {
    /// What can be set.
    struct Settings {
        thresholds: Thresholds;
        /// Packets before there is a verdict.
        min_samples: u64 = 32, 1..=1_000_000;
    }
}

impl Build<dyn GapDifferentiator> for Settings {
    fn build(self) -> Box<dyn GapDifferentiator> {
        Box::new(ZigZag::new(self.thresholds.n4, self.thresholds.s, self.min_samples))
    }
}

/// Gain of the mean; the deviation's is twice as large.
const GAIN: f64 = 1.0 / 32.0;

/// Mean and deviation of the trip time.
#[derive(Debug)]
pub struct ZigZag {
    n4: f64,
    s: f64,
    needed: u64,
    samples: u64,
    /// Mean of the relative one-way trip times, in nanoseconds.
    mean: f64,
    /// Their mean deviation, in nanoseconds.
    deviation: f64,
}

impl ZigZag {
    /// `n4` and `s` in deviations; no verdict before `min_samples` packets.
    pub fn new(n4: f64, s: f64, samples: u64) -> Self {
        Self { n4, s, needed: samples, samples: 0, mean: 0.0, deviation: 0.0 }
    }

    /// The score at which the verdict changes.
    pub(super) fn threshold(&self) -> f64 {
        score(self.s)
    }
}

/// Maps the distance from the threshold with s = 0, in deviations, to a score; falling.
fn score(distance: f64) -> f64 {
    0.5 - 0.5 * distance / (1.0 + distance.abs())
}

impl GapDifferentiator for ZigZag {
    fn on_arrival(&mut self, arrival: &Arrival) {
        let Some(trip) = arrival.trip else { return };
        let trip = trip as f64;
        self.samples += 1;
        if self.samples == 1 {
            self.mean = trip;
            return;
        }
        self.mean = (1.0 - GAIN) * self.mean + GAIN * trip;
        self.deviation = (1.0 - 2.0 * GAIN) * self.deviation + 2.0 * GAIN * (trip - self.mean).abs();
    }

    fn judge(&mut self, gap: &Gap, arrival: &Arrival) -> Verdict {
        let known = self.samples >= self.needed && self.deviation > 0.0;
        let (true, Some(trip)) = (known, arrival.trip) else {
            return Verdict { cause: Cause::Unknown, score: 0.0 };
        };
        let offset = match gap.missing {
            0 | 1 => -1.0,
            2 => -0.5,
            3 => 0.0,
            _ => self.n4,
        };
        let distance = (trip as f64 - self.mean) / self.deviation - offset;
        let cause = if distance < self.s { Cause::Corruption } else { Cause::Congestion };
        Verdict { cause, score: score(distance) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differentiation::line::Line;

    #[test]
    fn mean_and_deviation_are_smoothed() {
        let mut line = Line::new(ZigZag::new(-0.5, 0.0, 1));
        line.packet(0, 0, 100);
        line.packet(1, 0, 132);
        // 31/32 * 100 + 132/32 = 101; 1/16 * |132 - 101|, in µs
        let ZigZag { mean, deviation, .. } = line.differentiator;
        assert_eq!((mean, deviation), (101_000.0, 1_937.5));
        line.packet(2, 0, 101);
        assert_eq!((line.differentiator.mean, line.differentiator.deviation), (101_000.0, 1_937.5 * 15.0 / 16.0));
    }

    /// The verdict on `n` missing packets after a trip of `ms`, which leaves a mean of 100 ms and a deviation of 20 ms behind.
    fn judged(n4: f64, s: f64, n: u64, ms: f64) -> Verdict {
        let mut line = Line::new(ZigZag::new(n4, s, 2));
        line.packet(0, 0, 0);
        let trip = ms * 1e6;
        let mean = (100e6 - trip / 32.0) * 32.0 / 31.0;
        let deviation = (20e6 - (trip - 100e6).abs() / 16.0) * 16.0 / 15.0;
        line.differentiator = ZigZag { mean, deviation, ..line.differentiator };
        line.packet(n + 1, 0, (ms * 1e3) as i64).unwrap()
    }

    #[test]
    fn the_threshold_depends_on_what_is_missing() {
        for (n, below, above) in [(1, 79.0, 81.0), (2, 89.0, 91.0), (3, 99.0, 101.0), (4, 89.0, 91.0), (9, 89.0, 91.0)] {
            assert_eq!(judged(-0.5, 0.0, n, below).cause, Cause::Corruption, "{n} missing");
            assert_eq!(judged(-0.5, 0.0, n, above).cause, Cause::Congestion, "{n} missing");
        }
        assert_eq!(judged(0.5, 0.0, 4, 109.0).cause, Cause::Corruption);
        assert_eq!(judged(0.5, 0.0, 4, 111.0).cause, Cause::Congestion);
    }

    #[test]
    fn the_score_gives_the_verdict_of_every_shift() {
        for s in [-1.0, -0.3, 0.0, 0.7, 2.0] {
            for ms in [40.0, 70.0, 85.0, 95.0, 110.0, 130.0, 170.0] {
                let verdict = judged(-0.5, s, 1, ms);
                assert_eq!(verdict.cause == Cause::Corruption, judged(-0.5, 0.0, 1, ms).score > score(s), "{ms} ms, s {s}");
            }
        }
    }

    #[test]
    fn nothing_is_known_at_first() {
        let mut line = Line::new(ZigZag::new(-0.5, 0.0, 32));
        for n in 0..30 {
            line.packet(n, 0, n as i64 % 2);
        }
        assert_eq!(line.cause(31, 0, 0), Cause::Unknown);
        assert_eq!(line.cause(33, 0, -10), Cause::Corruption);
    }
}
