//! TCP-Real: congestion if waves arrive much more slowly than they did.

use super::{Cause, LossDifferentiator, Verdict};
use crate::estimate::wave_rates::Forming;
use crate::estimate::WaveRates;
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Formation, Loss, Sent};
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

/// Compares the rates of waves since the last loss that it put down to congestion.
#[derive(Debug)]
pub struct TcpReal {
    c: f64,
    min_updates: u32,
    formation: Formation,
    rates: WaveRates,
}

impl TcpReal {
    /// Congestion from `c` times the lowest rate on; always, before `min_updates` waves.
    pub fn new(c: f64, min_updates: u32, formation: Formation) -> Self {
        Self { c, min_updates, formation, rates: WaveRates::default() }
    }
}

impl LossDifferentiator for TcpReal {
    fn wants_reports(&self) -> bool {
        true
    }

    fn wants_waves(&self) -> Option<Formation> {
        Some(self.formation)
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.rates.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.rates.on_ack(ack);
    }

    fn judge(&mut self, _loss: &Loss) -> Verdict {
        let known = self.rates.updates() >= self.min_updates;
        let score = match self.rates.fall() {
            _ if !known => 0.0,
            Some(fall) => 1.0 / fall,
            None => 1.0,
        };
        if known && score >= 1.0 / self.c {
            return Verdict { cause: Cause::Corruption, score };
        }
        self.rates.begin_epoch();
        Verdict { cause: Cause::Congestion, score }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::wave_rates::tests::{self, ack, reporting};
    use crate::path::{Path, Trigger};
    use crate::time::Instant;

    /// The verdict after waves of ten with these rates.
    fn judge(differentiator: &mut TcpReal, rates: &[u8]) -> Verdict {
        let path = Path::default();
        for (wave, rate) in (0u8..).zip(rates) {
            tests::wave(wave, 10).for_each(|sent| differentiator.on_sent(&sent));
            differentiator.on_ack(&ack(&path, &reporting(wave, *rate)));
        }
        differentiator.judge(&Loss {
            path: &path,
            start: 0,
            len: 1000,
            transmission: 0,
            sent_at: Instant::ZERO,
            trigger: Trigger::DuplicateAcks,
            first_of_episode: true,
        })
    }

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
        let mut differentiator = TcpReal::new(3.0, 4, Formation::Train);
        assert_eq!(judge(&mut differentiator, &[240, 240, 240]), Verdict { cause: Cause::Congestion, score: 0.0 });
        assert_eq!(judge(&mut differentiator, &[]), Verdict { cause: Cause::Congestion, score: 0.0 });
        let mut differentiator = TcpReal::new(3.0, 4, Formation::Train);
        assert_eq!(judge(&mut differentiator, &[240; 4]).cause, Cause::Corruption);
        assert_eq!(judge(&mut differentiator, &[]).cause, Cause::Corruption, "corruption ends no epoch");
    }
}
