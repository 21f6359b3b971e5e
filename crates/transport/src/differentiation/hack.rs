//! TCP HACK: a segment whose header arrived intact was not dropped by a queue.

use super::{Cause, LossDifferentiator, Verdict};
use crate::kit::{Notes, Part};
use crate::path::{Ack, Loss, Reported};
use crate::segment::Report;
use std::collections::BTreeSet;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "hack",
    summary: "Takes a loss for corruption if the receiver names the segment as damaged under an intact header.",
    reference: "Balan et al. 2002",
    notes: Notes {
        idea: "Each data segment carries a checksum of its header. If it holds where the segment's checksum does not, the receiver knows for sure \
               which segment was damaged, and says so.",
        formula: "corruption if a report names the segment, else congestion",
        threshold: "",
        fails: "As `reported`: links that discard damaged frames leave nothing to report, and of a damaged packet the headers are hit with a \
                probability of about their share of it (5 % of 1500 octets). Middleboxes that rewrite headers break the checksum for good, and every \
                loss is congestion again. It is no signature: who can see the connection can forge both checksum and report.",
        errata: "What counts as zero in the checksum, repeated reports with a number that tells them from new ones, and the rule that a report \
                 which comes less than half a round trip after a retransmission concerns the transmission before it are our reading.",
    },
    ..Part::fixed(|_| Box::new(Hack::default()))
};

/// The transmissions that were reported: start of the segment and number of the transmission.
#[derive(Debug, Default)]
pub struct Hack {
    reported: BTreeSet<(u64, u32)>,
}

impl LossDifferentiator for Hack {
    fn wants_reports(&self) -> bool {
        true
    }

    fn wants_header_check(&self) -> bool {
        true
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.acked > 0 && !self.reported.is_empty() {
            self.reported = self.reported.split_off(&(ack.path.una, 0));
        }
    }

    fn on_report(&mut self, reported: &Reported) {
        let (Report::HeaderIntact(_), true, Some(segment)) = (reported.report, reported.news, reported.segment) else { return };
        let age = reported.path.now.since(segment.sent_at);
        let too_early = age < reported.path.min_rtt.unwrap_or_default() / 2;
        // Half a round trip, because a coarse clock rounds the smallest sample up.
        let transmission = if too_early { segment.transmission.checked_sub(1) } else { Some(segment.transmission) };
        if let Some(transmission) = transmission {
            self.reported.insert((segment.start, transmission));
        }
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        if self.reported.contains(&(loss.start, loss.transmission)) {
            Verdict { cause: Cause::Corruption, score: 1.0 }
        } else {
            Verdict { cause: Cause::Congestion, score: 0.0 }
        }
    }
}
