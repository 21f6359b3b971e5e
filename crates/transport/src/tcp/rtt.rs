//! Round-trip time and retransmission timeout (RFC 6298).

use super::{Config, Granularity};
use crate::time::{Duration, Instant};

/// Estimates the round-trip time and computes the retransmission timeout.
#[derive(Debug)]
pub(super) struct RttEstimator {
    granularity: Granularity,
    min_rto: Duration,
    min_on_variance: bool,
    max_rto: Duration,
    max_backoff: u32,
    srtt: Option<Duration>,
    rttvar: Duration,
    rto: Duration,
    backoff: u32,
    latest: Option<Duration>,
    min: Option<Duration>,
    max: Option<Duration>,
    /// `Ticks`: SRTT in eighths and RTTVAR in quarters of a tick.
    ticks: (i64, i64),
    /// `Ticks` without timestamps: the end of the segment that is being timed, and when it left.
    timed: Option<(u64, Instant)>,
}

impl RttEstimator {
    pub fn new(config: &Config) -> Self {
        Self {
            granularity: config.granularity,
            min_rto: config.min_rto,
            min_on_variance: config.min_rto_on_variance,
            max_rto: config.max_rto,
            max_backoff: config.max_backoff,
            srtt: None,
            rttvar: Duration::ZERO,
            rto: config.initial_rto,
            backoff: 1,
            latest: None,
            min: None,
            max: None,
            ticks: (0, 0),
            timed: None,
        }
    }

    pub const fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    pub const fn rttvar(&self) -> Duration {
        self.rttvar
    }

    /// The timeout without back-off.
    pub const fn base_rto(&self) -> Duration {
        self.rto
    }

    /// The timeout as it is to be armed.
    pub fn rto(&self) -> Duration {
        (self.rto * u64::from(self.backoff)).min(self.max_rto)
    }

    pub const fn latest(&self) -> Option<Duration> {
        self.latest
    }

    pub const fn min(&self) -> Option<Duration> {
        self.min
    }

    pub const fn max(&self) -> Option<Duration> {
        self.max
    }

    /// Doubles the timeout (RFC 6298, 5.5).
    pub fn back_off(&mut self) {
        if self.backoff < self.max_backoff && self.rto() < self.max_rto {
            self.backoff *= 2;
        }
        if let (Granularity::Ticks(_), true) = (self.granularity, self.backoff > 8) {
            // BSD and ns-2 distrust the average after several doublings: the next sample starts it anew.
            if self.ticks.0 != 0 {
                self.ticks.1 += self.ticks.0 >> 3;
                self.ticks.0 = 0;
            }
        }
    }

    /// Progress makes the back-off unnecessary.
    pub fn reset_backoff(&mut self) {
        self.backoff = 1;
    }

    /// A segment ending at `end` leaves for the first time.
    pub fn on_sent(&mut self, end: u64, now: Instant) {
        if self.timed.is_none() {
            self.timed = Some((end, now));
        }
    }

    /// Something is retransmitted: what is being timed has become ambiguous (Karn).
    pub fn on_retransmit(&mut self) {
        self.timed = None;
    }

    /// Whether samples are exact and taken from every acknowledgement.
    pub const fn is_fine(&self) -> bool {
        matches!(self.granularity, Granularity::Fine { .. })
    }

    /// `Ticks` without timestamps: the sample of the timed segment, if `una` covers it.
    pub fn take_timed(&mut self, una: u64, now: Instant) -> Option<Duration> {
        let (end, sent) = self.timed?;
        if una < end {
            return None;
        }
        self.timed = None;
        Some(self.in_ticks(now.since(sent), sent))
    }

    /// The number of ticks of a coarse clock between `sent` and `span` later, as a span of at least one tick.
    pub fn in_ticks(&self, span: Duration, sent: Instant) -> Duration {
        let Granularity::Ticks(tick) = self.granularity else { return span };
        let phase = sent.as_nanos() % tick.as_nanos().max(1);
        let ticks = (span.as_nanos() + phase) / tick.as_nanos().max(1);
        tick * ticks.max(1)
    }

    /// The SYN was retransmitted and no sample exists: start from three seconds (RFC 6298, 5.7).
    pub fn after_syn_loss(&mut self) {
        self.rto = self.rto.max(Duration::from_secs(3)).min(self.max_rto);
    }

    /// Takes a sample. `expected` is the number of samples a round trip (RFC 7323, appendix G), at least 1.
    pub fn sample(&mut self, rtt: Duration, expected: u64) {
        self.latest = Some(rtt);
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.max = Some(self.max.map_or(rtt, |max| max.max(rtt)));
        self.reset_backoff();
        match self.granularity {
            Granularity::Fine { floor } => self.sample_fine(rtt, expected.max(1), floor),
            Granularity::Ticks(tick) => self.sample_ticks(rtt, tick),
        }
    }

    fn sample_fine(&mut self, rtt: Duration, expected: u64, floor: Duration) {
        match self.srtt {
            None => {
                self.srtt = Some(rtt); // RFC 6298, 2.2
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                // RFC 6298, 2.3 with the gains of RFC 7323, appendix G
                let deviation = srtt.abs_diff(rtt);
                self.rttvar = approach(self.rttvar, deviation, 4 * expected);
                self.srtt = Some(approach(srtt, rtt, 8 * expected));
            }
        }
        let srtt = self.srtt.unwrap_or(rtt);
        let variance = (self.rttvar * 4).max(floor);
        self.rto = if self.min_on_variance { srtt + variance.max(self.min_rto) } else { (srtt + variance).max(self.min_rto) };
    }

    fn sample_ticks(&mut self, rtt: Duration, tick: Duration) {
        let m = (rtt.as_nanos() / tick.as_nanos().max(1)).max(1) as i64;
        let (srtt, rttvar) = &mut self.ticks;
        if *srtt == 0 {
            *srtt = m << 3;
            *rttvar = m << 1;
        } else {
            let delta = m - (*srtt >> 3);
            *srtt = (*srtt + delta).max(1);
            *rttvar = (*rttvar + delta.abs() - (*rttvar >> 2)).max(1);
        }
        self.srtt = Some(tick * *srtt as u64 / 8);
        self.rttvar = tick * *rttvar as u64 / 4;
        let ticks = (((*rttvar << 3) + *srtt) >> 3) as u64;
        self.rto = (tick * ticks).max(self.min_rto).max(tick * 2);
    }

    /// A timeout proved spurious: the delay that caused it becomes part of the estimate (RFC 4015, 3.3).
    pub fn on_spurious(&mut self, delayed: Duration) {
        let Granularity::Fine { floor } = self.granularity else { return };
        let srtt = self.srtt.map_or(delayed, |srtt| srtt.max(delayed));
        self.srtt = Some(srtt);
        self.rttvar = self.rttvar.max(delayed / 2);
        self.rto = (srtt + (self.rttvar * 4).max(floor)).max(self.min_rto);
        self.reset_backoff();
    }
}

/// Moves `value` by one `divisor`-th of the way to `target`.
fn approach(value: Duration, target: Duration, divisor: u64) -> Duration {
    if target >= value {
        value + (target - value) / divisor
    } else {
        value - (value - target) / divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_follow_the_integer_recurrence() {
        let mut rtt = RttEstimator::new(&Config::ns2());
        let tick = Duration::from_millis(10);
        rtt.sample(tick * 10, 1);
        assert_eq!(rtt.ticks, (80, 20));
        rtt.sample(tick * 12, 1);
        assert_eq!(rtt.ticks, (82, 17));
        assert_eq!(rtt.base_rto(), tick * 27);
    }

    #[test]
    fn fine_samples_follow_rfc_6298() {
        let mut rtt = RttEstimator::new(&Config { min_rto: Duration::ZERO, ..Config::modern() });
        rtt.sample(Duration::from_millis(100), 1);
        assert_eq!(rtt.rto(), Duration::from_millis(300));
        rtt.sample(Duration::from_millis(180), 1);
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(110)));
        assert_eq!(rtt.rttvar(), Duration::from_nanos(57_500_000));
        assert_eq!(rtt.rto(), Duration::from_millis(340));
    }

    #[test]
    fn back_off_doubles_up_to_the_cap() {
        let mut rtt = RttEstimator::new(&Config { max_rto: Duration::from_secs(5), ..Config::modern() });
        for expected in [1, 2, 4, 5, 5] {
            assert_eq!(rtt.rto(), Duration::from_secs(expected));
            rtt.back_off();
        }
        rtt.sample(Duration::from_millis(10), 1);
        assert_eq!(rtt.rto(), Duration::from_millis(200));
    }
}
