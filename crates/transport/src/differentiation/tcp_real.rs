//! TCP-Real: congestion if waves arrive much more slowly than they did.

use super::by_waves::{ByWaves, Reading};
use super::LossDifferentiator;
use crate::estimate::wave_rates::Forming;
use crate::estimate::WaveRates;
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::Formation;
use crate::settings;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "tcp-real",
    summary: "Congestion if the rates of waves at the receiver have fluctuated and the latest is a low one.",
    reference: "Tsaoussidis & Zhang 2002",
    notes: Notes {
        idea: "Under congestion others' packets come between those of a wave, so the rate at which it arrives falls; a random error does not change it.",
        formula: "congestion iff highest > c lowest and current - lowest < highest - current, over the waves since the last back-off",
        threshold: "c: the larger, the higher A_w and the lower A_c",
        fails: "A flow alone, whose rate is the link's: nearly every loss is put down to corruption, those of its own overflows too. Pacing and \
                segmentation offload break waves. Small windows carry no information. A receiver that lies has the sender's window in its hand.",
        errata: "The number of waves that are needed for a verdict is not given: 4. A lowest rate of 0 counts as 1. What forms a wave is not given \
                 algorithmically (`waves`); the text wants segments sent back-to-back, groups into which acknowledgements may part the window, and a \
                 rate that is neither the available bandwidth nor the throughput. A window's worth of segments, whenever they leave (`cwnd`), spans \
                 the idle part of a round trip and so measures the throughput; what leaves at one moment (`burst`) is hardly ever the five segments \
                 that a wave has to have, so that it is Reno. The default, `train`, is a run without a pause: one of more than four times the \
                 spacing in the run, our choice, or a round trip ends it.",
    },
    thresholds: &[Threshold::of_corruption("c", Cut::Inverse)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// How many times the lowest rate the highest has to be.
        c: f64 = 3.0, 1.0..=255.0;
        /// Waves since the last back-off below which every loss is congestion.
        min_updates: u32 = 4, 0..=1000;
        /// Test the rates at all: without, every loss is congestion.
        rate_test: bool = true;
        forming: Forming;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        let never = if self.rate_test { self.min_updates } else { u32::MAX };
        Box::new(TcpReal::new(self.c, never, self.forming.waves))
    }
}

/// How far the latest rate has fallen, where rates have fallen far at all.
#[derive(Debug)]
pub struct Fall {
    c: f64,
}

/// Compares the rates of waves since the last loss that it put down to congestion.
pub type TcpReal = ByWaves<Fall>;

impl TcpReal {
    /// Congestion from `c` times the lowest rate on; always, before `min_updates` waves.
    pub fn new(c: f64, min_updates: u32, formation: Formation) -> Self {
        Self::reading(Fall { c }, min_updates, formation)
    }
}

impl Reading for Fall {
    fn score(&self, rates: &WaveRates) -> f64 {
        rates.fall().map_or(1.0, |fall| 1.0 / fall)
    }

    fn border(&self) -> f64 {
        1.0 / self.c
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differentiation::by_waves::tests::{judge, needs_waves_and_begins_anew};
    use crate::differentiation::Cause;

    #[test]
    fn congestion_is_a_low_rate_after_large_changes() {
        for (rates, cause, score) in [
            ([240, 60, 200, 100, 100], Cause::Congestion, 0.25),
            ([240, 60, 200, 100, 200], Cause::Corruption, 1.0),
            ([240, 81, 200, 100, 100], Cause::Corruption, 81.0 / 240.0),
            ([240, 80, 200, 100, 100], Cause::Corruption, 80.0 / 240.0),
            ([240, 79, 200, 100, 100], Cause::Congestion, 79.0 / 240.0),
        ] {
            let verdict = judge(&mut TcpReal::new(3.0, 4, Formation::Train), &rates);
            assert_eq!(verdict.cause, cause, "{rates:?}");
            assert!((verdict.score - score).abs() < 1e-12, "{rates:?}: {}", verdict.score);
        }
    }

    #[test]
    fn without_enough_waves_it_is_congestion_and_a_back_off_begins_anew() {
        needs_waves_and_begins_anew(|| Box::new(TcpReal::new(3.0, 4, Formation::Train)));
    }
}
