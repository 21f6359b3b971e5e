//! Biaz: a packet that the last hop corrupted has used its time there, one that was dropped before has not.

use super::{Cause, Gap, GapDifferentiator, Verdict};
use crate::receiver::Arrival;
use crate::scheme::{Kind, Notes, Parameter, Part};
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

/// Biaz & Vaidya 1999.
pub(super) const PART: Part<dyn GapDifferentiator> = Part {
    name: "biaz",
    summary: "Corruption if the gap lasted as long as the missing packets take on the slowest link.",
    reference: "Biaz & Vaidya 1999",
    notes: NOTES,
    parameters: &[Parameter {
        name: "upper",
        summary: "Upper bound of the gap, in T_min beyond n.",
        kind: Kind::Number { default: 2.0, min: 1.0, max: 100.0 },
    }],
    build: |arguments| Box::new(Biaz::new(arguments.number("upper"))),
};

/// The tighter bound of Cen, Cosman & Voelker 2003.
pub(super) const MODIFIED: Part<dyn GapDifferentiator> = Part {
    name: "mbiaz",
    summary: "Biaz with a tighter upper bound.",
    reference: "Cen, Cosman & Voelker 2003",
    parameters: &[Parameter {
        name: "upper",
        summary: "Upper bound of the gap, in T_min beyond n.",
        kind: Kind::Number { default: 1.25, min: 1.0, max: 100.0 },
    }],
    ..PART
};

/// Rounding that the lower bound forgives.
const TOLERANCE: Duration = Duration::from_nanos(1);

/// The state of Biaz and of mBiaz.
#[derive(Debug)]
pub struct Biaz {
    upper: f64,
    t_min: Option<Duration>,
}

impl Biaz {
    /// `upper` is the bound in `T_min` beyond n.
    pub fn new(upper: f64) -> Self {
        Self { upper, t_min: None }
    }
}

impl GapDifferentiator for Biaz {
    fn on_arrival(&mut self, arrival: &Arrival) {
        let in_sequence = arrival.gap.is_none() && !arrival.duplicate && arrival.len == arrival.view.full_segment;
        if let (true, Some(spacing)) = (in_sequence, arrival.spacing) {
            self.t_min = Some(self.t_min.map_or(spacing, |t_min| t_min.min(spacing)));
        }
    }

    fn judge(&mut self, gap: &Gap, arrival: &Arrival) -> Verdict {
        let (Some(t_min), Some(spacing)) = (self.t_min.filter(|t| t.as_nanos() > 0), arrival.spacing) else {
            return Verdict { cause: Cause::Unknown, score: 0.0 };
        };
        let slots = spacing.as_nanos() as f64 / t_min.as_nanos() as f64;
        let missing = f64::from(gap.missing);
        if spacing + TOLERANCE < t_min * u64::from(gap.missing + 1) {
            return Verdict { cause: Cause::Congestion, score: 0.0 };
        }
        // How far beyond n the gap reaches: 1 is the lower bound, and the further beyond it the likelier is congestion.
        let beyond = (slots - missing).max(1.0);
        let cause = if beyond < self.upper { Cause::Corruption } else { Cause::Congestion };
        Verdict { cause, score: 1.0 / beyond }
    }
}
