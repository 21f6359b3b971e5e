//! How full the queues of a path are: where the round-trip time stands between its extremes.
//!
//! `u = (RTT - RTT_min) / (RTT_max - RTT_min)` underlies West, CERL, `LDA_EQ` and others. They differ in their thresholds; what makes
//! or breaks all of them is how the extremes are kept.

use super::{Extremes, Remembered};
use crate::path::{Ack, Path};
use crate::time::Duration;

/// The latest round-trip time sample between its extremes. Windowed extremes take no notice of a single sample above `SRTT + 8 * RTTVAR`,
/// and seek the minimum anew after a timeout.
#[derive(Clone, Debug)]
pub struct QueueUsage {
    latest: Option<Duration>,
    samples: u64,
    remembered: Remembered,
    /// A sample above this is suspicious.
    credible: Duration,
    /// The sample before was suspicious.
    suspicion: bool,
}

impl QueueUsage {
    /// An estimate without samples.
    pub fn new(extremes: Extremes) -> Self {
        let remembered = Remembered::new(extremes);
        Self { latest: None, samples: 0, remembered, credible: Duration::MAX, suspicion: false }
    }

    /// An acknowledgement arrived; returns its sample.
    pub fn on_ack(&mut self, ack: &Ack) -> Option<Duration> {
        if let Some(rtt) = ack.delay {
            self.latest = Some(rtt);
            self.samples += 1;
            let suspicious = rtt > self.credible;
            if suspicious && !self.suspicion && self.remembered.forgets() {
                self.remembered.insert_low(rtt.as_nanos(), ack.path.now);
            } else {
                self.remembered.insert(rtt.as_nanos(), ack.path.now);
            }
            self.suspicion = suspicious;
        }
        self.credible = credible(ack.path);
        ack.delay
    }

    /// The retransmission timer has expired: the path may have become another one.
    pub fn on_timeout(&mut self) {
        self.remembered.forget_lows();
    }

    /// The latest sample of the round-trip time.
    pub fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// The smallest sample; zero if there is none.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.remembered.extent().min().unwrap_or(0))
    }

    /// The largest sample that counts; zero if there is none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.remembered.extent().max())
    }

    /// The mean sample; zero if there is none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.remembered.extent().mean())
    }

    /// Number of samples since the connection began.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// What the latest sample waited: its distance from the smallest one.
    pub fn waiting(&self) -> Option<Duration> {
        Some(self.latest?.saturating_sub(self.min()))
    }

    /// Where the latest sample stands between the extremes, in `[0, 1]`; `None` if they are less than `range` apart or equal.
    pub fn usage(&self, range: Duration) -> Option<f64> {
        let extent = self.remembered.extent();
        let min = extent.min()?;
        let between = Duration::from_nanos(extent.max().saturating_sub(min));
        if between < range || between == Duration::ZERO {
            return None;
        }
        let waiting = self.latest?.saturating_sub(Duration::from_nanos(min));
        Some((waiting.as_nanos() as f64 / between.as_nanos() as f64).min(1.0))
    }
}

fn credible(path: &Path) -> Duration {
    path.srtt.map_or(Duration::MAX, |srtt| srtt + path.rttvar * 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Options;
    use crate::time::Instant;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A sample at a time in seconds on a path with an SRTT of 100 ms and a variation of 5 ms.
    fn sample(usage: &mut QueueUsage, at_s: u64, rtt_ms: u64) {
        let now = Instant::ZERO + Duration::from_secs(at_s);
        let path = Path { now, srtt: Some(ms(100)), rttvar: ms(5), ..Path::default() };
        usage.on_ack(&Ack {
            path: &path,
            acked: 1,
            delivered: 1,
            rtt: None,
            delay: Some(ms(rtt_ms)),
            newest_sent_at: None,
            duplicate: false,
            ece: false,
            in_recovery: false,
            window_limited: true,
            sample: None,
            options: &Options::default(),
        });
    }

    #[test]
    fn usage_is_the_place_between_the_extremes() {
        let mut usage = QueueUsage::new(Extremes::Lifetime);
        assert_eq!((usage.usage(Duration::ZERO), usage.min(), usage.max()), (None, Duration::ZERO, Duration::ZERO));
        sample(&mut usage, 1, 100);
        assert_eq!(usage.usage(Duration::ZERO), None, "no range yet");
        for (rtt, expected) in [(200, 1.0), (150, 0.5), (100, 0.0), (155, 0.55)] {
            sample(&mut usage, 100, rtt);
            assert_eq!(usage.usage(ms(100)), Some(expected));
        }
        assert_eq!((usage.usage(ms(101)), usage.waiting(), usage.samples()), (None, Some(ms(55)), 5));
        assert_eq!(usage.mean(), ms(141), "of 100, 200, 150, 100 and 155");
    }

    #[test]
    fn a_window_forgets() {
        let mut usage = QueueUsage::new(Extremes::Windowed(Duration::from_secs(60)));
        sample(&mut usage, 0, 50);
        sample(&mut usage, 3, 130);
        sample(&mut usage, 59, 100);
        assert_eq!((usage.min(), usage.max()), (ms(50), ms(130)));
        sample(&mut usage, 66, 100);
        assert_eq!((usage.min(), usage.max()), (ms(100), ms(100)));
        sample(&mut usage, 70, 90);
        sample(&mut usage, 1000, 110);
        assert_eq!((usage.min(), usage.max()), (ms(110), ms(110)), "after a long silence");
    }

    #[test]
    fn one_spike_is_no_maximum_and_two_are() {
        let mut usage = QueueUsage::new(Extremes::Windowed(Duration::from_secs(60)));
        for rtt in [100, 120, 141] {
            sample(&mut usage, 1, rtt);
        }
        assert_eq!(usage.max(), ms(120), "141 > 100 + 8 * 5");
        assert_eq!(usage.usage(Duration::ZERO), Some(1.0), "never beyond full");
        sample(&mut usage, 1, 110);
        sample(&mut usage, 1, 150);
        assert_eq!(usage.max(), ms(120));
        sample(&mut usage, 1, 160);
        assert_eq!(usage.max(), ms(160));
    }

    #[test]
    fn a_timeout_seeks_the_minimum_anew() {
        let mut windowed = QueueUsage::new(Extremes::Windowed(Duration::from_secs(60)));
        let mut lifetime = QueueUsage::new(Extremes::Lifetime);
        for usage in [&mut windowed, &mut lifetime] {
            sample(usage, 1, 50);
            sample(usage, 1, 120);
            usage.on_timeout();
            sample(usage, 2, 80);
        }
        assert_eq!((windowed.min(), windowed.max()), (ms(80), ms(120)));
        assert_eq!((lifetime.min(), lifetime.max()), (ms(50), ms(120)));
    }
}
