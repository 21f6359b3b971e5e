//! When a packet that has crossed a link arrives: jitter, reordering, duplication.

use crate::error::Flaw;
use crate::random::Stream;
use whyloss_transport::Duration;

/// An extra delay that differs from packet to packet, on top of the propagation delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// Mean of the extra delay, whatever the law.
    pub mean: Duration,
    /// Its law.
    pub law: JitterLaw,
}

/// The law of an extra delay. None gives a negative one: the propagation delay is the smallest delay of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JitterLaw {
    /// Any delay from 0 to below twice the mean is as likely.
    Uniform,
    /// Normal around the mean; what falls below 0 or above twice the mean is drawn again, which leaves the mean as it is.
    Normal {
        /// Standard deviation before that, at most the mean.
        deviation: Duration,
    },
    /// Exponential.
    Exponential,
    /// Pareto, moved to begin at 0 (Lomax): the probability of a delay above `x` is `(1 + x / (mean (shape - 1)))^-shape`.
    Pareto {
        /// Above 1. The tables of Linux's netem have 3.
        shape: f64,
    },
}

/// A share of the packets leaves the order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Probability of each packet to be one of them.
    pub share: f64,
    /// What happens to those.
    pub shift: Shift,
}

/// When a packet that leaves the order arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// This much later than it would have: those that follow overtake it.
    Late(Duration),
    /// This much sooner than it would have, but not before it has been transmitted: it overtakes those ahead of it.
    Early(Duration),
}

impl Jitter {
    /// What makes no sense in it.
    pub fn flaw(&self) -> Option<Flaw> {
        match self.law {
            _ if self.mean == Duration::ZERO => Some(("jitter.mean", "0 s".to_owned(), "a time above zero")),
            JitterLaw::Normal { deviation } if deviation == Duration::ZERO || deviation > self.mean => {
                Some(("jitter.deviation", deviation.to_string(), "a time above zero, at most the mean"))
            }
            JitterLaw::Pareto { shape } if !(shape > 1.0 && shape <= 1000.0) => {
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
            JitterLaw::Normal { deviation } => loop {
                let delay = mean as f64 + deviation.as_nanos() as f64 * normal(stream);
                if (0.0..=2.0 * mean as f64).contains(&delay) {
                    return delay as u64;
                }
            },
            JitterLaw::Exponential => (mean as f64 * -libm::log(1.0 - stream.unit())) as u64,
            JitterLaw::Pareto { shape } => {
                (mean as f64 * (shape - 1.0) * (libm::pow(1.0 - stream.unit(), -1.0 / shape) - 1.0)) as u64
            }
        }
    }
}

impl Reorder {
    /// What makes no sense in it.
    pub fn flaw(&self) -> Option<Flaw> {
        match self.shift {
            _ if !(0.0..=1.0).contains(&self.share) => Some(("reorder.share", self.share.to_string(), "a number from 0 to 1")),
            Shift::Late(Duration::ZERO) => Some(("reorder.late", "0 s".to_owned(), "a time above zero")),
            Shift::Early(Duration::ZERO) => Some(("reorder.early", "0 s".to_owned(), "a time above zero")),
            _ => None,
        }
    }
}

/// A number from the standard normal law (Box & Muller 1958).
fn normal(stream: &mut Stream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
    radius * libm::cos(std::f64::consts::TAU * stream.unit())
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
        let shift = self.reorder.as_mut().and_then(|(reorder, stream)| (stream.unit() < reorder.share).then_some(reorder.shift));
        match shift {
            None => {
                self.last = self.last.max(at);
                at
            }
            Some(Shift::Late(by)) => at.saturating_add(by.as_nanos()),
            Some(Shift::Early(by)) => at.saturating_sub(by.as_nanos()).max(sent),
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

    fn stream(purpose: &str) -> Stream {
        Stream::new(1, 0, "link a>b", purpose)
    }

    fn spread(jitter: Option<JitterLaw>, reorder: Option<Reorder>, overtaking: bool, duplicate: f64) -> Spread {
        let jitter = jitter.map(|law| Jitter { mean: Duration::from_millis(10), law });
        Spread::plain(overtaking).with(jitter, reorder, duplicate, stream)
    }

    /// Extra delays of packets that are far apart, in milliseconds, ascending.
    fn extras(law: JitterLaw) -> Vec<f64> {
        let mut spread = spread(Some(law), None, false, 0.0);
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
        let uniform = extras(JitterLaw::Uniform);
        near(mean(&uniform), 10.0, 0.08);
        near(quantile(&uniform, 0.9), 18.0, 0.1);
        assert!(uniform[0] >= 0.0 && uniform[99_999] < 20.0);
        // Cut at one standard deviation: the quartiles lie where the normal law has 0.1587 + 0.6827 / 4 = 0.3293, at 0.4418 deviations.
        let normal = extras(JitterLaw::Normal { deviation: Duration::from_millis(10) });
        near(mean(&normal), 10.0, 0.08);
        near(quantile(&normal, 0.25), 10.0 - 4.418, 0.1);
        assert!(normal[0] >= 0.0 && normal[99_999] <= 20.0);
        // Within a tenth of the mean nothing is cut: 84.13 % lie below one deviation.
        let narrow = extras(JitterLaw::Normal { deviation: Duration::from_millis(1) });
        near(quantile(&narrow, 0.8413), 11.0, 0.02);
        let exponential = extras(JitterLaw::Exponential);
        near(mean(&exponential), 10.0, 0.15);
        near(quantile(&exponential, 0.5), 6.931, 0.15);
        // Scale 20 ms, shape 3: the median is 20 (2^(1/3) - 1) = 5.198 ms, the 99th percentile 20 (100^(1/3) - 1) = 72.83 ms.
        let pareto = extras(JitterLaw::Pareto { shape: 3.0 });
        near(mean(&pareto), 10.0, 0.25);
        near(quantile(&pareto, 0.5), 5.198, 0.1);
        near(quantile(&pareto, 0.99), 72.83, 2.5);
    }

    #[test]
    fn packets_overtake_only_where_they_may() {
        for overtaking in [true, false] {
            let mut spread = spread(Some(JitterLaw::Exponential), None, overtaking, 0.0);
            let arrivals: Vec<_> = (0..1000).map(|n| spread.arrival(n * MS, 0)).collect();
            assert_eq!(arrivals.windows(2).all(|pair| pair[0] <= pair[1]), !overtaking);
        }
    }

    #[test]
    fn those_that_leave_the_order_are_moved_by_the_time_given() {
        let share = 0.25;
        for (shift, moved) in [
            (Shift::Late(Duration::from_millis(5)), 15 * MS),
            (Shift::Early(Duration::from_millis(4)), 6 * MS),
            (Shift::Early(Duration::from_millis(40)), 0),
        ] {
            let mut spread = spread(None, Some(Reorder { share, shift }), false, 0.0);
            let delays: Vec<_> = (0..10_000).map(|n| spread.arrival(n * MS, 10 * MS) - n * MS).collect();
            let out = delays.iter().filter(|&&delay| delay == moved).count();
            assert_eq!(delays.iter().filter(|&&delay| delay == 10 * MS).count(), 10_000 - out);
            // Standard deviation 43.
            assert!((2_300..2_700).contains(&out), "{out}");
        }
    }

    #[test]
    fn each_purpose_has_its_own_numbers() {
        let late = Reorder { share: 0.5, shift: Shift::Late(Duration::from_secs(1000)) };
        let law = Some(JitterLaw::Uniform);
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
