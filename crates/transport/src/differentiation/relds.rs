//! RELDS (Lim & Jang 2008), reconstructed: a threshold that moves with the mean round-trip time.

use super::common::{falling, Memory};
use super::{LossDifferentiator, Verdict};
use crate::estimate::{QueueUsage, Recent, Rounds};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss, Trigger};
use crate::{choices, settings};

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "relds",
    summary: "Takes a loss for congestion if the round-trip time is above a threshold that moves with its mean (reconstructed).",
    reference: "after Lim & Jang 2008",
    notes: Notes {
        idea: "A queue that fills up is longer than it was on average. A threshold between the smallest and the mean round-trip time needs no largest \
               one, so the size of the queue may be unknown.",
        formula: "Th = RTT_min + delta (M - RTT_min), M the mean of RTT with gain 1/8; congestion if RTT >= Th, else corruption",
        threshold: "`delta`: a larger one takes more losses for corruption, so A_w rises and A_c falls.",
        fails: "With `delta` = 1 about half of all samples are above the threshold whatever the queue holds, so losses that have nothing to do with \
                queues are called congestion half of the time.",
        errata: "A reconstruction: what is known is a moving threshold, a function of the smallest and the latest round-trip time, tested at the third \
                 duplicate acknowledgement. The function could not be recovered, so no number here may be held against the published ones. \
                 `reading = recent-max` puts the largest round-trip time of the last eight rounds in place of the mean.",
    },
    thresholds: &[Threshold::of_corruption("delta", Cut::Falling)],
    ..Part::of::<Settings>()
};

choices! {
    /// What the threshold moves with.
    enum Reading {
        /// The mean round-trip time.
        Mean = "mean",
        /// The largest one of the last eight rounds.
        RecentMax = "recent-max",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// Where the threshold stands between the smallest round-trip time (0) and the mean or recent largest one (1).
        delta: f64 = 1.0, 0.0..=10.0;
        /// What the threshold moves with: the mean round-trip time or the largest one of the last eight rounds.
        reading: Reading;
        memory: Memory;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Relds {
            delta: self.delta,
            threshold: match self.reading {
                Reading::RecentMax => MovingThreshold::RecentMax { rounds: Rounds::default(), recent: Box::default() },
                Reading::Mean => MovingThreshold::Mean(0),
            },
            usage: self.memory.queue_usage(),
        })
    }
}

/// RELDS, as it can be reconstructed from what was published.
#[derive(Debug)]
pub struct Relds {
    /// Where the threshold stands between the smallest round-trip time (0) and what it moves with (1).
    pub delta: f64,
    /// What it moves with.
    pub threshold: MovingThreshold,
    /// The smallest and the latest round-trip time.
    pub usage: QueueUsage,
}

/// What the threshold moves with.
#[derive(Clone, Debug)]
pub enum MovingThreshold {
    /// The mean of the samples with a gain of 1/8, in nanoseconds; 0 before the first.
    Mean(i64),
    /// The largest sample of the last eight rounds.
    RecentMax {
        /// Counts round trips.
        rounds: Rounds,
        /// Largest samples, in nanoseconds.
        recent: Box<Recent<8>>,
    },
}

impl MovingThreshold {
    fn nanos(&self) -> f64 {
        match self {
            Self::Mean(mean) => *mean as f64,
            Self::RecentMax { recent, .. } => recent.extent().max() as f64,
        }
    }
}

impl LossDifferentiator for Relds {
    fn on_ack(&mut self, ack: &Ack) {
        let sample = self.usage.on_ack(ack).map(|rtt| rtt.as_nanos() as i64);
        match (&mut self.threshold, sample) {
            (MovingThreshold::Mean(mean @ 0), Some(rtt)) => *mean = rtt,
            (MovingThreshold::Mean(mean), Some(rtt)) => *mean += (rtt - *mean) / 8,
            (MovingThreshold::RecentMax { rounds, recent }, sample) => {
                if rounds.on_ack(ack.path) {
                    recent.advance();
                }
                if let Some(rtt) = sample {
                    recent.insert(rtt as u64);
                }
            }
            (MovingThreshold::Mean(_), None) => {}
        }
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let waiting = self.usage.waiting();
        let range = self.threshold.nanos() - self.usage.min().as_nanos() as f64;
        if loss.trigger == Trigger::Timeout {
            self.usage.on_timeout();
        }
        match waiting {
            Some(waiting) if range > 0.0 => {
                let place = waiting.as_nanos() as f64 / range;
                Verdict::decided(place < self.delta, falling(place))
            }
            _ => Verdict::UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};

    #[test]
    fn the_threshold_moves_with_the_mean() {
        let mut sender = Script::new(built("relds", &[]));
        sender.ack(100.0);
        assert_eq!(sender.judge().cause, Unknown, "nothing has moved yet");
        // M: 100, 110, 116.25; then 120 pulls it to 116.71875 and 110 to 115.87890625.
        for (rtt, cause) in [(180.0, Congestion), (160.0, Congestion), (120.0, Congestion), (110.0, Corruption)] {
            sender.ack(rtt);
            assert_eq!(sender.judge().cause, cause, "{rtt}");
        }
        let place = 10.0 / 15.878_906_25;
        assert!((sender.judge().score - 1.0 / (1.0 + place)).abs() < 1e-6);
    }

    #[test]
    fn delta_moves_the_threshold_between_minimum_and_mean() {
        for (delta, cause) in [(0.6, Congestion), (0.7, Corruption)] {
            let mut sender = Script::new(built("relds", &[("delta", delta.into())]));
            for rtt in [100.0, 180.0, 160.0, 120.0, 110.0] {
                sender.ack(rtt);
            }
            assert_eq!(sender.judge().cause, cause, "{delta} against 0.63");
        }
    }

    #[test]
    fn the_other_reading_remembers_eight_rounds() {
        let mut sender = Script::new(built("relds", &[("reading", "recent-max".into()), ("delta", 0.5.into())]));
        sender.rounds(3, 100.0).rounds(1, 200.0).rounds(6, 120.0);
        assert_eq!(sender.judge().cause, Corruption, "20 of 100");
        sender.rounds(6, 120.0);
        assert_eq!(sender.judge().cause, Congestion, "20 of 20");
    }
}
