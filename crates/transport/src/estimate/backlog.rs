//! How many segments of a flow wait in the queues of its path (Brakmo & Peterson 1995; Fu & Liew 2003).

use super::Rounds;
use crate::path::Ack;
use crate::time::Duration;

/// The segments of a window of `window` segments that wait in queues, if the path alone takes `base` and the round trip now takes `rtt`.
///
/// Fu & Liew 2003: `N = (Expected - Actual) * BaseRTT` with `Expected = W / BaseRTT` and `Actual = W / RTT`, hence
/// `N = W * (RTT - BaseRTT) / RTT`. Never negative, never NaN.
pub fn backlog(window: f64, base: Duration, rtt: Duration) -> f64 {
    let waiting = rtt.saturating_sub(base);
    if waiting == Duration::ZERO {
        return 0.0;
    }
    window * waiting.as_nanos() as f64 / rtt.as_nanos() as f64
}

/// The samples of the round-trip time in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    min: Duration,
    sum: Duration,
    /// Number of samples in the round.
    pub samples: u32,
}

impl Round {
    fn add(&mut self, rtt: Duration) {
        self.min = if self.samples == 0 { rtt } else { self.min.min(rtt) };
        self.sum += rtt;
        self.samples += 1;
    }

    /// The smallest sample, if there is one.
    pub fn min(&self) -> Option<Duration> {
        (self.samples > 0).then_some(self.min)
    }

    /// The mean of the samples, if there is one.
    pub fn mean(&self) -> Option<Duration> {
        (self.samples > 0).then(|| self.sum / u64::from(self.samples))
    }
}

/// The smallest round-trip time of a connection and that of its latest round: what the backlog is computed from.
///
/// It measures by [`Ack::delay`], so it does not depend on the ticks of the retransmission timer.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    base: Option<Duration>,
    latest: Option<Duration>,
    rounds: Rounds,
    current: Round,
    complete: Round,
    samples: u64,
}

impl Backlog {
    /// An acknowledgement arrived; returns whether it ends a round. Its own sample belongs to the round that it begins.
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        let over = self.rounds.on_ack(ack.path);
        if over && self.current.samples > 0 {
            self.complete = std::mem::take(&mut self.current);
        }
        if let Some(rtt) = ack.delay {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            self.latest = Some(rtt);
            self.current.add(rtt);
            self.samples += 1;
        }
        over
    }

    /// Takes the next sample for the smallest one: for algorithms that doubt it, after a timeout for instance.
    pub fn forget_base(&mut self) {
        self.base = None;
    }

    /// `BaseRTT`: the smallest sample of the connection.
    pub fn base_rtt(&self) -> Option<Duration> {
        self.base
    }

    /// The latest sample of the round-trip time.
    pub fn latest_rtt(&self) -> Option<Duration> {
        self.latest
    }

    /// The last complete round that had samples; the one under way while there is none.
    pub fn round(&self) -> Round {
        if self.complete.samples > 0 {
            self.complete
        } else {
            self.current
        }
    }

    /// Number of samples since the connection began.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The backlog of a window of `window` segments by the smallest sample of the last round, if there is one.
    pub fn segments(&self, window: f64) -> Option<f64> {
        Some(backlog(window, self.base?, self.round().min()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use crate::segment::Options;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn ack(backlog: &mut Backlog, una: u64, nxt: u64, delay: impl Into<Option<u64>>) -> bool {
        backlog.on_ack(&Ack {
            path: &Path { una, nxt, mss: 1, ..Path::default() },
            acked: 1,
            delivered: 1,
            rtt: None,
            delay: delay.into().map(ms),
            newest_sent_at: None,
            duplicate: false,
            ece: false,
            in_recovery: false,
            window_limited: true,
            sample: None,
            options: &Options::default(),
        })
    }

    #[test]
    fn the_backlog_is_the_share_of_the_round_trip_spent_waiting() {
        // W = 20, BaseRTT = 100 ms: 20 * 17 / 117 and 20 * 18 / 118.
        assert!((backlog(20.0, ms(100), ms(117)) - 2.906).abs() < 0.001);
        assert!((backlog(20.0, ms(100), ms(118)) - 3.051).abs() < 0.001);
        assert_eq!(backlog(20.0, ms(100), ms(99)), 0.0);
        assert_eq!(backlog(20.0, Duration::ZERO, Duration::ZERO), 0.0);
    }

    #[test]
    fn a_round_keeps_its_smallest_and_its_mean_sample_until_the_next_is_complete() {
        let mut backlog = Backlog::default();
        assert_eq!((backlog.base_rtt(), backlog.segments(10.0)), (None, None));
        ack(&mut backlog, 1, 11, 100);
        ack(&mut backlog, 6, 16, 104);
        assert_eq!(backlog.round().min(), Some(ms(100)), "the first round is still under way");
        ack(&mut backlog, 7, 16, None);
        assert_eq!(backlog.round().samples, 2, "an ambiguous acknowledgement is no sample");
        assert!(ack(&mut backlog, 12, 22, 150));
        ack(&mut backlog, 15, 25, 110);
        assert_eq!((backlog.round().min(), backlog.round().mean()), (Some(ms(100)), Some(ms(102))));
        assert!(ack(&mut backlog, 23, 33, 90));
        assert_eq!((backlog.round().min(), backlog.round().mean()), (Some(ms(110)), Some(ms(130))));
        assert_eq!((backlog.base_rtt(), backlog.latest_rtt(), backlog.samples()), (Some(ms(90)), Some(ms(90)), 5));
        let expected = 10.0 * 20.0 / 110.0;
        assert!((backlog.segments(10.0).unwrap() - expected).abs() < 1e-12);
    }
}
