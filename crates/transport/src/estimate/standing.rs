//! How long even the luckiest of the latest segments waited.

use super::{Extent, Extremes, QueueUsage, Recent};
use crate::path::Ack;
use crate::time::Duration;

/// Samples of which the smallest counts (RFC 6817, 2.4.2: `CURRENT_FILTER`).
const FILTER: usize = 4;

/// How long the smallest delay is remembered (RFC 6817, 2.4.2: `BASE_HISTORY`).
const HISTORY: Duration = Duration::from_secs(600);

/// The smallest of the last four delays above the smallest of the last ten minutes: what stands in the queues of the path, without what bursts and
/// delayed acknowledgements add for a moment (RFC 6817).
#[derive(Clone, Debug)]
pub struct StandingDelay {
    usage: QueueUsage,
    /// Each slot holds one sample.
    latest: Recent<FILTER>,
}

impl Default for StandingDelay {
    fn default() -> Self {
        Self { usage: QueueUsage::new(Extremes::Windowed(HISTORY)), latest: Recent::default() }
    }
}

impl StandingDelay {
    /// An acknowledgement arrived.
    pub fn on_ack(&mut self, ack: &Ack) {
        if let Some(delay) = self.usage.on_ack(ack) {
            self.latest.insert(delay.as_nanos());
            self.latest.advance();
        }
    }

    /// The smallest delay, if there is one.
    pub fn base(&self) -> Option<Duration> {
        (self.usage.samples() > 0).then(|| self.usage.min())
    }

    /// What stands in the queues, if there is a sample.
    pub fn waiting(&self) -> Option<Duration> {
        let latest: Extent = self.latest.extent();
        Some(Duration::from_nanos(latest.min()?).saturating_sub(self.usage.min()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use crate::segment::Options;
    use crate::time::Instant;

    fn waiting(delays_ms: &[u64], apart: Duration) -> Option<u128> {
        let mut standing = StandingDelay::default();
        for (n, ms) in (0..).zip(delays_ms) {
            let path = Path { now: Instant::ZERO + apart * n, ..Path::default() };
            let options = Options::default();
            standing.on_ack(&Ack { delay: Some(Duration::from_millis(*ms)), ..Ack::new(&path, &options) });
        }
        standing.waiting().map(|waiting| u128::from(waiting.as_nanos()) / 1_000_000)
    }

    const SOON: Duration = Duration::from_millis(10);

    #[test]
    fn what_stands_is_what_all_of_the_latest_four_waited() {
        assert_eq!(waiting(&[], SOON), None);
        assert_eq!(waiting(&[50], SOON), Some(0));
        assert_eq!(waiting(&[50, 80, 90, 150], SOON), Some(0), "the first may have met an empty queue");
        assert_eq!(waiting(&[50, 80, 90, 150, 70], SOON), Some(20));
        assert_eq!(waiting(&[50, 80, 90, 150, 70, 55, 400, 400], SOON), Some(5));
    }

    #[test]
    fn the_base_is_forgotten_after_ten_minutes() {
        assert_eq!(waiting(&[50, 90, 90, 90, 90, 90, 90, 90, 90], Duration::from_secs(60)), Some(40));
        let delays: Vec<_> = std::iter::once(50).chain([90; 14]).collect();
        assert_eq!(waiting(&delays, Duration::from_secs(60)), Some(0));
    }
}
