//! `NewReno`-FF (Barman & Matta 2002): a control chart of the round-trip time, as in Kim & Noble's flip-flop filter.

use super::common::{falling, squash, window};
use super::{LossDifferentiator, Verdict};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss};
use crate::{choices, settings};
use std::collections::VecDeque;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "newreno-ff",
    summary: "Takes a loss for corruption if a round-trip time of the last window was out of control.",
    reference: "Barman & Matta 2002, after Kim & Noble 2001",
    notes: Notes {
        idea: "The round-trip time is supposed to vary more before a random loss than before one of a queue, which fills slowly. A control chart tells \
               variation that is out of the ordinary.",
        formula: "limits X +- k MR / 1.128, X and MR the means of RTT and of |RTT_i - RTT_(i-1)| with gain 0.1; corruption if at least m of the last W \
                  samples lay outside, else congestion",
        threshold: "`k`: a larger one leaves fewer samples outside, so A_w falls and A_c rises.",
        fails: "A queue that drains and fills is itself out of the ordinary; aggregation and delayed acknowledgements always are. A random loss on an \
                otherwise quiet path shows nothing. A flow that overflows a queue of its own makes it fill and drain: all its drops are corruption, a window \
                that is kept never falls below what overflows, and without SACK each drop costs a round trip. 45 segments (64 KiB) where the path \
                holds 37 lose 8 in each episode; 10 Mbit/s then carry 4.6 without any error on the link, with NewReno 9.3.",
        errata: "The rule could be had only in paraphrase: variation, not level, is what counts. `rule = level` is the opposite intuition: a loss is \
                 corruption if the latest sample is below the centre line, whatever `k`. Gains of the chart and ten samples before the first verdict are \
                 our reading.",
    },
    thresholds: &[Threshold::of_congestion("k", Cut::Rising)],
    ..Part::of::<Settings>()
};

choices! {
    /// What makes a loss corruption.
    enum Rule {
        /// Samples outside the limits.
        Variation = "variation",
        /// Samples below the centre line.
        Level = "level",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// Distance of the limits from the centre line in standard deviations.
        k: f64 = 3.0, 0.0..=100.0;
        /// Samples of the last window that have to lie outside.
        m: usize = 1, 1..=100;
        /// Whether samples outside the limits or below the centre line make a loss corruption.
        rule: Rule;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(NewRenoFf {
            k: self.k,
            m: self.m,
            by_level: self.rule == Rule::Level,
            chart: Chart::default(),
            latest: 0.0,
            deviations: VecDeque::new(),
        })
    }
}

/// Samples that are evidence.
const FEWEST: u64 = 10;
/// Samples that are remembered at most.
const MOST: usize = 4096;
/// The mean range of two samples in standard deviations of one.
const D2: f64 = 1.128;
/// Weight of a sample in both means.
const GAIN: f64 = 0.1;

/// The differentiator of NewReno-FF.
#[derive(Debug)]
pub struct NewRenoFf {
    /// Distance of the limits in standard deviations.
    pub k: f64,
    /// Samples that have to lie outside.
    pub m: usize,
    /// Judge by the level of the latest sample instead.
    pub by_level: bool,
    /// The control chart.
    pub chart: Chart,
    /// Signed distance of the latest sample from the centre line.
    latest: f64,
    /// Distances of the samples of the last window, without sign.
    deviations: VecDeque<f64>,
}

/// An individuals control chart with moving ranges.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chart {
    /// The centre line, in seconds.
    pub centre: f64,
    /// The mean moving range, in seconds.
    pub range: f64,
    last: f64,
    samples: u64,
}

impl Chart {
    /// Where a sample of `x` seconds stands, in standard deviations from the centre line as it was before.
    pub fn insert(&mut self, x: f64) -> f64 {
        self.samples += 1;
        if self.samples == 1 {
            (self.centre, self.last) = (x, x);
            return 0.0;
        }
        let off = x - self.centre;
        let deviation = if off == 0.0 { 0.0 } else { off * D2 / self.range };
        let range = (x - self.last).abs();
        self.range = if self.samples == 2 { range } else { self.range + GAIN * (range - self.range) };
        self.centre += GAIN * off;
        self.last = x;
        deviation
    }

    /// The control limits at `k` standard deviations, in seconds.
    pub fn limits(&self, k: f64) -> (f64, f64) {
        let width = k * self.range / D2;
        (self.centre - width, self.centre + width)
    }
}

impl LossDifferentiator for NewRenoFf {
    fn on_ack(&mut self, ack: &Ack) {
        let Some(rtt) = ack.delay else { return };
        self.latest = self.chart.insert(rtt.as_secs_f64());
        let keep = (window(ack.path).ceil() as usize).clamp(1, MOST);
        while self.deviations.len() >= keep {
            self.deviations.pop_front();
        }
        self.deviations.push_back(self.latest.abs());
    }

    fn judge(&mut self, _loss: &Loss) -> Verdict {
        if self.chart.samples < FEWEST {
            return Verdict::UNKNOWN;
        }
        if self.by_level {
            return Verdict::decided(self.latest < 0.0, squash(-self.latest));
        }
        // The m-th largest distance is outside exactly if at least m are.
        let mut window: Vec<f64> = self.deviations.iter().copied().collect();
        let Some(nth) = window.len().checked_sub(self.m) else { return Verdict::decided(false, 0.0) };
        let (_, deviation, _) = window.select_nth_unstable_by(nth, f64::total_cmp);
        Verdict::decided(*deviation > self.k, 1.0 - falling(*deviation))
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};
    use super::*;

    #[test]
    fn the_limits_are_those_of_the_individuals_chart() {
        let chart = Chart { centre: 100.0, range: 11.28, ..Chart::default() };
        let (lower, upper) = chart.limits(3.0);
        assert!((lower - 70.0).abs() < 1e-9 && (upper - 130.0).abs() < 1e-9);
    }

    #[test]
    fn the_chart_follows_the_samples() {
        let mut chart = Chart::default();
        assert_eq!(chart.insert(100.0), 0.0);
        assert_eq!(chart.insert(110.0), f64::INFINITY, "nothing has varied before");
        assert!((chart.centre, chart.range) == (101.0, 10.0));
        let deviation = chart.insert(111.0);
        assert!((deviation - 10.0 * 1.128 / 10.0).abs() < 1e-12);
        assert!((chart.centre - 102.0).abs() < 1e-12 && (chart.range - 9.1).abs() < 1e-12);
    }

    /// A path whose round-trip time swings between 100 and 102 ms.
    fn swinging(parameters: &[(&str, crate::kit::Value)]) -> Script {
        let mut sender = Script::new(built("newreno-ff", parameters));
        for n in 0..200 {
            sender.ack(if n % 2 == 0 { 100.0 } else { 102.0 });
        }
        sender
    }

    #[test]
    fn variation_out_of_the_ordinary_is_corruption_for_a_window() {
        // Swings of 2 ms are a deviation of 1.77 ms: the limits at 3 are about 95.7 and 106.3.
        let mut sender = swinging(&[]);
        assert_eq!(sender.judge().cause, Congestion);
        sender.ack(106.0);
        assert_eq!(sender.judge().cause, Congestion);
        let mut sender = swinging(&[]);
        sender.ack(107.0);
        assert_eq!(sender.judge().cause, Corruption);
        for n in 0..9 {
            sender.ack(101.0);
            assert_eq!(sender.judge().cause, Corruption, "{n}");
        }
        sender.ack(101.0);
        assert_eq!(sender.judge().cause, Congestion, "older than a window of ten");
        let mut low = swinging(&[]);
        low.ack(95.0);
        assert_eq!(low.judge().cause, Corruption, "downwards too");
    }

    #[test]
    fn m_samples_have_to_lie_outside() {
        let mut sender = swinging(&[("m", 2.0.into())]);
        sender.ack(110.0);
        assert_eq!(sender.judge().cause, Congestion);
        sender.ack(125.0);
        assert_eq!(sender.judge().cause, Corruption);
    }

    #[test]
    fn the_other_rule_looks_at_the_level() {
        let mut sender = swinging(&[("rule", "level".into())]);
        for (rtt, cause) in [(100.0, Corruption), (90.0, Corruption), (103.0, Congestion), (130.0, Congestion)] {
            sender.ack(rtt);
            assert_eq!(sender.judge().cause, cause, "{rtt}");
        }
    }

    #[test]
    fn ten_samples_are_evidence() {
        let mut sender = Script::new(built("newreno-ff", &[]));
        for _ in 0..9 {
            sender.ack(100.0);
        }
        assert_eq!(sender.judge().cause, Unknown);
        sender.ack(100.0);
        assert_eq!((sender.judge().cause, sender.judge().score), (Congestion, 0.0), "a path that never varies");
    }
}
