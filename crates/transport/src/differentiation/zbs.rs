//! ZBS: `ZigZag`, mBiaz or Spike, whichever suits the path.

use super::biaz::{self, Biaz};
use super::spike::{self, Spike};
use super::zigzag::{self, ZigZag};
use super::{Cause, Gap, GapDifferentiator, Verdict};
use crate::arrival::Arrival;
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::settings;

pub(super) const PART: Part<dyn GapDifferentiator> = Part {
    name: "zbs",
    summary: "Asks spike, mbiaz or zigzag, by how long packets take and how many flows seem to share the slowest link.",
    reference: "Cen, Cosman & Voelker 2003",
    notes: Notes {
        idea: "None of the three is best everywhere. Spacing tells which path it is: packets that come as densely as the slowest link allows have \
               it for themselves, where mBiaz is right; N flows that share it space them N times as widely, where Spike is; in between ZigZag.",
        formula: "T_narr = T_avg / T_min; spike if ROTT < ROTT_min + slack T_min, else zigzag if T_narr < low, mbiaz if < alone, zigzag if < shared, \
                  else spike",
        threshold: "s: shifts zigzag as its own; alpha and upper of the others. One score: that of the one asked, stretched so that its threshold is 1/2",
        fails: "Where T_min fails it asks the wrong one: bursts of aggregated frames, packets of different sizes.",
        errata: "The increment of T_avg differs between public implementations; here it is T / (n + 1), the spacing a packet. T_avg begins with the \
                 first spacing.",
    },
    thresholds: &[Threshold::of_corruption("s", Cut::Own)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Waiting time below which the slowest link has room, in T_min.
        slack: f64 = 0.05, 0.0..=10.0;
        /// T_narr below which the estimate does not hold together.
        low: f64 = 0.875, 0.0..=100.0;
        /// T_narr below which the flow has the slowest link for itself.
        alone: f64 = 1.5, 0.0..=100.0;
        /// T_narr from which the slowest link is shared.
        shared: f64 = 2.0, 0.0..=100.0;
        /// Weight of the latest spacing in T_avg.
        gain: f64 = 0.125, 0.0001..=1.0;
        spike: spike::Parameters;
        /// Upper bound of mbiaz, in T_min beyond n.
        upper: f64 = 1.25, 1.0..=100.0;
        shortest: biaz::Shortest;
        zigzag: zigzag::Thresholds;
    }
}

impl Build<dyn GapDifferentiator> for Settings {
    fn build(self) -> Box<dyn GapDifferentiator> {
        Box::new(Zbs {
            spike: self.spike.spike(),
            mbiaz: Biaz::new(self.upper, self.shortest.t_min.over(self.spike.memory.window)),
            zigzag: ZigZag::new(self.zigzag.n4, self.zigzag.s, self.spike.min_samples),
            slack: self.slack,
            low: self.low,
            alone: self.alone,
            shared: self.shared,
            gain: self.gain,
            average: None,
        })
    }
}

/// The three, and what chooses among them.
#[derive(Debug)]
pub struct Zbs {
    spike: Spike,
    mbiaz: Biaz,
    zigzag: ZigZag,
    slack: f64,
    low: f64,
    alone: f64,
    shared: f64,
    gain: f64,
    /// `T_avg` in nanoseconds.
    average: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Spike,
    MBiaz,
    ZigZag,
}

impl Zbs {
    fn asked(&self) -> Option<Asked> {
        let t_min = self.mbiaz.t_min()?.as_nanos() as f64;
        let narrow = self.average? / t_min;
        let waiting = self.spike.trips().waiting()?.as_nanos() as f64;
        Some(match narrow {
            _ if waiting < self.slack * t_min => Asked::Spike,
            narrow if narrow < self.low => Asked::ZigZag,
            narrow if narrow < self.alone => Asked::MBiaz,
            narrow if narrow < self.shared => Asked::ZigZag,
            _ => Asked::Spike,
        })
    }
}

impl GapDifferentiator for Zbs {
    fn on_arrival(&mut self, arrival: &Arrival) {
        self.spike.on_arrival(arrival);
        self.mbiaz.on_arrival(arrival);
        self.zigzag.on_arrival(arrival);
        let Some(spacing) = arrival.spacing else { return };
        let missing = arrival.gap.map_or(0, |gap| gap.missing);
        let each = spacing.as_nanos() as f64 / (f64::from(missing) + 1.0);
        self.average = Some(self.average.map_or(each, |average| (1.0 - self.gain) * average + self.gain * each));
    }

    fn judge(&mut self, gap: &Gap, arrival: &Arrival) -> Verdict {
        let (verdict, threshold) = match self.asked() {
            None => return Verdict { cause: Cause::Unknown, score: 0.0 },
            Some(Asked::Spike) => (self.spike.judge(gap, arrival), self.spike.threshold()),
            Some(Asked::MBiaz) => (self.mbiaz.judge(gap, arrival), self.mbiaz.threshold()),
            Some(Asked::ZigZag) => (self.zigzag.judge(gap, arrival), self.zigzag.threshold()),
        };
        Verdict { score: stretched(verdict.score, threshold), ..verdict }
    }
}

/// The score on a scale where 1/2 is the threshold.
fn stretched(score: f64, threshold: f64) -> f64 {
    if score <= threshold {
        0.5 * score / threshold.max(f64::MIN_POSITIVE)
    } else {
        0.5 + 0.5 * (score - threshold) / (1.0 - threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differentiation::line::Line;
    use crate::kit::Arguments;
    use crate::time::Duration;
    use std::collections::BTreeMap;

    fn zbs() -> Line<Box<dyn GapDifferentiator>> {
        Line::new(PART.build(&Arguments::check(&PART, &BTreeMap::new()).unwrap()))
    }

    /// The spacings and the trip of the last packet, in `T_min` of 1 ms, and who is asked then.
    fn asked(spacings: u64, trip: f64) -> Option<Asked> {
        let Settings { slack, low, alone, shared, gain, .. } = Settings::default();
        let extremes = crate::estimate::Extremes::Lifetime;
        let settings = spike::Settings { alpha: 0.5, beta: 0.3, samples: 1, range: Duration::ZERO, extremes };
        let mut line = Line::new(Zbs {
            spike: Spike::new(settings),
            mbiaz: Biaz::new(1.25, extremes),
            zigzag: ZigZag::new(-0.5, 0.0, 1),
            slack,
            low,
            alone,
            shared,
            gain,
            average: None,
        });
        let mut at = 0;
        line.packet(0, at, 0);
        line.packet(1, at + 1000, 0);
        at += 1000;
        for n in 2..200 {
            at += spacings;
            line.packet(n, at, (trip * 1000.0) as i64);
        }
        line.differentiator.asked()
    }

    #[test]
    fn the_spacing_decides_who_is_asked() {
        assert_eq!(asked(1000, 0.04), Some(Asked::Spike), "no queue");
        assert_eq!(asked(1000, 0.06), Some(Asked::MBiaz));
        assert_eq!(asked(1490, 3.0), Some(Asked::MBiaz));
        assert_eq!(asked(1510, 3.0), Some(Asked::ZigZag));
        assert_eq!(asked(1990, 3.0), Some(Asked::ZigZag));
        assert_eq!(asked(2010, 3.0), Some(Asked::Spike));
    }

    #[test]
    fn the_verdict_is_that_of_the_one_asked() {
        let mut line = zbs();
        for n in 0..50 {
            line.packet(n, n * 1000, 10 * n as i64);
        }
        // Alone on the link: the missing packet used its slot.
        assert_eq!(line.packet(51, 51_000, 500), Some(Verdict { cause: Cause::Corruption, score: 1.0 }));
        assert_eq!(line.cause(53, 52_100, 500), Cause::Congestion);
        assert_eq!(zbs().packet(1, 0, 0), Some(Verdict { cause: Cause::Unknown, score: 0.0 }));
    }

    #[test]
    fn scores_are_stretched_around_the_threshold() {
        for (score, threshold, expected) in
            [(0.0, 0.8, 0.0), (0.4, 0.8, 0.25), (0.8, 0.8, 0.5), (0.9, 0.8, 0.75), (1.0, 0.2, 1.0)]
        {
            assert!((stretched(score, threshold) - expected).abs() < 1e-12);
        }
        assert_eq!((stretched(0.0, 0.0), stretched(1.0, 1.0)), (0.0, 0.5));
    }
}
