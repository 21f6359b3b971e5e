//! TCP-Casablanca: congestion takes the packets that the sender has marked for it, the channel takes any.

use super::{Cause, Gap, GapDifferentiator, Verdict};
use crate::arrival::Arrival;
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::settings;

pub(super) const PART: Part<dyn GapDifferentiator> = Part {
    name: "casablanca",
    summary: "Congestion if only packets are missing that the sender marked for preferential dropping.",
    reference: "Biaz & Vaidya 2005",
    notes: Notes {
        idea: "Random looking congestion losses are the difficulty, so take the randomness out: the sender marks one packet in n \"out\" (AF12, the \
               others AF11), and a congested queue drops those first. The channel knows no marks and hits all alike.",
        formula: "corruption iff every missing packet was \"in\"; packet k of the stream is \"out\" iff k mod n = 0",
        threshold: "n: the larger, the higher A_w = 1 - 1/n and the lower A_c, because fewer packets are there for a queue to drop first. any_in: \
                    one missing \"in\" suffices",
        fails: "Queues that do not drop by precedence; overflows that take more than the \"out\" packets in the queue; senders that cut the stream \
                into segments of different sizes. Without a queue that prefers marks the drops of a flow can still be in step with them. When slow start \
                overflows a queue, an acknowledgement of two segments lets four out, of which the queue takes two, and with n = 4 every gap of two \
                lies at the same place of the pattern. A lone flow over a plain queue had 73 % of its drops taken for congestion with n = 4, 47 % \
                with n = 5, and 7 % with every segment acknowledged at once (2 Mbit/s, 20 packets of queue, 1 % loss; 1,146 drops in 20 runs).",
        errata: "From the abstract and the published bound A_w > 75 %, which is 1 - 1/4: n = 4 and the rules are our reading. Marks go by position \
                 in the stream, not by transmission, so that the receiver knows the mark of what it never saw. A gap of more than n packets is \
                 congestion even with any_in.",
    },
    thresholds: &[Threshold::of_corruption("n", Cut::Nowhere)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// One packet in this many is marked.
        n: u32 = 4, 2..=1000;
        /// Corruption as soon as one missing packet was not marked: a queue would have dropped marked ones first.
        any_in: bool = false;
    }
}

impl Build<dyn GapDifferentiator> for Settings {
    fn build(self) -> Box<dyn GapDifferentiator> {
        Box::new(Casablanca::new(self.n, self.any_in))
    }
}

/// Knows the marks of what is missing by its place in the stream.
#[derive(Debug)]
pub struct Casablanca {
    n: u32,
    any_in: bool,
}

impl Casablanca {
    /// One packet in `n` is "out"; `any_in`: one missing "in" is enough for corruption.
    pub fn new(n: u32, any_in: bool) -> Self {
        Self { n: n.max(1), any_in }
    }
}

impl GapDifferentiator for Casablanca {
    fn drop_precedence(&self) -> Option<u32> {
        Some(self.n)
    }

    fn judge(&mut self, gap: &Gap, arrival: &Arrival) -> Verdict {
        let full = u64::from(arrival.view.full_segment.max(1));
        let index = |position: u64| (position - arrival.view.first) / full;
        let (first, last) = (index(gap.start), index(gap.end - 1));
        let missing = last - first + 1;
        if missing > u64::from(self.n) {
            return Verdict { cause: Cause::Congestion, score: 0.0 };
        }
        let n = u64::from(self.n);
        let out = last / n + 1 - first.div_ceil(n);
        let score = (missing - out) as f64 / missing as f64;
        let corruption = if self.any_in { out < missing } else { out == 0 };
        Verdict { cause: if corruption { Cause::Corruption } else { Cause::Congestion }, score }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differentiation::line::Line;

    /// The verdicts on gaps from one number to another, both missing.
    fn judged(n: u32, any_in: bool, gaps: &[(u64, u64)]) -> Vec<(Cause, f64)> {
        let mut line = Line::new(Casablanca::new(n, any_in));
        let mut next = 0;
        let mut verdicts = Vec::new();
        for &(from, to) in gaps {
            for number in next..from {
                assert_eq!(line.packet(number, 0, 0), None);
            }
            verdicts.extend(line.packet(to + 1, 0, 0));
            next = to + 2;
        }
        verdicts.iter().map(|verdict| (verdict.cause, verdict.score)).collect()
    }

    #[test]
    fn out_is_congestion_and_in_is_corruption() {
        use Cause::{Congestion, Corruption};
        for (any_in, from, to, cause, score) in [
            (false, 4, 4, Congestion, 0.0),
            (false, 5, 5, Corruption, 1.0),
            (false, 5, 7, Corruption, 1.0),
            (false, 4, 5, Congestion, 0.5),
            (true, 4, 5, Corruption, 0.5),
            (true, 4, 4, Congestion, 0.0),
            (true, 4, 7, Corruption, 0.75),
            (true, 4, 8, Congestion, 0.0), // longer than n
        ] {
            assert_eq!(judged(4, any_in, &[(from, to)]), [(cause, score)], "{from} to {to}");
        }
        // Two gaps with one marked packet each.
        assert_eq!(judged(4, false, &[(4, 4), (8, 8)]), [(Congestion, 0.0), (Congestion, 0.0)]);
    }
}
