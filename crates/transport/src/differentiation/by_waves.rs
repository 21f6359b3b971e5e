//! What TCP-Real's differentiators have in common: they listen to the rates of waves, and know nothing before some have come.

use super::{Cause, LossDifferentiator, Verdict};
use crate::estimate::WaveRates;
use crate::path::{Ack, Formation, Loss, Sent};
use std::fmt::Debug;

/// What one of them reads out of the rates.
pub trait Reading: Debug + Send {
    /// A wave's rate has come.
    fn on_rate(&mut self, _rates: &WaveRates) {}

    /// How much the rates speak for corruption, from 0 to 1.
    fn score(&self, rates: &WaveRates) -> f64;

    /// The score from which on it is corruption; 0 never is.
    fn border(&self) -> f64;
}

/// Judges by the rates of waves since the last loss that it put down to congestion.
#[derive(Debug)]
pub struct ByWaves<R> {
    reading: R,
    min_updates: u32,
    formation: Formation,
    rates: WaveRates,
}

impl<R: Reading> ByWaves<R> {
    /// As `reading` says; congestion, before `min_updates` waves.
    pub(super) fn reading(reading: R, min_updates: u32, formation: Formation) -> Self {
        Self { reading, min_updates, formation, rates: WaveRates::default() }
    }
}

impl<R: Reading> LossDifferentiator for ByWaves<R> {
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
        if self.rates.on_ack(ack) {
            self.reading.on_rate(&self.rates);
        }
    }

    fn judge(&mut self, _loss: &Loss) -> Verdict {
        let known = self.rates.updates() >= self.min_updates;
        let score = if known { self.reading.score(&self.rates) } else { 0.0 };
        if score > 0.0 && score >= self.reading.border() {
            return Verdict { cause: Cause::Corruption, score };
        }
        self.rates.begin_epoch();
        Verdict { cause: Cause::Congestion, score }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::estimate::wave_rates::tests::{ack, reporting, wave};
    use crate::path::{Path, Trigger};
    use crate::time::Instant;

    /// The verdict after waves of ten with these rates.
    pub fn judge(differentiator: &mut dyn LossDifferentiator, rates: &[u8]) -> Verdict {
        let path = Path::default();
        for (number, rate) in (0u8..).zip(rates) {
            wave(number, 10).for_each(|sent| differentiator.on_sent(&sent));
            differentiator.on_ack(&ack(&path, &reporting(number, *rate)));
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

    /// Three waves are one too few, and a verdict of congestion forgets what came before it; one of corruption does not.
    pub fn needs_waves_and_begins_anew(fresh: impl Fn() -> Box<dyn LossDifferentiator>) {
        let congestion = Verdict { cause: Cause::Congestion, score: 0.0 };
        let mut differentiator = fresh();
        assert_eq!(judge(&mut *differentiator, &[240, 240, 240]), congestion);
        assert_eq!(judge(&mut *differentiator, &[]), congestion);
        let mut differentiator = fresh();
        assert_eq!(judge(&mut *differentiator, &[240; 4]).cause, Cause::Corruption);
        assert_eq!(judge(&mut *differentiator, &[]).cause, Cause::Corruption, "corruption ends no epoch");
    }
}
