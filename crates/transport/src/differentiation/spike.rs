//! Spike: while the trip time is in a spike, queues are full.

use super::common::Memory;
use super::{Cause, Gap, GapDifferentiator, Verdict};
use crate::arrival::Arrival;
use crate::estimate::{Extremes, Trips};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::settings;
use crate::time::Duration;

pub(super) const PART: Part<dyn GapDifferentiator> = Part {
    name: "spike",
    summary: "Congestion while the one-way trip time is in a spike.",
    reference: "Tobe et al. 2000; Cen, Cosman & Voelker 2003",
    notes: Notes {
        idea: "A queue that is about to overflow is full, so packets take long. Two thresholds keep a jitter around one of them from changing \
               the verdict with each packet.",
        formula: "a spike begins when ROTT > ROTT_min + alpha (ROTT_max - ROTT_min), and ends when ROTT < ROTT_min + beta (ROTT_max - ROTT_min); \
                  corruption iff outside of a spike when the packet after the gap arrives",
        threshold: "alpha, with beta = 2/3 alpha: the larger, the higher A_w and the lower A_c",
        fails: "A wireless last hop that is the bottleneck: its queue is always long and everything looks like congestion. Short queues: the range \
                is noise. Timestamps that tick more slowly than the queue fills. Clocks that drift apart by more than the range within a run.",
        errata: "Constants and strict comparisons as Cen et al.; Tobe et al. are cited with fixed offsets. Unknown before `min_samples` packets and \
                 while the extremes are closer than `min_range_ms` (our reading). The score is 1 less the largest alpha, with beta in proportion, for \
                 which there would be a spike now, so that one run draws the whole trade-off.",
    },
    thresholds: &[Threshold::of_corruption("alpha", Cut::Complement)],
    ..Part::of::<Parameters>()
};

settings! {
    /// What can be set.
    pub(super) struct Parameters {
        /// Where a spike begins, between the extremes of the trip time.
        alpha: f64 = 0.5, 0.01..=0.99;
        /// Where a spike ends; above alpha it counts as alpha.
        beta: f64 = 1.0 / 3.0, 0.0..=0.99;
        /// Packets before there is a verdict.
        pub min_samples: u64 = 20, 1..=1_000_000;
        /// Distance of the extremes in milliseconds below which there is no verdict.
        min_range_ms: f64 = 1.0, 0.0..=10_000.0;
        pub memory: Memory;
    }
}

impl Parameters {
    /// A detector of spikes with these settings.
    pub fn spike(self) -> Spike {
        Spike::new(Settings {
            alpha: self.alpha,
            beta: self.beta,
            samples: self.min_samples,
            range: Duration::from_secs_f64(self.min_range_ms / 1000.0),
            extremes: self.memory.extremes(),
        })
    }
}

impl Build<dyn GapDifferentiator> for Parameters {
    fn build(self) -> Box<dyn GapDifferentiator> {
        Box::new(self.spike())
    }
}

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Where a spike begins, between the extremes.
    pub alpha: f64,
    /// Where it ends.
    pub beta: f64,
    /// Packets before there is a verdict.
    pub samples: u64,
    /// Distance of the extremes below which there is no verdict.
    pub range: Duration,
    /// How long extremes are remembered.
    pub extremes: Extremes,
}

/// Whether a spike is under way, by Spike's two thresholds.
#[derive(Debug)]
pub struct Spike {
    settings: Settings,
    trips: Trips,
    high: bool,
    /// The largest alpha, with beta in proportion, for which there would be a spike now.
    height: f64,
}

impl Spike {
    /// Begins outside of a spike. A `beta` above `alpha` counts as `alpha`.
    pub fn new(settings: Settings) -> Self {
        let settings = Settings { beta: settings.beta.min(settings.alpha), ..settings };
        Self { settings, trips: Trips::new(settings.extremes), high: false, height: 0.0 }
    }

    pub(super) fn trips(&self) -> &Trips {
        &self.trips
    }

    /// The score at which the verdict changes.
    pub(super) fn threshold(&self) -> f64 {
        1.0 - self.settings.alpha
    }
}

impl GapDifferentiator for Spike {
    fn on_arrival(&mut self, arrival: &Arrival) {
        let Some(trip) = arrival.trip else { return };
        self.trips.insert(trip, arrival.view.now);
        let Some(usage) = self.trips.usage() else { return };
        let Settings { alpha, beta, .. } = self.settings;
        self.high = if self.high { usage >= beta } else { usage > alpha };
        let lasting = if beta > 0.0 { usage * alpha / beta } else { f64::INFINITY };
        self.height = usage.max(self.height.min(lasting));
    }

    fn judge(&mut self, _gap: &Gap, arrival: &Arrival) -> Verdict {
        let known = self.trips.samples() >= self.settings.samples && self.trips.range() >= self.settings.range;
        if !known || arrival.trip.is_none() || self.trips.usage().is_none() {
            return Verdict { cause: Cause::Unknown, score: 0.0 };
        }
        let cause = if self.high { Cause::Congestion } else { Cause::Corruption };
        Verdict { cause, score: 1.0 - self.height }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differentiation::line::Line;

    fn spike(alpha: f64, beta: f64) -> Line<Spike> {
        let extremes = Extremes::Lifetime;
        Line::new(Spike::new(Settings { alpha, beta, samples: 2, range: Duration::from_millis(1), extremes }))
    }

    /// The verdicts on trips in ms, with a packet missing before each, after extremes of 100 and 200 ms.
    fn judged(line: &mut Line<Spike>, trips: impl IntoIterator<Item = i64>) -> Vec<Verdict> {
        line.packet(0, 0, 200_000);
        line.packet(1, 0, 100_000);
        let packets = (1..).map(|n| 2 * n + 1).zip(trips);
        packets.map(|(number, ms)| line.packet(number, 0, ms * 1000).unwrap()).collect()
    }

    #[test]
    fn a_spike_ends_lower_than_it_begins() {
        use Cause::{Congestion, Corruption};
        let verdicts = judged(&mut spike(0.5, 1.0 / 3.0), [120, 151, 140, 134, 132, 149]);
        let causes: Vec<_> = verdicts.iter().map(|verdict| verdict.cause).collect();
        assert_eq!(causes, [Corruption, Congestion, Congestion, Congestion, Corruption, Corruption]);
    }

    #[test]
    fn nothing_is_known_at_first_nor_without_a_range() {
        let unknown = Verdict { cause: Cause::Unknown, score: 0.0 };
        let mut line = spike(0.5, 0.3);
        assert_eq!(line.packet(1, 0, 0), Some(unknown), "one sample");
        assert_eq!(line.packet(3, 0, 999), Some(unknown), "a range of 0.999 ms");
        assert_eq!(line.cause(5, 0, 1000), Cause::Congestion);
    }

    #[test]
    fn the_score_gives_the_verdict_of_every_threshold() {
        // A walk through the whole range.
        let mut state = 1u64;
        let trips: Vec<i64> = (0..2000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                100 + (state >> 33) as i64 % 101
            })
            .collect();
        let scores: Vec<_> = judged(&mut spike(0.6, 0.3), trips.iter().copied()).iter().map(|verdict| verdict.score).collect();
        for alpha in [0.123, 0.377, 0.6001, 0.839] {
            for (nth, (verdict, score)) in
                judged(&mut spike(alpha, alpha / 2.0), trips.iter().copied()).iter().zip(&scores).enumerate()
            {
                assert_eq!(verdict.cause == Cause::Corruption, *score > 1.0 - alpha, "alpha {alpha}, packet {nth}");
            }
        }
    }
}
