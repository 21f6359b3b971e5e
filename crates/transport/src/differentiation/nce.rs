//! TCP NCE's test of the queue (Sreekumari & Chung 2011), a reconstruction.

use super::common::{falling, Memory};
use super::{LossDifferentiator, Verdict};
use crate::estimate::{BottleneckRate, QueueUsage};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss, Trigger};
use crate::settings;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "nce",
    summary: "Takes a loss for congestion if more than a few segments wait at the bottleneck (reconstruction).",
    reference: "Sreekumari & Chung 2011",
    notes: Notes {
        idea: "What a round trip takes beyond the shortest one it spends in the queue of the bottleneck. Times the rate of the bottleneck that is the \
               length of the queue, whoever filled it, and a short queue does not drop.",
        formula: "Q = (RTT - RTT_min) B / MSS; congestion if Q > theta, else corruption",
        threshold: "`theta`: a larger one takes more losses for corruption, so A_w rises and A_c falls.",
        fails: "A length says nothing of the room that is left: a flow whose own window keeps a long buffer half full loses to corruption and hears of \
                congestion, one behind a buffer of few segments the other way round. Compressed acknowledgements overrate B.",
        errata: "A reconstruction: the abstract, which is all that we could read, names the queue length of the bottleneck, computed from timestamps, and \
                 no formula. B (the largest rate in ten round trips), `theta` (Veno's 3, for lack of a published one) and the newest segment's \
                 round trip on the sender's clock instead of its timestamp are our reading. The original also tells random loss from reordering, by \
                 flight size and a dynamic delay threshold, and holds its retransmission back for so long. That part is left out: which losses \
                 are real is decided before a differentiator is asked, and against reordering the engine has RACK's window (RFC 8985).",
    },
    thresholds: &[Threshold::of_corruption("theta", Cut::Falling)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Segments in the queue beyond which a loss is congestion.
        theta: f64 = 3.0, 0.0..=1000.0;
        memory: Memory;
        /// Samples of the round-trip time below which there is no verdict.
        min_samples: u64 = 16, 1..=1000;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Nce {
            theta: self.theta,
            min_samples: self.min_samples,
            usage: self.memory.queue_usage(),
            rate: BottleneckRate::default(),
        })
    }
}

/// The differentiator of TCP NCE.
#[derive(Debug)]
pub struct Nce {
    /// Segments in the queue beyond which a loss is congestion.
    pub theta: f64,
    /// Fewer samples are no evidence.
    pub min_samples: u64,
    /// The round-trip time above its smallest value.
    pub usage: QueueUsage,
    /// What the bottleneck serves.
    pub rate: BottleneckRate,
}

impl Nce {
    /// The queue of the bottleneck in segments of `mss` octets, if enough is known.
    fn queue(&self, mss: u32) -> Option<f64> {
        let waiting = self.usage.waiting().filter(|_| self.usage.samples() >= self.min_samples)?;
        let rate = self.rate.octets_per_second()?;
        Some(waiting.as_nanos() as f64 * rate as f64 / 1e9 / f64::from(mss.max(1)))
    }
}

impl LossDifferentiator for Nce {
    fn on_ack(&mut self, ack: &Ack) {
        self.usage.on_ack(ack);
        self.rate.on_ack(ack);
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let queue = self.queue(loss.path.mss);
        if loss.trigger == Trigger::Timeout {
            self.usage.on_timeout();
        }
        queue.map_or(Verdict::UNKNOWN, |queue| Verdict::decided(queue <= self.theta, falling(queue)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};

    /// A sender on an empty path of 100 ms that gets an acknowledgement every so many milliseconds.
    fn sender(spacing_ms: f64) -> Script {
        let mut sender = Script::new(built("nce", &[]));
        for _ in 0..200 {
            sender.pause(spacing_ms).ack(100.0);
        }
        sender
    }

    #[test]
    fn more_than_three_segments_in_the_queue_are_congestion() {
        // 100 segments a second: 29 ms are 2.9 of them.
        for (rtt, queue, cause) in
            [(100.0, 0.0, Corruption), (129.0, 2.9, Corruption), (130.0, 3.0, Corruption), (131.0, 3.1, Congestion)]
        {
            let verdict = sender(10.0).pause(10.0).ack(rtt).judge();
            assert_eq!(verdict.cause, cause, "{rtt}");
            assert!((1.0 / verdict.score - 1.0 - queue).abs() < 1e-9, "{rtt}: {}", verdict.score);
        }
    }

    #[test]
    fn the_same_delay_is_a_longer_queue_where_the_bottleneck_is_faster() {
        for (spacing, queue, cause) in [(20.0, 2.0, Corruption), (5.0, 8.0, Congestion)] {
            let verdict = sender(spacing).pause(spacing).ack(140.0).judge();
            assert_eq!(verdict.cause, cause, "{spacing}");
            assert!((1.0 / verdict.score - 1.0 - queue).abs() < 1e-9, "{spacing}: {}", verdict.score);
        }
    }

    #[test]
    fn without_samples_or_a_rate_there_is_no_evidence() {
        let mut few = Script::new(built("nce", &[]));
        for _ in 0..15 {
            few.pause(10.0).ack(100.0);
        }
        assert_eq!(few.judge().cause, Unknown);
        assert_eq!(few.pause(10.0).ack(100.0).judge().cause, Corruption);
        let mut at_once = Script::new(built("nce", &[]));
        for _ in 0..40 {
            at_once.ack(100.0);
        }
        assert_eq!((at_once.judge().cause, at_once.judge().score), (Unknown, 0.0), "no time has passed between acknowledgements");
    }
}
