//! How fast the path delivers.

use super::{Recent, Rounds};
use crate::path::Ack;
use crate::time::{Duration, Instant};

/// Round trips over which the largest rate is remembered.
const ROUNDS: usize = 10;

/// The rate of the bottleneck: the largest rate in ten round trips at which an acknowledgement showed data to arrive since the one
/// before it.
#[derive(Clone, Debug, Default)]
pub struct BottleneckRate {
    before: Option<Instant>,
    /// Octets delivered since `before`.
    octets: u64,
    rounds: Rounds,
    /// In octets a second.
    rates: Recent<ROUNDS>,
}

impl BottleneckRate {
    /// Takes the sample of an acknowledgement.
    pub fn on_ack(&mut self, ack: &Ack) {
        if self.rounds.on_ack(ack.path) {
            self.rates.advance();
        }
        let now = ack.path.now;
        if ack.delay.is_none() {
            // A filled hole delivers at once what had arrived long before.
            (self.before, self.octets) = (Some(now), 0);
            return;
        }
        self.octets += ack.delivered;
        let spacing = self.before.map_or(Duration::ZERO, |before| now.since(before));
        if spacing > Duration::ZERO {
            self.rates.insert((self.octets as f64 * 1e9 / spacing.as_nanos() as f64) as u64);
            (self.before, self.octets) = (Some(now), 0);
        } else if self.before.is_none() {
            (self.before, self.octets) = (Some(now), 0);
        }
    }

    /// In octets a second, if it is known.
    pub fn octets_per_second(&self) -> Option<u64> {
        let max = self.rates.extent().max();
        (max > 0).then_some(max)
    }

    /// How long the bottleneck takes to serve `octets`, if its rate is known; never zero.
    pub fn service_time(&self, octets: u32) -> Option<Duration> {
        let nanos = u64::from(octets) * 1_000_000_000 / self.octets_per_second()?;
        Some(Duration::from_nanos(nanos.max(1)))
    }
}

/// What each round trip delivered: the rate at which the data of a connection really moves.
#[derive(Clone, Debug, Default)]
pub struct RoundRate {
    rounds: Rounds,
    /// When the round under way began, and what had been delivered until then.
    began: Option<(Instant, u64)>,
    /// Of the last complete round and of the one before it, in octets a second.
    rates: [Option<f64>; 2],
}

impl RoundRate {
    /// An acknowledgement arrived; returns whether it ends a round.
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        let over = self.rounds.on_ack(ack.path);
        if over || self.began.is_none() {
            let (now, delivered) = (ack.path.now, ack.path.delivered);
            if let Some((began, before)) = self.began {
                let lasted = now.since(began);
                if lasted > Duration::ZERO {
                    self.rates = [Some((delivered - before) as f64 / lasted.as_secs_f64()), self.rates[0]];
                }
            }
            self.began = Some((now, delivered));
        }
        over
    }

    /// The rate of the last complete round in octets a second.
    pub fn last(&self) -> Option<f64> {
        self.rates[0]
    }

    /// The rate of the round before the last one.
    pub fn before_last(&self) -> Option<f64> {
        self.rates[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use crate::segment::Options;

    fn with_ack<R>(now_ms: u64, una: u64, delivered: u64, clear: bool, then: impl FnOnce(&Ack) -> R) -> R {
        let now = Instant::ZERO + Duration::from_millis(now_ms);
        let path = Path { now, una, nxt: una + 10_000, delivered: una, mss: 1000, ..Path::default() };
        then(&Ack {
            path: &path,
            acked: delivered,
            delivered,
            rtt: None,
            delay: clear.then_some(Duration::from_millis(100)),
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
    fn the_bottleneck_serves_a_segment_in_the_smallest_spacing() {
        let mut rate = BottleneckRate::default();
        let mut ack = |ms, una, delivered, clear| {
            with_ack(ms, una, delivered, clear, |ack| rate.on_ack(ack));
            rate.service_time(1000).map(Duration::as_millis)
        };
        assert_eq!(ack(100, 1000, 1000, true), None, "one acknowledgement has no spacing");
        assert_eq!(ack(120, 2000, 1000, true), Some(20));
        assert_eq!(ack(150, 3000, 1000, true), Some(20), "a longer one does not count");
        assert_eq!(ack(160, 5000, 2000, true), Some(5), "two segments in 10 ms");
        assert_eq!(ack(160, 6000, 1000, true), Some(5), "no time has passed");
        assert_eq!(ack(161, 60_000, 54_000, false), Some(5), "a filled hole is no rate");
        // The largest is forgotten ten rounds after its own, which the acknowledgement above ended; each one here is a round.
        for round in 1..=9 {
            assert_eq!(ack(161 + 40 * round, 60_000 + 20_000 * round, 1000, true), Some(5), "round {round}");
        }
        assert_eq!(ack(1000, 400_000, 1000, true), Some(40));
    }

    #[test]
    fn a_round_delivers_what_was_delivered_in_it() {
        let mut rate = RoundRate::default();
        let mut ack = |ms, una| {
            with_ack(ms, una, 0, true, |ack| rate.on_ack(ack));
            (rate.last(), rate.before_last())
        };
        assert_eq!(ack(0, 0), (None, None));
        assert_eq!(ack(50, 10_000), (None, None));
        assert_eq!(ack(100, 11_000), (Some(110_000.0), None));
        assert_eq!(ack(300, 22_000), (Some(55_000.0), Some(110_000.0)));
    }
}
