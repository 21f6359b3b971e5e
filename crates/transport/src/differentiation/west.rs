//! The differentiator of TCPW Bulk Repeat (Yang, Wang, Gerla & Sanadidi 2005): spikes of the round-trip time.

use super::common::Memory;
use super::{LossDifferentiator, Verdict};
use crate::estimate::{QueueUsage, RoundRate};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss, Trigger};
use crate::settings;
use crate::time::Duration;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "west",
    summary: "Takes a loss for congestion while the round-trip time is in a spike.",
    reference: "Yang, Wang, Gerla & Sanadidi 2005",
    notes: Notes {
        idea: "A queue that fills up shows as a spike of the round-trip time. It begins at a high threshold and lasts until a low one, so that a queue \
               which drains slowly still counts.",
        formula: "begins if RTT > RTT_min + alpha (RTT_max - RTT_min), ends if RTT < RTT_min + beta (RTT_max - RTT_min); congestion in a spike, else \
                  corruption",
        threshold: "`alpha`: a larger one makes spikes rarer, so A_w rises and A_c falls. `beta`: a larger one makes them shorter, with the same effect.",
        fails: "A path that is always loaded is in one long spike: with a low `beta` every loss is congestion. Extremes as for LDA_EQ.",
        errata: "The constants are recalled, not verified: 0.4 and 0.05; Spike (Cen, Cosman & Voelker 2003), the same machine at the receiver, has 1/2 \
                 and 1/3. The original also takes a loss for congestion if data arrives much slower than the window lets it leave; how the two combine \
                 is our reading (either suffices), and it is off, as in Park & Chung's comparison. The score is that of `alpha` with `beta` as it is; a \
                 `beta` above `alpha` counts as `alpha`.",
    },
    thresholds: &[Threshold::of_corruption("alpha", Cut::Complement), Threshold::of_corruption("beta", Cut::Nowhere)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Share of the range of the round-trip time above which a spike begins.
        alpha: f64 = 0.4, 0.0..=1.0;
        /// Share of it below which a spike ends.
        beta: f64 = 0.05, 0.0..=1.0;
        /// Take a loss for congestion also if data arrives slower than `gamma` times the window in the smallest round-trip time.
        rate_gap: bool = false;
        /// Share of the expected rate below which that is so.
        gamma: f64 = 0.5, 0.0..=1.0;
        memory: Memory;
        /// Samples of the round-trip time below which there is no verdict.
        min_samples: u64 = 20, 1..=1000;
        /// Distance of the extremes in milliseconds below which there is no verdict.
        min_range_ms: f64 = 1.0, 0.0..=1000.0;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(West {
            alpha: self.alpha,
            beta: self.beta,
            min_samples: self.min_samples,
            min_range: Duration::from_secs_f64(self.min_range_ms / 1e3),
            gap: self.rate_gap.then(|| RateGap { gamma: self.gamma, rate: RoundRate::default() }),
            usage: self.memory.queue_usage(),
            crest: 0.0,
        })
    }
}

/// The differentiator of TCPW-BR.
#[derive(Debug)]
pub struct West {
    /// Usage above which a spike begins.
    pub alpha: f64,
    /// Usage below which it ends.
    pub beta: f64,
    /// Fewer samples are no evidence.
    pub min_samples: u64,
    /// Extremes closer to one another are no evidence.
    pub min_range: Duration,
    /// The second test, if it is made.
    pub gap: Option<RateGap>,
    /// The round-trip time between its extremes.
    pub usage: QueueUsage,
    /// The highest usage since it was last below `beta`. It is above a given `alpha` exactly in the spikes that begin there, so one
    /// number tells of every `alpha` at once.
    crest: f64,
}

/// Whether data arrives much slower than the window lets it leave.
#[derive(Debug)]
pub struct RateGap {
    /// Share of the expected rate below which that is so.
    pub gamma: f64,
    /// The rate of each round.
    pub rate: RoundRate,
}

impl LossDifferentiator for West {
    fn on_ack(&mut self, ack: &Ack) {
        if self.usage.on_ack(ack).is_some() {
            if let Some(usage) = self.usage.usage(self.min_range) {
                self.crest = if usage < self.beta { usage } else { self.crest.max(usage) };
            }
        }
        if let Some(gap) = &mut self.gap {
            gap.rate.on_ack(ack);
        }
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let known = self.usage.samples() >= self.min_samples && self.usage.usage(self.min_range).is_some();
        let gap = self.gap.as_ref().is_some_and(|gap| {
            let expected = loss.path.cwnd as f64 / self.usage.min().as_secs_f64();
            gap.rate.last().is_some_and(|rate| rate < gap.gamma * expected)
        });
        if loss.trigger == Trigger::Timeout {
            self.usage.on_timeout();
        }
        match (known, gap) {
            (false, _) => Verdict::UNKNOWN,
            (true, true) => Verdict::decided(false, 0.0),
            (true, false) => Verdict::decided(self.crest <= self.alpha, 1.0 - self.crest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};

    /// A sender whose extremes are 100 and 200 ms, in no spike.
    fn sender(alpha: f64, beta: f64) -> Script {
        let mut sender = Script::new(built("west", &[("alpha", alpha.into()), ("beta", beta.into())]));
        for rtt in [100.0, 200.0].into_iter().cycle().take(20) {
            sender.ack(rtt);
        }
        sender.ack(100.0);
        sender
    }

    #[test]
    fn a_spike_begins_above_one_threshold_and_ends_below_another() {
        let mut sender = sender(0.5, 1.0 / 3.0);
        let expected = [
            (120.0, Corruption),
            (151.0, Congestion),
            (140.0, Congestion),
            (134.0, Congestion),
            (132.0, Corruption),
            (149.0, Corruption),
            (150.0, Corruption),
        ];
        for (rtt, cause) in expected {
            sender.ack(rtt);
            assert_eq!(sender.judge().cause, cause, "{rtt}");
        }
    }

    #[test]
    fn a_low_end_makes_long_spikes() {
        let mut sender = sender(0.4, 0.05);
        for (rtt, cause) in [(140.0, Corruption), (141.0, Congestion), (105.0, Congestion), (104.0, Corruption)] {
            sender.ack(rtt);
            assert_eq!(sender.judge().cause, cause, "{rtt}");
        }
    }

    #[test]
    fn an_end_above_the_beginning_counts_as_the_beginning() {
        let mut sender = sender(0.3, 0.8);
        for (rtt, cause) in [(130.0, Corruption), (131.0, Congestion), (190.0, Congestion), (130.0, Corruption)] {
            sender.ack(rtt);
            assert_eq!(sender.judge().cause, cause, "{rtt}");
        }
    }

    #[test]
    fn twenty_samples_are_evidence() {
        let mut sender = Script::new(built("west", &[]));
        for rtt in [100.0, 200.0].into_iter().cycle().take(19) {
            sender.ack(rtt);
        }
        assert_eq!(sender.judge().cause, Unknown);
        sender.ack(200.0);
        assert_eq!(sender.judge().cause, Congestion);
    }

    #[test]
    fn the_second_test_finds_data_that_arrives_too_slowly() {
        let mut sender = Script::new(built("west", &[("rate_gap", true.into())]));
        // A window of 10 in 100 ms is expected.
        for (spacing, cause) in [(10.0, Corruption), (19.0, Corruption), (21.0, Congestion)] {
            for n in 0..100 {
                sender.pause(spacing).ack(if n == 50 { 130.0 } else { 100.0 });
            }
            assert_eq!(sender.judge().cause, cause, "a segment every {spacing} ms");
        }
    }
}
