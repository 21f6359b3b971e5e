//! TCP CERL's test of the queue (El-Ocla 2010), and its successors CERL+ and CERLX.

use super::common::{falling, Memory};
use super::{LossDifferentiator, Verdict};
use crate::estimate::QueueUsage;
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss, Trigger};
use crate::time::Duration;
use crate::{choices, settings};

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "cerl",
    summary: "Takes a loss for congestion if the queue holds at least 55 % of the most that it ever held.",
    reference: "El-Ocla 2010",
    notes: Notes {
        idea: "The queue that waits is l = (RTT - T) B. Losses while it is well below its largest value cannot come from its overflow.",
        formula: "l = (RTT - T) B, l_max = max l; congestion if l >= a l_max, else corruption. B cancels: a test of (RTT - RTT_min) / (RTT_max - RTT_min)",
        threshold: "`a`: a larger one takes more losses for corruption, so A_w rises and A_c falls. The readings plus and x compute their own.",
        fails: "As LDA_EQ, of which it is the same test with a threshold of 0.55: everything depends on extremes that a spike or a new route spoils.",
        errata: "CERL also reduces its window at most once a window of data; that is the reaction's part, and is left out of the verdict. CERL+ \
                 replaces `a` by T / mean(RTT); CERLX takes extremes and mean over a window, 60 s in a public implementation. While RTT_min = RTT_max the \
                 published test calls every loss congestion; here it is no evidence, which a sender treats alike.",
    },
    thresholds: &[Threshold::of_corruption("a", Cut::Complement)],
    ..Part::of::<Settings>()
};

choices! {
    /// Which CERL.
    enum Reading {
        /// A fixed share of the largest queue.
        Plain = "plain",
        /// CERL+: the threshold follows the mean.
        Plus = "plus",
        /// The same over a window.
        X = "x",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// Share of the largest queue from which on a loss is congestion.
        a: f64 = 0.55, 0.0..=1.0;
        /// CERL, CERL+ (a = RTT_min / mean RTT) or CERLX (the same over a window).
        reading: Reading;
        memory: Memory;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        let (capacity, usage) = match self.reading {
            Reading::Plus => (Capacity::Dynamic, self.memory.queue_usage()),
            Reading::X => (Capacity::Dynamic, QueueUsage::new(self.memory.window.extremes())),
            Reading::Plain => (Capacity::Share(self.a), self.memory.queue_usage()),
        };
        Box::new(Cerl { capacity, usage })
    }
}

/// The differentiator of TCP CERL.
#[derive(Debug)]
pub struct Cerl {
    /// What the queue is compared with.
    pub capacity: Capacity,
    /// The round-trip time between its extremes.
    pub usage: QueueUsage,
}

/// The part of the largest queue from which on a loss is congestion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// CERL: this constant share of the largest queueing seen.
    Share(f64),
    /// The smallest round-trip time in proportion to the mean one: CERL+ and CERLX.
    Dynamic,
}

impl LossDifferentiator for Cerl {
    fn on_ack(&mut self, ack: &Ack) {
        self.usage.on_ack(ack);
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let usage = self.usage.usage(Duration::ZERO);
        let mean = self.usage.mean().as_nanos() as f64;
        let min = self.usage.min().as_nanos() as f64;
        if loss.trigger == Trigger::Timeout {
            self.usage.on_timeout();
        }
        match (self.capacity, usage) {
            (_, None) => Verdict::UNKNOWN,
            (Capacity::Share(a), Some(u)) => Verdict::decided(u < a, 1.0 - u),
            (Capacity::Dynamic, Some(_)) if min == 0.0 => Verdict::decided(false, 0.0),
            (Capacity::Dynamic, Some(u)) => Verdict::decided(u < min / mean, falling(u * mean / min)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};

    #[test]
    fn from_55_percent_on_it_is_congestion() {
        let mut sender = Script::new(built("cerl", &[]));
        assert_eq!(sender.judge().cause, Unknown);
        sender.ack(100.0);
        assert_eq!(sender.judge().cause, Unknown, "the queue has never held anything");
        sender.ack(200.0);
        for (rtt, cause) in [(154.0, Corruption), (155.0, Congestion), (100.0, Corruption), (200.0, Congestion)] {
            sender.ack(rtt);
            assert_eq!(sender.judge().cause, cause, "{rtt}");
        }
        assert_eq!(sender.judge().score, 0.0);
    }

    #[test]
    fn its_successor_compares_with_the_mean() {
        // Mean of 100, 200, 300, 200: 200. T / mean = 0.5, so 200 ms is the border.
        for (rtt, cause) in [(199.0, Corruption), (200.0, Congestion)] {
            let mut sender = Script::new(built("cerl", &[("reading", "plus".into())]));
            for rtt in [100.0, 200.0, 300.0].into_iter().chain(std::iter::repeat_n(200.0, 4000)) {
                sender.ack(rtt);
            }
            sender.ack(rtt);
            assert_eq!(sender.judge().cause, cause, "{rtt}");
        }
    }

    #[test]
    fn its_second_successor_forgets() {
        let mut lifetime = Script::new(built("cerl", &[("reading", "plus".into())]));
        let mut windowed = Script::new(built("cerl", &[("reading", "x".into())]));
        for sender in [&mut lifetime, &mut windowed] {
            for rtt in [100.0, 300.0, 300.0, 300.0] {
                sender.ack(rtt);
            }
            sender.pause(120_000.0);
            for rtt in [280.0, 300.0, 300.0, 290.0] {
                sender.ack(rtt);
            }
        }
        assert_eq!(lifetime.judge().cause, Congestion, "95 % of a queue of 200 ms");
        assert_eq!(windowed.judge().cause, Corruption, "half of one of 20 ms, against 280 / 293");
    }
}
