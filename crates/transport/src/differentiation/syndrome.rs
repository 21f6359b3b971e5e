//! Syndrome: the base station numbers what it sends over its wireless link, and the receiver sees which numbers are missing.

use super::{Cause, Gap, GapDifferentiator, Verdict};
use crate::arrival::Arrival;
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::settings;

pub(super) const PART: Part<dyn GapDifferentiator> = Part {
    name: "syndrome",
    summary: "Corruption if the base station had sent over its wireless link all that is missing.",
    reference: "Chen et al. 2002",
    notes: Notes {
        idea: "A packet that is missing and that the base station had counted was lost behind it, on the wireless link; one that it never counted was \
               lost before. Two counters, one of the sender and one of the base station, locate a loss like the syndrome of a code.",
        formula: "corruption iff w / g >= share, with g segments missing and w = count - previous count - 1 of them sent over the link",
        threshold: "share: the larger, the higher A_c and the lower A_w in gaps of both kinds",
        fails: "Needs the agent on the path, and room for its option. Handoff, if the count does not move along; link-layer retransmission out of order. A \
                lost retransmission between two arrivals counts as if it belonged to the gap beside it.",
        errata: "Known from the literature's descriptions of it; layout, share and the treatment of mixed gaps (congestion, because the whole gap gets one \
                 verdict) are our reading. Segments without a count are counted as arrived.",
    },
    thresholds: &[Threshold::of_congestion("share", Cut::Score)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Share of the missing segments that the base station must have sent.
        share: f64 = 1.0, 0.01..=1.0;
    }
}

impl Build<dyn GapDifferentiator> for Settings {
    fn build(self) -> Box<dyn GapDifferentiator> {
        Box::new(Syndrome::new(self.share))
    }
}

/// Compares the counts of two arrivals in a row.
#[derive(Debug)]
pub struct Syndrome {
    share: f64,
    count: Option<u32>,
    /// Arrivals without a count since.
    bare: u32,
    /// Segments that the link lost between the last two arrivals with a count.
    lost: Option<u32>,
}

impl Syndrome {
    /// `share` of a gap is enough for corruption.
    pub const fn new(share: f64) -> Self {
        Self { share, count: None, bare: 0, lost: None }
    }
}

impl GapDifferentiator for Syndrome {
    fn on_arrival(&mut self, arrival: &Arrival) {
        let Some(count) = arrival.segment.options.rare.as_ref().and_then(|rare| rare.notices.forwarded) else {
            self.bare += 1;
            self.lost = None;
            return;
        };
        let step = self.count.map(|before| count.wrapping_sub(before).wrapping_sub(1).wrapping_sub(self.bare));
        // A count that goes back is another base station's, or overtaken: nothing was lost.
        self.lost = step.map(|step| if step > u32::MAX / 2 { 0 } else { step });
        self.count = Some(count);
        self.bare = 0;
    }

    fn judge(&mut self, gap: &Gap, _arrival: &Arrival) -> Verdict {
        let Some(lost) = self.lost else { return Verdict { cause: Cause::Unknown, score: 0.0 } };
        let score = (f64::from(lost) / f64::from(gap.missing.max(1))).min(1.0);
        Verdict { cause: if score >= self.share { Cause::Corruption } else { Cause::Congestion }, score }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::ReceiveView;
    use crate::segment::{Notices, Options, RareOptions, Segment};

    fn numbered(count: Option<u32>) -> Segment {
        let rare = RareOptions { notices: Notices { forwarded: count, ..Notices::default() }, ..RareOptions::default() };
        Segment { options: Options { rare: Some(Box::new(rare)), ..Options::default() }, ..Segment::default() }
    }

    /// The verdict on `missing` segments before the last of the arrivals with these counts.
    fn verdict(counts: &[Option<u32>], missing: u32) -> (Cause, f64) {
        let mut syndrome = Syndrome::new(1.0);
        let gap = Gap { start: 0, end: u64::from(missing) * 1000, missing };
        let mut verdict = None;
        for &count in counts {
            let segment = numbered(count);
            let view = ReceiveView {
                first: 0,
                window_end: 1 << 20,
                islands: &[],
                full_segment: 1000,
                ..ReceiveView::new(crate::time::Instant::ZERO, 0)
            };
            let arrival = Arrival {
                view,
                start: gap.end,
                len: 1000,
                duplicate: false,
                spacing: None,
                trip: None,
                gap: Some(gap),
                segment: &segment,
            };
            syndrome.on_arrival(&arrival);
            verdict = Some(syndrome.judge(&gap, &arrival));
        }
        verdict.map(|verdict| (verdict.cause, verdict.score)).unwrap()
    }

    #[test]
    fn the_count_says_where() {
        // Two segments missing, of which the base station had sent two, one, none.
        assert_eq!(verdict(&[Some(7), Some(10)], 2), (Cause::Corruption, 1.0));
        assert_eq!(verdict(&[Some(7), Some(9)], 2), (Cause::Congestion, 0.5));
        assert_eq!(verdict(&[Some(7), Some(8)], 2), (Cause::Congestion, 0.0));
        assert_eq!(verdict(&[Some(u32::MAX), Some(2)], 2), (Cause::Corruption, 1.0), "across the wrap");
    }

    #[test]
    fn without_counts_nothing_is_known() {
        assert_eq!(verdict(&[Some(7)], 1), (Cause::Unknown, 0.0));
        assert_eq!(verdict(&[Some(7), None], 1), (Cause::Unknown, 0.0));
        assert_eq!(verdict(&[Some(7), None, Some(10)], 1), (Cause::Corruption, 1.0), "the bare one arrived");
        assert_eq!(verdict(&[Some(7), Some(3)], 1), (Cause::Congestion, 0.0), "another base station");
    }
}
