//! A token bucket on the path: bursts pass until it is empty, then everything beyond its rate is lost.

use crate::path::RateSample;
use crate::time::{Duration, Instant};

/// Rounds that an interval lasts at least.
const LEAST_ROUNDS: u32 = 4;
/// An interval so many times longer never ended in losses: there is no bucket.
const PATIENCE: u32 = 4;
/// Share of losses that looks like a bucket's.
const LOSSES: f64 = 50.0 / 256.0;
/// How near to each other the rates of two intervals are that are one bucket's.
const NEAR: f64 = 1.0 / 8.0;
/// The same in octets a second.
const NEAR_OCTETS: u64 = 500;
/// Rounds at the bucket's rate after which it is asked again whether there is one.
const ROUNDS: u32 = 48;

/// Compares what two intervals in a row delivered between losses. If both lost much and delivered the same, that is the rate of a bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    interval: Option<Interval>,
    /// What the last interval delivered in a second.
    rate: Option<u64>,
    found: bool,
    /// Rounds at its rate.
    rounds: u32,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    began: Instant,
    delivered: u64,
    lost: u64,
    rounds: u32,
}

impl Policer {
    /// The bucket's rate, if there is one.
    pub fn rate(&self) -> Option<u64> {
        self.rate.filter(|_| self.found)
    }

    /// An acknowledgement; `round`: it ended one. `cruising`: the bandwidth is being probed, as it is in between. Returns whether the bucket is forgotten,
    /// and the bandwidth has to be looked for anew.
    pub fn on_sample(&mut self, sample: &RateSample, now: Instant, delivered: u64, round: bool, cruising: bool) -> bool {
        if self.found {
            self.rounds += u32::from(round && cruising);
            let over = self.rounds >= ROUNDS;
            if over {
                *self = Self::default();
            }
            return over;
        }
        let begin = Interval { began: now, delivered, lost: sample.lost, rounds: 0 };
        let Some(interval) = &mut self.interval else {
            // It begins with losses: a bucket that is empty.
            self.interval = (sample.newly_lost > 0).then_some(begin);
            return false;
        };
        interval.rounds += u32::from(round);
        if sample.app_limited || interval.rounds > PATIENCE * LEAST_ROUNDS {
            *self = Self::default();
            return false;
        }
        let Interval { began, delivered: before, lost, rounds } = *interval;
        let (delivered, lost, lasted) = (delivered - before, sample.lost - lost, now.since(began));
        // And it ends with losses.
        let ends = rounds >= LEAST_ROUNDS && sample.newly_lost > 0 && lasted >= Duration::from_millis(1);
        if !ends || delivered == 0 || (lost as f64) < LOSSES * delivered as f64 {
            return false;
        }
        let rate = (delivered as f64 / lasted.as_secs_f64()) as u64;
        match self.rate {
            Some(last) if rate.abs_diff(last) <= ((last as f64 * NEAR) as u64).max(NEAR_OCTETS) => {
                *self = Self { interval: None, rate: Some(u64::midpoint(rate, last)), found: true, rounds: 0 };
            }
            _ => (self.rate, self.interval) = (Some(rate), Some(begin)),
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 100 ms that deliver and lose so much each; the rate of the bucket after each.
    fn after(policer: &mut Policer, from: u64, rounds: &[(u64, u64)]) -> Vec<Option<u64>> {
        let (mut delivered, mut lost) = (1_000_000 * from, 1_000_000 * from);
        let mut at = |n: usize, (more, less): (u64, u64)| {
            (delivered, lost) = (delivered + more, lost + less);
            let sample = RateSample { lost, newly_lost: less, ..RateSample::default() };
            let now = Instant::ZERO + Duration::from_millis(1000 * from + 100 * (n as u64 + 1));
            policer.on_sample(&sample, now, delivered, true, true);
            policer.rate()
        };
        rounds.iter().enumerate().map(|(n, &round)| at(n, round)).collect()
    }

    #[test]
    fn two_intervals_of_one_rate_between_losses_are_a_bucket() {
        let mut policer = Policer::default();
        // The first round begins an interval of four, which ends at the fifth; the next one ends at the ninth.
        let found = after(&mut policer, 0, &[(10_000, 3000); 9]);
        assert_eq!(found[..8], [None; 8]);
        assert_eq!(found[8], Some(100_000), "10,000 in 100 ms");
    }

    #[test]
    fn few_losses_and_unlike_rates_are_none() {
        // 10 %, where 50 / 256 are asked for.
        assert_eq!(after(&mut Policer::default(), 0, &[(10_000, 1000); 40]), [None; 40]);
        let mut rounds = [(10_000, 3000); 9];
        for round in &mut rounds[5..] {
            *round = (13_000, 4000);
        }
        assert_eq!(after(&mut Policer::default(), 0, &rounds), [None; 9]);
        // Within an eighth: the mean of both.
        for round in &mut rounds[5..] {
            *round = (11_000, 4000);
        }
        assert_eq!(after(&mut Policer::default(), 0, &rounds)[8], Some(105_000));
    }

    #[test]
    fn an_interval_without_an_end_and_an_idle_application_are_none() {
        let mut policer = Policer::default();
        let mut rounds = vec![(10_000, 3000)];
        rounds.extend([(10_000, 0); 17]);
        after(&mut policer, 0, &rounds);
        assert!(policer.interval.is_none(), "forgotten after sixteen rounds");
        after(&mut policer, 1, &[(10_000, 3000)]);
        assert!(policer.interval.is_some());
        let idle = RateSample { app_limited: true, lost: 9_000_000, ..RateSample::default() };
        policer.on_sample(&idle, Instant::ZERO + Duration::from_secs(2), 9_000_000, true, true);
        assert!(policer.interval.is_none());
    }

    #[test]
    fn it_is_asked_again_after_48_rounds() {
        let mut policer = Policer::default();
        after(&mut policer, 0, &[(10_000, 3000); 9]);
        let sample = RateSample::default();
        let mut round = |cruising| policer.on_sample(&sample, Instant::ZERO + Duration::from_secs(9), 1, true, cruising);
        assert!(!round(false), "not while something else goes on");
        let over: Vec<_> = (0..48).map(|_| round(true)).collect();
        assert_eq!((over.iter().filter(|over| **over).count(), over[47]), (1, true));
        assert_eq!(policer.rate(), None);
    }
}
