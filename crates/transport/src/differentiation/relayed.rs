//! The sender's half of a differentiator that works at the receiver: it believes the reports.

use super::{Cause, LossDifferentiator, Verdict};
use crate::path::{Ack, Loss, Reported, Trigger};
use crate::segment::Report;
use std::collections::BTreeMap;

/// Ranges that are remembered, as many as the receiver names. Beyond it the lowest is forgotten, and its loss counts as congestion.
const MAX_RANGES: usize = 256;

/// Keeps the verdict on each range of data that the receiver names. It holds for losses inside that range and for first transmissions only:
/// the receiver judges gaps, and a lost retransmission leaves none.
#[derive(Debug, Default)]
pub struct Relayed {
    /// Start of a range → its end and the verdict. Disjoint.
    ranges: BTreeMap<u64, (u64, Cause)>,
}

impl Relayed {
    /// Takes over a verdict on `[start, end)`; it replaces what was said of any of that before.
    fn insert(&mut self, start: u64, end: u64, cause: Cause) {
        while let Some((&left, &(right, earlier))) = self.ranges.range(..end).next_back().filter(|(_, (right, _))| *right > start)
        {
            self.ranges.remove(&left);
            if left < start {
                self.ranges.insert(left, (start, earlier));
            }
            if right > end {
                self.ranges.insert(end, (right, earlier));
            }
        }
        self.ranges.insert(start, (end, cause));
        while self.ranges.len() > MAX_RANGES {
            self.ranges.pop_first();
        }
    }
}

impl LossDifferentiator for Relayed {
    fn wants_reports(&self) -> bool {
        true
    }

    fn on_ack(&mut self, ack: &Ack) {
        while self.ranges.first_key_value().is_some_and(|(_, (end, _))| *end <= ack.path.una) {
            self.ranges.pop_first();
        }
    }

    fn on_report(&mut self, reported: &Reported) {
        let Report::Cause(report) = reported.report else { return };
        let first = report.seq.near(reported.path.una);
        let (start, end) = (first.max(reported.path.una), (first + u64::from(report.len)).min(reported.path.nxt));
        if start < end {
            self.insert(start, end, report.cause);
        }
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        // A receiver that judges asks for what it takes for corrupted (Selective-TCP), and does not name a cause.
        if loss.trigger == Trigger::Snack {
            return Verdict { cause: Cause::Corruption, score: 1.0 };
        }
        let end = loss.start + u64::from(loss.len);
        let range = self.ranges.range(..=loss.start).next_back().filter(|(_, (right, _))| end <= *right);
        match range.filter(|_| loss.transmission == 0).map(|(_, (_, cause))| cause) {
            Some(Cause::Corruption) => Verdict { cause: Cause::Corruption, score: 1.0 },
            Some(Cause::Congestion) => Verdict { cause: Cause::Congestion, score: 0.0 },
            Some(Cause::Unknown) | None => Verdict::UNKNOWN,
        }
    }
}
