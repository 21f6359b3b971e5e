//! TCP HACK: names the segments that arrive with a damaged payload under a header whose own checksum holds (Balan et al. 2002).

use super::{Arrival, Damaged, ReceiveView, ReceiverAgent};
use crate::kit::{Notes, Part};
use crate::segment::{HeaderReport, Integrity, Report};
use crate::seq::Seq;
use std::collections::VecDeque;

pub(super) const PART: Part<dyn ReceiverAgent> = Part {
    name: "hack",
    summary: "Names segments that arrive with a damaged payload under a header whose own checksum holds.",
    reference: "Balan et al. 2002",
    notes: Notes::NONE,
    ..Part::fixed(|_| Box::new(Hack::default()))
};

/// Segments that are remembered. Beyond it the oldest is forgotten, and the sender takes its loss for congestion.
const MAX_PENDING: usize = 32;

/// Reports each such segment at once, and again, taking turns, until its data has arrived. The publication sends each report once;
/// repeating them is our reading, so that lost acknowledgements lose nothing.
#[derive(Debug, Default)]
pub struct Hack {
    pending: VecDeque<(u64, u8)>,
    count: u8,
}

/// Whether the octet at `position` has not arrived and may.
fn is_missing(view: &ReceiveView, position: u64) -> bool {
    let in_window = (view.next..view.window_end).contains(&position);
    in_window && !view.has(position, position + 1)
}

impl ReceiverAgent for Hack {
    fn wants_reports(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, arrival: &Arrival) {
        self.pending.retain(|(start, _)| is_missing(&arrival.view, *start));
    }

    fn on_damaged(&mut self, damaged: &Damaged) -> bool {
        let Damaged { view, segment, integrity } = damaged;
        let start = segment.seq.near(view.next);
        let usable = *integrity == Integrity::PayloadDamaged && !segment.payload.is_empty();
        if !view.reports_negotiated || !usable || !is_missing(view, start) {
            return false;
        }
        self.count = self.count.wrapping_add(1);
        // What an earlier transmission of it suffered is no news any more.
        self.pending.retain(|(pending, _)| *pending != start);
        if self.pending.len() == MAX_PENDING {
            self.pending.pop_back();
        }
        self.pending.push_front((start, self.count));
        true
    }

    fn report(&mut self, view: &ReceiveView) -> Option<Report> {
        self.pending.retain(|(start, _)| is_missing(view, *start));
        let (start, count) = self.pending.pop_front()?;
        self.pending.push_back((start, count));
        Some(Report::HeaderIntact(HeaderReport { seq: Seq::from(start), count }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Payload, Segment};
    use crate::time::Instant;

    fn view(next: u64, islands: &[(u64, u64)]) -> ReceiveView<'_> {
        ReceiveView { first: 1, window_end: next + 10_000, islands, full_segment: 1000, ..ReceiveView::new(Instant::ZERO, next) }
    }

    fn damaged(hack: &mut Hack, view: ReceiveView, start: u64, integrity: Integrity) -> bool {
        let payload = Payload::Synthetic { offset: 0, len: 1000 };
        let segment = Segment { seq: Seq::from(start), payload, ..Segment::default() };
        hack.on_damaged(&Damaged { view, segment: &segment, integrity })
    }

    fn said(hack: &mut Hack, view: &ReceiveView) -> Option<(u32, u8)> {
        hack.report(view).map(|report| match report {
            Report::HeaderIntact(report) => (report.seq.0, report.count),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn what_is_damaged_is_named_until_it_has_come() {
        let mut hack = Hack::default();
        let intact = Integrity::PayloadDamaged;
        assert!(damaged(&mut hack, view(1, &[]), 1, intact));
        assert_eq!(said(&mut hack, &view(1, &[])), Some((1, 1)));
        assert!(damaged(&mut hack, view(1, &[]), 2001, intact));
        assert_eq!(said(&mut hack, &view(1, &[(1001, 2001)])), Some((2001, 2)), "the newest first");
        assert_eq!(said(&mut hack, &view(1, &[(1001, 2001)])), Some((1, 1)), "then in turn");
        assert!(damaged(&mut hack, view(1, &[]), 1, intact), "its retransmission too");
        assert_eq!(said(&mut hack, &view(1, &[(1001, 3001)])), Some((1, 3)));
        assert_eq!(said(&mut hack, &view(1, &[(1001, 3001)])), Some((1, 3)), "2001 has come");
        assert_eq!(said(&mut hack, &view(3001, &[])), None);
    }

    #[test]
    fn what_proves_nothing_is_not_reported() {
        let mut hack = Hack::default();
        assert!(!damaged(&mut hack, view(1, &[]), 1, Integrity::HeaderSuspect));
        for elsewhere in [0, 10_001, 1 << 20] {
            assert!(!damaged(&mut hack, view(1, &[]), elsewhere, Integrity::PayloadDamaged));
        }
        assert!(!damaged(&mut hack, view(1, &[(1001, 2001)]), 1001, Integrity::PayloadDamaged), "it has arrived");
        let silent = ReceiveView { reports_negotiated: false, ..view(1, &[]) };
        assert!(!damaged(&mut hack, silent, 1, Integrity::PayloadDamaged));
        assert_eq!(said(&mut hack, &view(1, &[])), None);
    }
}
