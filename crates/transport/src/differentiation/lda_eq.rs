//! The estimated rate of queue usage (Park, Chung & Sreekumari 2009).

use super::common::Memory;
use super::{LossDifferentiator, Verdict};
use crate::estimate::{BottleneckRate, QueueUsage};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss, Trigger};
use crate::time::Duration;
use crate::{choices, settings};

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "lda-eq",
    summary: "Takes a loss for congestion if the queues of the path are more than half full.",
    reference: "Park, Chung & Sreekumari 2009",
    notes: Notes {
        idea: "A queue has to be full before it drops. The round-trip time tells how much waits in the queues; the largest one ever seen tells how \
               much fits in.",
        formula: "q = (RTT - RTT_min) / (RTT_max - RTT_min); congestion if q > theta, else corruption",
        threshold: "`theta`: a larger one takes more losses for corruption, so A_w rises and A_c falls.",
        fails: "RTT_max is that of a full queue only once the flow has filled one, and a single delay spike (a link-layer retry, a handover) spoils it \
                for good. A rerouted path spoils RTT_min. Queues that are kept full by other flows make every loss congestion.",
        errata: "The text that we could read names the quantity and its threshold of 50 %, not its formula. E1 is our reading: a rate of usage needs a \
                 capacity, and the largest backlog seen is the only one that TCP can estimate. E2 is the share of the window that waits, \
                 (RTT - RTT_min) / RTT; E3 is E1 with the backlog in octets, by the rate of the bottleneck at the time. The round-trip time is that of \
                 the newest segment acknowledged, selectively too.",
    },
    thresholds: &[Threshold::of_corruption("theta", Cut::Complement)],
    ..Part::of::<Settings>()
};

choices! {
    /// What tells how full the queue is.
    enum Reading {
        /// The place between the extremes.
        E1 = "e1",
        /// The share of the round-trip time.
        E2 = "e2",
        /// The backlog in octets.
        E3 = "e3",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// Usage above which a loss is congestion.
        theta: f64 = 0.5, 0.0..=1.0;
        /// Formula of the usage: place between the extremes, share of the window that waits, or backlog in octets.
        reading: Reading;
        memory: Memory;
        /// Samples of the round-trip time below which there is no verdict.
        min_samples: u64 = 16, 1..=1000;
        /// Distance of the extremes in milliseconds below which there is no verdict.
        min_range_ms: f64 = 2.0, 0.0..=1000.0;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(LdaEq {
            theta: self.theta,
            min_samples: self.min_samples,
            min_range: Duration::from_secs_f64(self.min_range_ms / 1e3),
            rate: match self.reading {
                Reading::E2 => QueueRate::Share,
                Reading::E3 => QueueRate::Octets { rate: Box::default(), backlog: 0.0, largest: 0.0 },
                Reading::E1 => QueueRate::Place,
            },
            usage: self.memory.queue_usage(),
        })
    }
}

/// Judges by the share of the queues that the round-trip times say is in use.
#[derive(Debug)]
pub struct LdaEq {
    /// Usage above which a loss is congestion.
    pub theta: f64,
    /// Fewer samples are no evidence.
    pub min_samples: u64,
    /// Extremes closer to one another are no evidence.
    pub min_range: Duration,
    /// The quantity that is compared.
    pub rate: QueueRate,
    /// The round-trip time between its extremes.
    pub usage: QueueUsage,
}

/// The rate of queue usage, which the publication does not define in what we could read.
#[derive(Debug)]
pub enum QueueRate {
    /// E1: the place of the round-trip time between its extremes.
    Place,
    /// E2: the share of the round-trip time that is spent waiting.
    Share,
    /// E3: octets that wait, in proportion to the most that ever did.
    Octets {
        /// The rate of the bottleneck.
        rate: Box<BottleneckRate>,
        /// Octets that wait now.
        backlog: f64,
        /// The most that ever waited.
        largest: f64,
    },
}

impl LossDifferentiator for LdaEq {
    fn on_ack(&mut self, ack: &Ack) {
        let sample = self.usage.on_ack(ack);
        if let QueueRate::Octets { rate, backlog, largest } = &mut self.rate {
            rate.on_ack(ack);
            if let (Some(_), Some(waiting), Some(rate)) = (sample, self.usage.waiting(), rate.octets_per_second()) {
                *backlog = waiting.as_secs_f64() * rate as f64;
                *largest = largest.max(*backlog);
            }
        }
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let known = self.usage.samples() >= self.min_samples;
        let quantity = self.usage.usage(self.min_range).filter(|_| known).and_then(|place| match &self.rate {
            QueueRate::Place => Some(place),
            QueueRate::Share => Some(self.usage.waiting()?.as_nanos() as f64 / self.usage.latest()?.as_nanos().max(1) as f64),
            QueueRate::Octets { backlog, largest, .. } => (*largest > 0.0).then(|| backlog / largest),
        });
        if loss.trigger == Trigger::Timeout {
            self.usage.on_timeout();
        }
        quantity.map_or(Verdict::UNKNOWN, |q| Verdict::decided(q <= self.theta, 1.0 - q))
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};

    #[test]
    fn more_than_half_a_queue_is_congestion() {
        let mut sender = Script::new(built("lda-eq", &[]));
        for rtt in [100.0, 200.0].into_iter().cycle().take(20) {
            sender.ack(rtt);
        }
        sender.ack(150.0);
        assert_eq!((sender.judge().cause, sender.judge().score), (Corruption, 0.5), "the comparison is strict");
        sender.ack(150.1);
        assert_eq!(sender.judge().cause, Congestion);
    }

    #[test]
    fn few_samples_or_a_small_range_are_no_evidence() {
        let mut sender = Script::new(built("lda-eq", &[]));
        for rtt in [100.0, 200.0].into_iter().cycle().take(15) {
            sender.ack(rtt);
        }
        assert_eq!((sender.judge().cause, sender.judge().score), (Unknown, 0.0));
        sender.ack(100.0);
        assert_eq!(sender.judge().cause, Corruption);
        let mut narrow = Script::new(built("lda-eq", &[]));
        for rtt in [100.0, 101.9].into_iter().cycle().take(40) {
            narrow.ack(rtt);
        }
        assert_eq!(narrow.judge().cause, Unknown);
    }

    #[test]
    fn the_second_reading_is_the_share_that_waits() {
        let mut sender = Script::new(built("lda-eq", &[("reading", "e2".into())]));
        for rtt in [100.0, 400.0].into_iter().cycle().take(20) {
            sender.ack(rtt);
        }
        for (rtt, cause) in [(199.0, Corruption), (200.0, Corruption), (201.0, Congestion)] {
            sender.ack(rtt);
            assert_eq!(sender.judge().cause, cause, "{rtt}");
        }
        assert!((sender.judge().score - 100.0 / 201.0).abs() < 1e-12);
    }

    #[test]
    fn the_third_reading_follows_the_rate() {
        let mut sender = Script::new(built("lda-eq", &[("reading", "e3".into())]));
        // A segment every 10 ms; 100 ms wait at most: 10 segments.
        for rtt in [100.0, 200.0].into_iter().cycle().take(40) {
            sender.pause(10.0).ack(rtt);
        }
        sender.pause(10.0).ack(155.0);
        assert_eq!(sender.judge().cause, Congestion, "5.5 of 10");
        // The bottleneck becomes four times as slow, and within ten rounds the sender knows: 75 ms are 1.9 segments.
        for rtt in [100.0, 175.0].into_iter().cycle().take(200) {
            sender.pause(40.0).ack(rtt);
        }
        assert_eq!(sender.judge().cause, Corruption);
        assert!((sender.judge().score - (1.0 - 1.875 / 10.0)).abs() < 1e-6, "{}", sender.judge().score);
    }
}
