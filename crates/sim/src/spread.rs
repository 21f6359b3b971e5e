//! When a packet that has crossed a link arrives: jitter, reordering, duplication.

use crate::error::Flaw;
use crate::random::Stream;
use whyloss_transport::Duration;

/// An extra delay that differs from packet to packet, on top of `delay`, which stays the smallest delay.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Jitter {
    /// Mean of the extra delay, whatever its law.
    pub mean: Duration,
    /// Its law; `"uniform"` if nothing is said.
    #[cfg_attr(feature = "serde", serde(default))]
    pub law: JitterLaw,
    /// `"normal"` only, and needed there: standard deviation, at most the mean.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub deviation: Option<Duration>,
    /// `"pareto"` only: its shape, above 1; 3 if nothing is said, as in Linux's netem.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub shape: Option<f64>,
}

/// The law of an extra delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum JitterLaw {
    /// Any delay from 0 to below twice the mean is as likely.
    #[default]
    Uniform,
    /// Normal around the mean; what falls below 0 or above twice the mean is drawn again.
    Normal,
    /// Exponential with that mean: one delay in 150 is above five times the mean.
    Exponential,
    /// Pareto, moved to begin at 0.
    Pareto,
}

/// A share of the packets leaves the order: either `late` or `early`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reorder {
    /// Share of the packets.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "whyloss_transport::quantity::Probability"))]
    pub share: f64,
    /// They arrive this much later, and those that follow overtake them.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub late: Option<Duration>,
    /// They arrive this much sooner, but not before they have been transmitted, and overtake those ahead of them.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub early: Option<Duration>,
}

/// Shape of the law of Pareto if nothing is said: that of the tables of Linux's netem.
const PARETO_SHAPE: f64 = 3.0;

impl Jitter {
    /// An extra delay of this mean and law; the normal law needs a deviation as well.
    pub const fn new(mean: Duration, law: JitterLaw) -> Self {
        Self { mean, law, deviation: None, shape: None }
    }

    /// A normal law of this mean and standard deviation, which is at most the mean.
    pub const fn normal(mean: Duration, deviation: Duration) -> Self {
        Self { mean, law: JitterLaw::Normal, deviation: Some(deviation), shape: None }
    }

    /// What makes no sense in it.
    pub fn flaw(&self) -> Option<Flaw> {
        let deviation = self.deviation.unwrap_or_default();
        match self.law {
            _ if self.mean == Duration::ZERO => Some(("jitter.mean", "0 s".to_owned(), "a time above zero")),
            JitterLaw::Normal if deviation == Duration::ZERO || deviation > self.mean => {
                Some(("jitter.deviation", deviation.to_string(), "a time above zero, at most the mean"))
            }
            JitterLaw::Pareto if !self.shape.is_none_or(|shape| shape > 1.0 && shape <= 1000.0) => {
                let shape = self.shape.unwrap_or_default();
                Some(("jitter.shape", shape.to_string(), "a number above 1, at most 1000"))
            }
            _ => None,
        }
    }

    /// Nanoseconds of extra delay.
    fn draw(&self, stream: &mut Stream) -> u64 {
        let mean = self.mean.as_nanos();
        match self.law {
            JitterLaw::Uniform => stream.below(mean.saturating_mul(2)),
            JitterLaw::Normal => loop {
                let deviation = self.deviation.unwrap_or_default().as_nanos();
                let delay = mean as f64 + deviation as f64 * stream.normal();
                if (0.0..=2.0 * mean as f64).contains(&delay) {
                    return delay as u64;
                }
            },
            JitterLaw::Exponential => (mean as f64 * -libm::log(1.0 - stream.unit())) as u64,
            // The probability of a delay above `x` is `(1 + x / (mean (shape - 1)))^-shape` (Lomax).
            JitterLaw::Pareto => {
                let shape = self.shape.unwrap_or(PARETO_SHAPE);
                (mean as f64 * (shape - 1.0) * (libm::pow(1.0 - stream.unit(), -1.0 / shape) - 1.0)) as u64
            }
        }
    }
}

impl Reorder {
    /// A share of the packets that arrives this much later.
    pub const fn late(share: f64, by: Duration) -> Self {
        Self { share, late: Some(by), early: None }
    }

    /// A share of the packets that arrives this much sooner.
    pub const fn early(share: f64, by: Duration) -> Self {
        Self { share, late: None, early: Some(by) }
    }

    /// What makes no sense in it.
    pub fn flaw(&self) -> Option<Flaw> {
        match (self.late, self.early) {
            _ if !(0.0..=1.0).contains(&self.share) => Some(("reorder.share", self.share.to_string(), "a number from 0 to 1")),
            (Some(Duration::ZERO), None) => Some(("reorder.late", "0 s".to_owned(), "a time above zero")),
            (None, Some(Duration::ZERO)) => Some(("reorder.early", "0 s".to_owned(), "a time above zero")),
            (Some(_), None) | (None, Some(_)) => None,
            (late, _) => {
                let found = if late.is_some() { "both" } else { "neither" };
                Some(("reorder", found.to_owned(), "either `late` or `early`, a time above zero"))
            }
        }
    }
}

/// What decides when packets arrive, at work in one direction.
#[derive(Debug)]
pub(crate) struct Spread {
    jitter: Option<(Jitter, Stream)>,
    reorder: Option<(Reorder, Stream)>,
    duplicate: Option<(f64, Stream)>,
    overtaking: bool,
    /// The latest arrival of a packet in order.
    last: u64,
}

impl Spread {
    /// Nothing but the propagation delay; packets may overtake each other if `overtaking` says so.
    pub const fn plain(overtaking: bool) -> Self {
        Self { jitter: None, reorder: None, duplicate: None, overtaking, last: 0 }
    }

    /// With what is given; `stream` gives the random stream for a purpose.
    pub fn with(self, jitter: Option<Jitter>, reorder: Option<Reorder>, duplicate: f64, stream: impl Fn(&str) -> Stream) -> Self {
        let reorder = reorder.filter(|reorder| reorder.share > 0.0);
        Self {
            jitter: jitter.map(|jitter| (jitter, stream("jitter"))),
            reorder: reorder.map(|reorder| (reorder, stream("reordering"))),
            duplicate: (duplicate > 0.0).then(|| (duplicate, stream("duplication"))),
            overtaking: self.overtaking,
            last: 0,
        }
    }

    /// When a packet arrives whose transmission ended at `sent` on a link of this propagation delay.
    pub fn arrival(&mut self, sent: u64, delay: u64) -> u64 {
        let extra = self.jitter.as_mut().map_or(0, |(jitter, stream)| jitter.draw(stream));
        let at = self.in_order(sent.saturating_add(delay).saturating_add(extra));
        let picked = self.reorder.as_mut().and_then(|(reorder, stream)| (stream.unit() < reorder.share).then_some(*reorder));
        match picked {
            None => {
                self.last = self.last.max(at);
                at
            }
            Some(Reorder { early: Some(by), .. }) => at.saturating_sub(by.as_nanos()).max(sent),
            Some(Reorder { late, .. }) => at.saturating_add(late.unwrap_or_default().as_nanos()),
        }
    }

    /// When the packet that has last been asked for arrives again, if it does.
    pub fn again(&mut self, sent: u64, delay: u64) -> Option<u64> {
        let (probability, stream) = self.duplicate.as_mut()?;
        if stream.unit() >= *probability {
            return None;
        }
        let extra = self.jitter.as_ref().map_or(0, |(jitter, _)| jitter.draw(stream));
        let at = self.in_order(sent.saturating_add(delay).saturating_add(extra));
        self.last = self.last.max(at);
        Some(at)
    }

    fn in_order(&self, at: u64) -> u64 {
        if self.overtaking {
            at
        } else {
            at.max(self.last)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const MEAN: Duration = Duration::from_millis(10);

    fn of(law: JitterLaw) -> Jitter {
        Jitter::new(MEAN, law)
    }

    fn stream(purpose: &str) -> Stream {
        Stream::new(1, 0, "link a>b", purpose)
    }

    fn spread(jitter: Option<Jitter>, reorder: Option<Reorder>, overtaking: bool, duplicate: f64) -> Spread {
        Spread::plain(overtaking).with(jitter, reorder, duplicate, stream)
    }

    /// Extra delays of packets that are far apart, in milliseconds, ascending.
    fn extras(jitter: Jitter) -> Vec<f64> {
        let mut spread = spread(Some(jitter), None, false, 0.0);
        let mut extras: Vec<_> = (0..100_000_u64)
            .map(|n| n * 1_000_000 * MS)
            .map(|at| (spread.arrival(at, 7 * MS) - at - 7 * MS) as f64 / MS as f64)
            .collect();
        extras.sort_by(f64::total_cmp);
        extras
    }

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() < tolerance, "{found} is not {expected} within {tolerance}");
    }

    #[test]
    fn every_law_has_its_mean_and_its_quantiles() {
        let mean = |extras: &[f64]| extras.iter().sum::<f64>() / extras.len() as f64;
        let quantile = |extras: &[f64], share: f64| extras[(share * extras.len() as f64) as usize];
        // Standard errors of the means of 100,000: 5.8, 4.9, 10 and 17 ms over sqrt(100,000).
        let uniform = extras(of(JitterLaw::Uniform));
        near(mean(&uniform), 10.0, 0.08);
        near(quantile(&uniform, 0.9), 18.0, 0.1);
        assert!(uniform[0] >= 0.0 && uniform[99_999] < 20.0);
        // Cut at one standard deviation: the quartiles lie where the normal law has 0.1587 + 0.6827 / 4 = 0.3293, at 0.4418 deviations.
        let normal = extras(Jitter::normal(MEAN, MEAN));
        near(mean(&normal), 10.0, 0.08);
        near(quantile(&normal, 0.25), 10.0 - 4.418, 0.1);
        assert!(normal[0] >= 0.0 && normal[99_999] <= 20.0);
        // Within a tenth of the mean nothing is cut: 84.13 % lie below one deviation.
        let narrow = extras(Jitter::normal(MEAN, Duration::from_millis(1)));
        near(quantile(&narrow, 0.8413), 11.0, 0.02);
        let exponential = extras(of(JitterLaw::Exponential));
        near(mean(&exponential), 10.0, 0.15);
        near(quantile(&exponential, 0.5), 6.931, 0.15);
        // Scale 20 ms, shape 3: the median is 20 (2^(1/3) - 1) = 5.198 ms, the 99th percentile 20 (100^(1/3) - 1) = 72.83 ms.
        let pareto = extras(of(JitterLaw::Pareto));
        near(mean(&pareto), 10.0, 0.25);
        near(quantile(&pareto, 0.5), 5.198, 0.1);
        near(quantile(&pareto, 0.99), 72.83, 2.5);
    }

    #[test]
    fn packets_overtake_only_where_they_may() {
        for overtaking in [true, false] {
            let mut spread = spread(Some(of(JitterLaw::Exponential)), None, overtaking, 0.0);
            let arrivals: Vec<_> = (0..1000).map(|n| spread.arrival(n * MS, 0)).collect();
            assert_eq!(arrivals.windows(2).all(|pair| pair[0] <= pair[1]), !overtaking);
        }
    }

    #[test]
    fn those_that_leave_the_order_are_moved_by_the_time_given() {
        let share = 0.25;
        for (reorder, moved) in [
            (Reorder::late(share, Duration::from_millis(5)), 15 * MS),
            (Reorder::early(share, Duration::from_millis(4)), 6 * MS),
            (Reorder::early(share, Duration::from_millis(40)), 0),
        ] {
            let mut spread = spread(None, Some(reorder), false, 0.0);
            let delays: Vec<_> = (0..10_000).map(|n| spread.arrival(n * MS, 10 * MS) - n * MS).collect();
            let out = delays.iter().filter(|&&delay| delay == moved).count();
            assert_eq!(delays.iter().filter(|&&delay| delay == 10 * MS).count(), 10_000 - out);
            // Standard deviation 43.
            assert!((2_300..2_700).contains(&out), "{out}");
        }
    }

    #[test]
    fn each_purpose_has_its_own_numbers() {
        let late = Reorder::late(0.5, Duration::from_secs(1000));
        let law = Some(of(JitterLaw::Uniform));
        let (mut alone, mut both) = (spread(law, None, true, 0.0), spread(law, Some(late), true, 0.5));
        let alone: Vec<_> = (0..100).map(|_| alone.arrival(0, 0)).collect();
        let both = (0..100).map(|_| {
            both.again(0, 0);
            both.arrival(0, 0) % (1000 * 1000 * MS)
        });
        let both: Vec<_> = both.collect();
        assert_eq!(alone, both);
    }

    #[test]
    fn packets_are_doubled_at_their_rate() {
        let mut doubling = spread(None, None, false, 0.1);
        let again: Vec<_> = (0..100_000).filter_map(|n| doubling.again(n * MS, 5 * MS).map(|at| at - n * MS)).collect();
        // Standard deviation 95.
        assert!((9_700..10_300).contains(&again.len()), "{}", again.len());
        assert!(again.iter().all(|delay| *delay == 5 * MS));
        let mut plain = spread(None, None, false, 0.0);
        assert!((0..1000).all(|n| plain.again(n, 0).is_none()));
    }
}
