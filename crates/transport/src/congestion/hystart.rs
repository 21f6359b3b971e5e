//! HyStart++: leaving the first slow start when round-trip times begin to grow (RFC 9406).

use crate::path::Ack;
use crate::settings;
use crate::time::Duration;

settings! {
    /// How slow start ends.
    pub(super) struct Settings {
        /// Leave the first slow start by HyStart++ (RFC 9406), and grow by up to 8 segments an acknowledgement until then.
        pub hystart: bool = false;
    }
}

/// Largest growth for one acknowledgement, in segments, for a sender that does not pace (RFC 9406, 4.3).
pub(super) const LIMIT: u64 = 8;

const MIN_RTT_THRESHOLD: Duration = Duration::from_millis(4);
const MAX_RTT_THRESHOLD: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const RTT_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

/// The state of RFC 9406, 4.2. A round lasts until everything that was outstanding at its start has been acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    round_end: Option<u64>,
    last_round_min: Option<Duration>,
    round_min: Option<Duration>,
    samples: u32,
    /// Conservative slow start: the smallest round-trip time when it began and the rounds that it has lasted, partial ones included.
    conservative: Option<(Duration, u32)>,
}

impl HyStart {
    /// Takes note of an acknowledgement; returns what to divide the growth by.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> f64 {
        if let Some(rtt) = ack.rtt {
            self.round_min = Some(self.round_min.map_or(rtt, |min| min.min(rtt)));
            self.samples += 1;
        }
        if self.samples >= RTT_SAMPLES {
            self.compare_rounds();
        }
        let divisor = if self.conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1.0 };
        if self.round_end.is_none_or(|end| ack.path.una >= end) {
            self.round_end = Some(ack.path.nxt);
            self.last_round_min = self.round_min.take();
            self.samples = 0;
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
            }
        }
        divisor
    }

    /// Whether congestion avoidance has to begin.
    pub(super) fn is_over(&self) -> bool {
        self.conservative.is_some_and(|(_, rounds)| rounds >= CSS_ROUNDS)
    }

    fn compare_rounds(&mut self) {
        let Some(current) = self.round_min else { return };
        match (self.conservative, self.last_round_min) {
            (Some((baseline, _)), _) if current < baseline => self.conservative = None,
            (None, Some(last)) => {
                let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESHOLD, MAX_RTT_THRESHOLD);
                if current >= last + threshold {
                    self.conservative = Some((current, 0));
                }
            }
            _ => {}
        }
    }
}
