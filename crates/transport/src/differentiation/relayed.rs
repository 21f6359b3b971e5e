//! The sender's half of a differentiator that works at the receiver: it believes the reports.

use super::{Cause, LossDifferentiator, Verdict};
use crate::path::{Ack, Loss, Reported};
use crate::segment::Report;
use std::collections::BTreeMap;

/// Keeps the latest verdict on each hole that the receiver names. A verdict covers the losses from the hole's left edge to the next
/// reported hole, and first transmissions only: the receiver judges gaps, and a lost retransmission leaves none.
#[derive(Debug, Default)]
pub struct Relayed {
    holes: BTreeMap<u64, Cause>,
}

impl LossDifferentiator for Relayed {
    fn wants_reports(&self) -> bool {
        true
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.acked > 0 && !self.holes.is_empty() {
            // A hole that is partly filled keeps its verdict for the rest.
            let rest = self.holes.split_off(&(ack.path.una + 1));
            let last = self.holes.pop_last();
            self.holes = rest;
            if let (Some((_, cause)), true) = (last, ack.path.una < ack.path.nxt) {
                self.holes.entry(ack.path.una).or_insert(cause);
            }
        }
    }

    fn on_report(&mut self, reported: &Reported) {
        if let (Report::Cause(report), Some(segment)) = (reported.report, reported.segment) {
            self.holes.insert(segment.start, report.cause);
        }
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let known = self.holes.range(..=loss.start).next_back().filter(|_| loss.transmission == 0);
        match known.map(|(_, &cause)| cause) {
            Some(Cause::Corruption) => Verdict { cause: Cause::Corruption, score: 1.0 },
            Some(Cause::Congestion) => Verdict { cause: Cause::Congestion, score: 0.0 },
            Some(Cause::Unknown) | None => Verdict { cause: Cause::Unknown, score: 0.0 },
        }
    }
}
