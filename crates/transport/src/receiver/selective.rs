//! Selective-TCP's receiver: asks for what was corrupted instead of acknowledging twice, and reports its bandwidth under congestion (Paul 2006).

use super::snack::{Asker, Asking};
use super::{Answer, Arrival, Damaged, ReceiveView, ReceiverAgent};
use crate::differentiation::{Biaz, GapDifferentiator};
use crate::estimate::Extremes;
use crate::kit::{Build, Notes, Part};
use crate::segment::{BandwidthReport, Ecn, Report, Snack};
use crate::settings;
use crate::time::Instant;
use crate::verdict::Cause;
use std::collections::VecDeque;

pub(super) const PART: Part<dyn ReceiverAgent> = Part {
    name: "selective",
    summary: "Asks for what was corrupted instead of acknowledging twice, and reports the bandwidth once enough has come out of order after congestion.",
    reference: "Paul 2006",
    notes: Notes {
        idea: "The receiver sees what the sender cannot: how arrivals are spaced around a gap. It keeps duplicate acknowledgements back if the gap is no \
               sign of congestion, so that a sender that knows nothing of causes does not reduce its window.",
        formula: "corruption: no duplicate acknowledgement, a SNACK of all holes after snack_delay; congestion: a duplicate acknowledgement, on every k-th \
                  of which stands octets received * 8 / (1000 * time) in kbit/s since the latest arrival in sequence",
        threshold: "",
        fails: "Where the differentiator does. While duplicates are kept back the sender has no clock: neither limited transmit nor round-trip times, \
                and where a round trip is shorter than snack_delay fast retransmit is faster.",
        errata: "The differentiator is the one at the receiver that is chosen as ruling; without one it is `biaz` as published. It is asked when a segment \
                 shows a gap; what comes out of order later has the cause of the lowest hole that is open. Unknown causes count as congestion. The time of \
                 the bandwidth ends with the k-th segment, as the next arrival in sequence is still to come. With SACK, blocks beyond a \
                 hole that was corrupted are kept back as well. `marks` is what the publication leaves to future work: routers that mark (ECN has to be on) make a gap congestion.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Segments out of order after congestion that make a report of the bandwidth due (congestion_count's threshold k).
        k: u32 = 10, 1..=100_000;
        /// Take a gap for congestion if one of the latest segments bore a mark of a router.
        marks: bool = false;
        /// How many of the latest segments that are, the one that shows the gap included.
        mark_reach: u32 = 20, 1..=100_000;
        asking: Asking;
    }
}

impl Build<dyn ReceiverAgent> for Settings {
    fn build(self) -> Box<dyn ReceiverAgent> {
        Box::new(Selective {
            settings: self,
            differentiator: Box::new(Biaz::new(2.0, Extremes::Lifetime)),
            asker: Asker::new(self.asking),
            holes: VecDeque::new(),
            count: 0,
            since_mark: None,
            in_sequence: None,
            octets: 0,
            answer: Answer::Usual,
            report: None,
        })
    }
}

/// Holes whose cause is remembered. What opens beyond them counts as congestion.
const MAX_HOLES: usize = 256;

/// Paul 2006, algorithm 2.
#[derive(Debug)]
pub struct Selective {
    settings: Settings,
    differentiator: Box<dyn GapDifferentiator>,
    asker: Asker,
    /// The open holes with their causes, ascending.
    holes: VecDeque<Hole>,
    /// Segments out of order after congestion since the latest report.
    count: u32,
    /// Arrivals since the latest mark.
    since_mark: Option<u32>,
    /// When the latest arrival in sequence was.
    in_sequence: Option<Instant>,
    /// Octets that have come since then.
    octets: u64,
    answer: Answer,
    report: Option<BandwidthReport>,
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    start: u64,
    end: u64,
    corrupted: bool,
}

impl Selective {
    fn mind_marks(&mut self, arrival: &Arrival) {
        if arrival.segment.ecn == Ecn::CongestionExperienced {
            self.since_mark = Some(0);
        } else {
            self.since_mark = self.since_mark.map(|since| since.saturating_add(1));
        }
    }

    fn judge(&mut self, arrival: &Arrival) -> Option<Hole> {
        let gap = arrival.gap.as_ref()?;
        let judged = self.differentiator.judge(gap, arrival).cause == Cause::Corruption;
        let marked = self.settings.marks && self.since_mark.is_some_and(|since| since < self.settings.mark_reach);
        Some(Hole { start: gap.start, end: gap.end, corrupted: judged && !marked && arrival.view.snack_block.is_some() })
    }

    /// Whether what came out of order is due to corruption. Without an agreement on SNACKs everything is congestion.
    fn is_corruption(&mut self, arrival: &Arrival) -> bool {
        if let Some(hole) = self.judge(arrival) {
            let room = self.holes.len() < MAX_HOLES;
            if room {
                self.holes.push_back(hole);
            }
            return room && hole.corrupted;
        }
        self.holes.front().is_some_and(|hole| hole.corrupted)
    }

    /// Paul 2006, 4.2.2.
    fn bandwidth(&self, now: Instant) -> Option<BandwidthReport> {
        let nanos = now.since(self.in_sequence?).as_nanos();
        let bits = self.octets.saturating_mul(8);
        let kbps = bits.saturating_mul(1_000_000).checked_div(nanos)?;
        Some(BandwidthReport { kbps: kbps.try_into().unwrap_or(u32::MAX) })
    }
}

impl ReceiverAgent for Selective {
    fn wants_reports(&self) -> bool {
        true
    }

    fn wants_snacks(&self) -> bool {
        true
    }

    fn drop_precedence(&self) -> Option<u32> {
        self.differentiator.drop_precedence()
    }

    fn judge_by(&mut self, differentiator: Box<dyn GapDifferentiator>) {
        self.differentiator = differentiator;
    }

    fn on_damaged(&mut self, damaged: &Damaged) -> bool {
        self.differentiator.on_damaged(damaged);
        false
    }

    fn on_arrival(&mut self, arrival: &Arrival) {
        let view = &arrival.view;
        self.differentiator.on_arrival(arrival);
        self.mind_marks(arrival);
        self.asker.on_arrival(view);
        self.holes.retain(|hole| !view.has(hole.start, hole.end));
        self.answer = Answer::Usual;
        if arrival.duplicate {
            return;
        }
        if arrival.start <= view.next {
            (self.in_sequence, self.octets) = (Some(view.now), 0);
            return;
        }
        self.octets += u64::from(arrival.len);
        if self.is_corruption(arrival) {
            self.answer = Answer::None;
            self.asker.wait(view);
            return;
        }
        self.count += 1;
        if self.count >= self.settings.k {
            self.count = 0;
            self.report = self.bandwidth(view.now);
        }
    }

    fn answer(&self) -> Answer {
        self.answer
    }

    fn on_end(&mut self, view: &ReceiveView) {
        self.asker.on_end(view);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.asker.deadline()
    }

    fn on_timeout(&mut self, view: &ReceiveView) -> bool {
        let again = view.end.is_some() || self.holes.iter().any(|hole| hole.corrupted);
        self.asker.on_timeout(view, again)
    }

    fn report(&mut self, _view: &ReceiveView) -> Option<Report> {
        self.report.take().map(Report::Bandwidth)
    }

    fn conceals_from(&self) -> Option<u64> {
        // A SACK block says as much as duplicate acknowledgements do.
        self.holes.iter().find(|hole| hole.corrupted).map(|hole| hole.start)
    }

    fn snacks(&mut self, view: &ReceiveView, room: usize) -> Vec<Snack> {
        self.asker.snacks(view, room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::Gap;
    use crate::kit::Arguments;
    use crate::segment::Segment;
    use crate::time::Duration;
    use std::collections::BTreeMap;

    const FULL: u64 = 1000;
    const FIRST: u64 = 1 << 32;

    /// A receiver whose packets take 8.32 ms on the last hop, as in section 6 of the publication.
    struct Line {
        agent: Box<dyn ReceiverAgent>,
        next: u64,
        islands: Vec<(u64, u64)>,
        highest: u64,
        last: Option<Instant>,
        block: Option<u32>,
        ecn: Ecn,
    }

    impl Line {
        fn new(given: &[(&str, crate::kit::Value)]) -> Self {
            let given: BTreeMap<_, _> = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            let agent = PART.build(&Arguments::check(&PART, &given).unwrap());
            let mut line = Self {
                agent,
                next: FIRST,
                islands: Vec::new(),
                highest: FIRST,
                last: None,
                block: Some(FULL as u32),
                ecn: Ecn::Capable0,
            };
            (0..4).for_each(|n| assert_eq!(line.segment(n, 8320 * n), Answer::Usual));
            line
        }

        fn view(&self, us: u64) -> ReceiveView<'_> {
            ReceiveView {
                islands: &self.islands,
                full_segment: FULL as u32,
                snack_block: self.block,
                ..ReceiveView::new(Instant::ZERO + Duration::from_micros(us), self.next)
            }
        }

        /// Segment `n` arrives after so many microseconds.
        fn segment(&mut self, n: u64, us: u64) -> Answer {
            let now = Instant::ZERO + Duration::from_micros(us);
            let (start, end) = (FIRST + n * FULL, FIRST + (n + 1) * FULL);
            let gap = (start > self.highest).then(|| Gap::new(self.highest, start, ((start - self.highest) / FULL) as u32));
            self.highest = self.highest.max(end);
            self.islands.push((start, end));
            self.islands.sort_unstable();
            let mut merged: Vec<(u64, u64)> = Vec::new();
            for (left, right) in self.islands.drain(..) {
                match merged.last_mut() {
                    Some(last) if last.1 == left => last.1 = right,
                    _ => merged.push((left, right)),
                }
            }
            if merged.first().is_some_and(|first| first.0 == self.next) {
                self.next = merged.remove(0).1;
            }
            self.islands = merged;
            let spacing = self.last.replace(now).map(|last| now.since(last));
            let segment = Segment { ecn: self.ecn, ..Segment::default() };
            let islands = self.islands.clone();
            let view = ReceiveView { islands: &islands, ..self.view(us) };
            let arrival = Arrival { spacing, gap, ..Arrival::new(view, &segment, start, FULL as u32) };
            self.agent.on_arrival(&arrival);
            self.agent.answer()
        }

        fn report(&mut self, us: u64) -> Option<u32> {
            let view = ReceiveView::new(Instant::ZERO + Duration::from_micros(us), self.next);
            self.agent.report(&view).map(|report| match report {
                Report::Bandwidth(report) => report.kbps,
                other => panic!("{other:?}"),
            })
        }

        fn asks(&mut self, us: u64) -> Vec<(u16, u16)> {
            let islands = self.islands.clone();
            let view = ReceiveView { islands: &islands, ..self.view(us) };
            if !self.agent.on_timeout(&view) {
                return Vec::new();
            }
            self.agent.snacks(&view, 30).iter().map(|hole| (hole.hole1_offset, hole.hole1_size)).collect()
        }
    }

    /// Segment 3 came at 24.96 ms.
    const THIRD: u64 = 24_960;

    #[test]
    fn the_gap_decides_whether_to_acknowledge() {
        // T = 8.32 ms and n = 1: 16.64 <= gap < 24.96.
        for (gap, answer) in [
            (16_640, Answer::None),
            (24_950, Answer::None),
            (8400, Answer::Usual),
            (24_960, Answer::Usual),
            (30_000, Answer::Usual),
        ] {
            let mut line = Line::new(&[]);
            assert_eq!(line.segment(5, THIRD + gap), answer, "{gap} µs");
            let back_to_back = line.segment(6, THIRD + gap + 8320);
            assert_eq!(back_to_back, answer, "what shows no gap has the cause of the lowest hole");
        }
    }

    #[test]
    fn the_lowest_open_hole_says_why_what_follows_is_out_of_order() {
        let mut line = Line::new(&[]);
        assert_eq!(line.segment(5, THIRD + 16_640), Answer::None, "4 was corrupted");
        assert_eq!(line.segment(7, THIRD + 24_960), Answer::Usual, "6 was dropped");
        assert_eq!(line.segment(8, THIRD + 33_280), Answer::None, "4 is still missing");
        assert_eq!(line.segment(4, THIRD + 41_600), Answer::Usual, "in sequence");
        assert_eq!(line.segment(9, THIRD + 49_920), Answer::Usual, "6 is the lowest now");
        assert_eq!(line.segment(6, THIRD + 58_240), Answer::Usual);
        assert_eq!(line.agent.poll_timeout(), None, "nothing is missing");
    }

    #[test]
    fn all_holes_are_asked_for_while_one_was_corrupted() {
        let mut line = Line::new(&[]);
        line.segment(5, THIRD + 16_640);
        line.segment(7, THIRD + 24_960);
        let due = THIRD + 16_640 + 50_000;
        assert_eq!(line.asks(due - 1), []);
        assert_eq!(line.asks(due), [(0, 1)], "and 6 in the bits");
        assert_eq!(line.asks(due + 49_999), []);
        assert_eq!(line.asks(due + 50_000), [(0, 1)]);
        line.segment(4, due + 60_000);
        assert_eq!(line.asks(due + 100_000), [(0, 1)], "6 once more, by the timer that ran");
        assert_eq!(line.asks(due + 1_000_000), [], "and never again: it was dropped");
    }

    #[test]
    fn every_kth_segment_after_congestion_reports_the_bandwidth() {
        let mut line = Line::new(&[]);
        let at = |nth: u64| THIRD + 8320 * nth;
        for nth in 1..10 {
            assert_eq!(line.segment(4 + nth, at(nth)), Answer::Usual);
            assert_eq!(line.report(at(nth)), None);
        }
        line.segment(14, at(10));
        // Ten segments of 8000 bits in 83.2 ms.
        assert_eq!(line.report(at(10)), Some(961));
        assert_eq!(line.report(at(10)), None, "once");
        // Arrivals in sequence change nothing about the count.
        line.segment(15, at(11));
        line.segment(4, at(12));
        for nth in 0..9 {
            assert_eq!(line.report(at(13)), None, "{nth}");
            line.segment(17 + nth, at(13 + nth));
        }
        assert_eq!(line.report(at(21)), Some(961), "nine of this hole and one of the last");
    }

    #[test]
    fn without_snacks_everything_is_acknowledged() {
        let mut line = Line::new(&[]);
        line.block = None;
        assert_eq!(line.segment(5, THIRD + 16_640), Answer::Usual);
        assert_eq!(line.agent.poll_timeout(), None);
    }

    #[test]
    fn marks_of_routers_make_it_congestion() {
        use crate::kit::Value;
        for (marks, marked, answer) in [(true, 4, Answer::Usual), (true, 2, Answer::None), (false, 4, Answer::None)] {
            let mut line = Line::new(&[("marks", Value::Flag(marks)), ("mark_reach", Value::Number(3.0))]);
            for n in 4..8 {
                line.ecn = if n == marked + 2 { Ecn::CongestionExperienced } else { Ecn::Capable0 };
                line.segment(n, 8320 * n);
            }
            line.ecn = Ecn::Capable0;
            assert_eq!(line.segment(9, 8320 * 9), answer, "marks {marks}, segment {} was marked", marked + 2);
        }
    }

    #[test]
    fn beyond_the_holes_that_are_remembered_it_is_congestion() {
        let mut line = Line::new(&[]);
        for nth in 0..MAX_HOLES as u64 {
            assert_eq!(line.segment(5 + 2 * nth, THIRD + 16_640 * (nth + 1)), Answer::None);
        }
        let nth = MAX_HOLES as u64;
        assert_eq!(line.segment(5 + 2 * nth, THIRD + 16_640 * (nth + 1)), Answer::Usual);
    }
}
