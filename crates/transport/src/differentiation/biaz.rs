//! Biaz: a packet that the last hop corrupted has used its time there, one that was dropped before has not.

use super::common::{Lasting, Window};
use super::{Cause, Gap, GapDifferentiator, Verdict};
use crate::arrival::Arrival;
use crate::estimate::{Extremes, Spacing};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::settings;
use crate::time::Duration;

const NOTES: Notes = Notes {
    idea: "If the wireless link is the last hop and the bottleneck, packets arrive back to back. A packet that it corrupted leaves a gap of exactly its \
           transmission time; one that was dropped earlier leaves none, and a longer gap means that something else came between.",
    formula: "corruption iff (n + 1) T_min <= T < (n + upper) T_min, with T the time between the arrivals around the gap of n packets and T_min the \
              shortest time between two packets in sequence",
    threshold: "upper: the larger, the higher A_w and the lower A_c",
    fails: "Several flows on the wireless link (arrivals interleave), a bottleneck elsewhere, packets of different sizes, link-layer retransmission and \
            aggregation.",
    errata: "The lower bound is compared with a tolerance of 1 ns, else the exact equality of a simulator is lost to rounding. Only full segments give \
             T_min. The score is the distance beyond the lower bound in T_min, so that one run draws the whole trade-off in `upper`.",
};

/// The original, after Biaz & Vaidya 1999.
pub(super) const PART: Part<dyn GapDifferentiator> = Part {
    name: "biaz",
    summary: "Corruption if the gap lasted as long as the missing packets take on the slowest link.",
    reference: "Biaz & Vaidya 1999",
    notes: NOTES,
    thresholds: &[Threshold::of_corruption("upper", Cut::Inverse)],
    ..Part::of::<Settings>()
};

/// The tighter bound of Cen, Cosman & Voelker 2003.
pub(super) const MODIFIED: Part<dyn GapDifferentiator> = Part {
    name: "mbiaz",
    summary: "Biaz with a tighter upper bound.",
    reference: "Cen, Cosman & Voelker 2003",
    notes: NOTES,
    thresholds: &[Threshold::of_corruption("upper", Cut::Inverse)],
    ..Part::of::<Tighter>()
};

settings! {
    /// How long `T_min` is remembered.
    pub(super) struct Shortest {
        /// T_min: the shortest of the whole connection, or of a window without what is shorter than half the median.
        pub t_min: Lasting;
    }
}

settings! {
    /// What can be set of Biaz.
    struct Settings {
        /// Upper bound of the gap, in T_min beyond n.
        upper: f64 = 2.0, 1.0..=100.0;
        shortest: Shortest;
        window: Window;
    }
}

settings! {
    /// What can be set of mBiaz.
    struct Tighter {
        /// Upper bound of the gap, in T_min beyond n.
        upper: f64 = 1.25, 1.0..=100.0;
        shortest: Shortest;
        window: Window;
    }
}

impl Build<dyn GapDifferentiator> for Settings {
    fn build(self) -> Box<dyn GapDifferentiator> {
        Box::new(Biaz::new(self.upper, self.shortest.t_min.over(self.window)))
    }
}

impl Build<dyn GapDifferentiator> for Tighter {
    fn build(self) -> Box<dyn GapDifferentiator> {
        Box::new(Biaz::new(self.upper, self.shortest.t_min.over(self.window)))
    }
}

/// Rounding that the lower bound forgives.
const TOLERANCE: Duration = Duration::from_nanos(1);

/// The state of Biaz and of mBiaz.
#[derive(Debug)]
pub struct Biaz {
    upper: f64,
    spacing: Spacing,
}

impl Biaz {
    /// `upper` is the bound in `T_min` beyond n.
    pub fn new(upper: f64, t_min: Extremes) -> Self {
        Self { upper, spacing: Spacing::new(t_min) }
    }

    /// `T_min`, once it is known.
    pub(super) fn t_min(&self) -> Option<Duration> {
        self.spacing.min()
    }

    /// The score at which the verdict changes.
    pub(super) fn threshold(&self) -> f64 {
        1.0 / self.upper
    }
}

impl GapDifferentiator for Biaz {
    fn on_arrival(&mut self, arrival: &Arrival) {
        self.spacing.on_arrival(arrival);
    }

    fn judge(&mut self, gap: &Gap, arrival: &Arrival) -> Verdict {
        let (Some(t_min), Some(spacing)) = (self.spacing.min(), arrival.spacing) else {
            return Verdict { cause: Cause::Unknown, score: 0.0 };
        };
        let slots = spacing.as_nanos() as f64 / t_min.as_nanos() as f64;
        let missing = f64::from(gap.missing);
        if spacing + TOLERANCE < t_min * (u64::from(gap.missing) + 1) {
            return Verdict { cause: Cause::Congestion, score: 0.0 };
        }
        // How far beyond n the gap reaches: 1 is the lower bound, and the further beyond it the likelier is congestion.
        let beyond = (slots - missing).max(1.0);
        let cause = if beyond < self.upper { Cause::Corruption } else { Cause::Congestion };
        Verdict { cause, score: 1.0 / beyond }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differentiation::line::Line;

    /// The verdict on a gap of `missing` packets that lasts `gap` µs where packets take 10 ms.
    fn judged(upper: f64, missing: u64, gap: u64) -> Verdict {
        let mut line = Line::new(Biaz::new(upper, Extremes::Lifetime));
        for n in 0..4 {
            line.packet(n, 10_000 * n, 0);
        }
        line.packet(4 + missing, 30_000 + gap, 0).unwrap()
    }

    #[test]
    fn the_gap_lasts_as_long_as_what_is_missing() {
        use Cause::{Congestion, Corruption};
        for (upper, missing, gap, cause) in [
            (1.25, 1, 20_000, Corruption),
            (1.25, 1, 22_400, Corruption),
            (1.25, 1, 22_500, Congestion),
            (1.25, 1, 19_900, Congestion),
            (1.25, 3, 40_000, Corruption),
            (1.25, 3, 42_500, Congestion),
            (2.0, 1, 25_000, Corruption),
            (2.0, 1, 29_900, Corruption),
            (2.0, 1, 30_000, Congestion),
            (2.0, 2, 39_900, Corruption),
            (2.0, 2, 29_900, Congestion),
        ] {
            let verdict = judged(upper, missing, gap);
            assert_eq!(verdict.cause, cause, "{missing} missing in {gap} µs, upper {upper}");
            assert_eq!(verdict.score > 1.0 / upper, cause == Corruption);
        }
        assert_eq!(judged(1.25, 1, 40_000).score, 1.0 / 3.0);
    }

    #[test]
    fn without_a_packet_in_sequence_it_knows_nothing() {
        let mut line = Line::new(Biaz::new(2.0, Extremes::Lifetime));
        line.packet(0, 0, 0);
        assert_eq!(line.packet(2, 10_000, 0), Some(Verdict { cause: Cause::Unknown, score: 0.0 }));
    }
}
