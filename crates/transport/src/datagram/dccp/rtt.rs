//! Round-trip time and the timeout that follows from it (RFC 6298; RFC 4341, 5 asks for no lower bound of one second).

use super::Config;
use crate::time::Duration;

/// The clock granularity `G` of RFC 6298.
const GRANULARITY: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    min_rto: Duration,
    max_rto: Duration,
    rto: Duration,
    backoff: u32,
}

impl Rtt {
    pub fn new(config: &Config) -> Self {
        let Config { min_rto, max_rto, initial_rto, .. } = *config;
        Self { smoothed: None, variation: Duration::ZERO, min_rto, max_rto, rto: initial_rto, backoff: 0 }
    }

    pub const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The timeout with its back-off.
    pub fn rto(&self) -> Duration {
        (self.rto * (1 << self.backoff)).min(self.max_rto)
    }

    pub fn back_off(&mut self) {
        if self.rto() < self.max_rto {
            self.backoff += 1;
        }
    }

    pub fn sample(&mut self, rtt: Duration) {
        self.backoff = 0;
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(rtt)) / 4;
                self.smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
        let smoothed = self.smoothed.unwrap_or(rtt);
        self.rto = (smoothed + (self.variation * 4).max(GRANULARITY)).max(self.min_rto).min(self.max_rto);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_rfc_6298_and_end_the_back_off() {
        let mut rtt = Rtt::new(&Config { min_rto: Duration::ZERO, ..Config::default() });
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(4));
        rtt.sample(Duration::from_millis(100));
        assert_eq!(rtt.rto(), Duration::from_millis(300));
        rtt.sample(Duration::from_millis(180));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(110)));
        // 57.5 ms of variation.
        assert_eq!(rtt.rto(), Duration::from_millis(340));
    }
}
