//! TCP-Real's follow-up: corruption if waves arrive fast and evenly. A reconstruction.

use super::by_waves::{ByWaves, Reading};
use super::LossDifferentiator;
use crate::estimate::wave_rates::Forming;
use crate::estimate::WaveRates;
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::settings;
use std::collections::VecDeque;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "tcp-real-2004",
    summary: "Corruption if the latest waves arrived at even rates and the last one at a high one (reconstruction).",
    reference: "after Zhang & Tsaoussidis 2004; Tsaoussidis & Zhang 2002",
    notes: Notes {
        idea: "Contention shows in how unevenly waves arrive before it shows in a fall of their rate. A loss from among waves that come fast and evenly \
               is a random error.",
        formula: "v = deviation / mean of the last `memory` rates; l = (current - lowest) / (highest - lowest) since the last back-off; corruption iff \
                  v <= variation and l >= level",
        threshold: "variation: the larger, the higher A_w and the lower A_c; level: the other way round",
        fails: "As `tcp-real`. A flow alone, whose rates are even whatever it does to itself.",
        errata: "Of the publication of 2004 (Error differentiation with measurements based on wave patterns, Computer Communications 27) we know the title \
                 and that it goes on from the one of 2002; its formulas are not recovered. This is our reading of what that one announces: \"data delivery \
                 with low jitter and high receiving rate\" means a random error. All numbers are ours: 0.2, because a rate that falls by a fifth counts \
                 as much there, and one half, as its test of the rates has.",
    },
    thresholds: &[Threshold::of_corruption("variation", Cut::Complement), Threshold::of_congestion("level", Cut::Nowhere)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Variation of the rates up to which waves come evenly: their standard deviation by their mean (our reading).
        variation: f64 = 0.2, 0.0..=1.0;
        /// Where the latest rate has to lie between the lowest and the highest, at least (our reading).
        level: f64 = 0.5, 0.0..=1.0;
        /// Rates that count for the variation (our reading).
        memory: usize = 8, 2..=255;
        /// Waves since the last back-off below which every loss is congestion.
        min_updates: u32 = 4, 0..=1000;
        forming: Forming;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        let even = Even { variation: self.variation, level: self.level, memory: self.memory, latest: VecDeque::new() };
        Box::new(ByWaves::reading(even, self.min_updates, self.forming.waves))
    }
}

/// How evenly the latest waves came, if the last one came fast.
#[derive(Debug)]
struct Even {
    variation: f64,
    level: f64,
    memory: usize,
    latest: VecDeque<f64>,
}

impl Even {
    /// Standard deviation by mean; `None` with fewer than two rates.
    fn variation(&self) -> Option<f64> {
        let count = self.latest.len() as f64;
        if self.latest.len() < 2 {
            return None;
        }
        let mean = self.latest.iter().sum::<f64>() / count;
        let squares = self.latest.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>();
        Some((squares / count).sqrt() / mean)
    }
}

impl Reading for Even {
    fn on_rate(&mut self, rates: &WaveRates) {
        self.latest.extend(rates.latest());
        while self.latest.len() > self.memory {
            self.latest.pop_front();
        }
    }

    fn score(&self, rates: &WaveRates) -> f64 {
        let high = rates.level().is_some_and(|level| level >= self.level);
        self.variation().filter(|_| high).map_or(0.0, |variation| (1.0 - variation).max(0.0))
    }

    fn border(&self) -> f64 {
        1.0 - self.variation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differentiation::by_waves::tests::{judge, needs_waves_and_begins_anew};
    use crate::differentiation::Cause;
    use crate::kit::Arguments;
    use std::collections::BTreeMap;

    fn fresh() -> Box<dyn LossDifferentiator> {
        PART.build(&Arguments::check(&PART, &BTreeMap::new()).unwrap())
    }

    #[test]
    fn corruption_is_a_high_rate_among_even_ones() {
        for (rates, cause, score) in [
            // Mean 200, deviations of 40: 0.2.
            ([160, 240, 160, 240], Cause::Corruption, 0.8),
            // As even, but the last one is low.
            ([240, 160, 240, 160], Cause::Congestion, 0.0),
            // Mean 200, deviations of 50: 0.25.
            ([150, 250, 150, 250], Cause::Congestion, 0.75),
            ([240, 240, 240, 240], Cause::Corruption, 1.0),
        ] {
            let verdict = judge(&mut *fresh(), &rates);
            assert_eq!(verdict.cause, cause, "{rates:?}");
            assert!((verdict.score - score).abs() < 1e-12, "{rates:?}: {}", verdict.score);
        }
    }

    #[test]
    fn without_enough_waves_it_is_congestion_and_a_back_off_begins_anew() {
        needs_waves_and_begins_anew(fresh);
    }

    #[test]
    fn only_the_latest_rates_count_for_the_variation() {
        let mut differentiator = fresh();
        // The first two are 60 and 250; of the last eight all are alike.
        let score = judge(&mut *differentiator, &[60, 250, 240, 240, 240, 240, 240, 240, 240, 240]).score;
        assert!((score - 1.0).abs() < 1e-12, "{score}");
        assert!(judge(&mut *fresh(), &[60, 250, 240, 240, 240, 240, 240, 240, 240]).score < 1.0);
    }
}
