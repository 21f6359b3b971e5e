//! Carries the verdicts of a differentiator at the receiver back to the sender.

use super::{Arrival, Damaged, ReceiveView, ReceiverAgent};
use crate::differentiation::GapDifferentiator;
use crate::segment::{CauseReport, Report};
use crate::seq::Seq;
use crate::verdict::Cause;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Holes that are remembered; more than any window leaves open in practice. Beyond it the oldest verdict is forgotten, and the sender takes
/// the loss for congestion.
const MAX_HOLES: usize = 256;

/// Each acknowledgement names one open hole with the verdict on it: the one that was named least often, of those the newest. So a new hole is
/// named at once, and lost acknowledgements lose nothing.
#[derive(Debug)]
pub struct LossCause {
    differentiator: Box<dyn GapDifferentiator>,
    classifier: u8,
    /// Ascending and disjoint.
    holes: VecDeque<Hole>,
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    start: u64,
    end: u64,
    cause: Cause,
    /// How often it was named.
    named: u32,
}

impl LossCause {
    /// Reports what `differentiator` judges; `classifier` (0 to 15) names it on the wire.
    pub fn new(classifier: u8, differentiator: Box<dyn GapDifferentiator>) -> Self {
        Self { differentiator, classifier, holes: VecDeque::new() }
    }
}

impl ReceiverAgent for LossCause {
    fn wants_reports(&self) -> bool {
        true
    }

    fn drop_precedence(&self) -> Option<u32> {
        self.differentiator.drop_precedence()
    }

    fn on_arrival(&mut self, arrival: &Arrival) {
        self.differentiator.on_arrival(arrival);
        let Some(gap) = &arrival.gap else { return };
        let cause = self.differentiator.judge(gap, arrival).cause;
        if self.holes.len() == MAX_HOLES {
            self.holes.pop_front();
        }
        self.holes.push_back(Hole { start: gap.start, end: gap.end, cause, named: 0 });
    }

    fn on_damaged(&mut self, damaged: &Damaged) -> bool {
        self.differentiator.on_damaged(damaged);
        false
    }

    fn report(&mut self, view: &ReceiveView) -> Option<Report> {
        self.holes.retain(|hole| !view.has(hole.start, hole.end));
        let hole = self.holes.iter_mut().min_by_key(|hole| (hole.named, Reverse(hole.start)))?;
        hole.named = hole.named.saturating_add(1);
        let start = hole.start.max(view.next);
        let len = (hole.end - start).try_into().unwrap_or(u32::MAX);
        Some(Report::Cause(CauseReport { cause: hole.cause, classifier: self.classifier, seq: Seq::from(start), len }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::Gap;
    use crate::differentiation::{LossDifferentiator, Relayed};
    use crate::path::{Ack, Loss, Path, Reported, Trigger};
    use crate::segment::{Options, RareOptions, SackBlocks, Segment, Timestamps};
    use crate::time::Instant;
    use crate::verdict::Verdict;
    use crate::wire::ip;
    use bytes::Bytes;
    use proptest::prelude::*;

    /// The stream wraps early.
    const FIRST: u64 = (1 << 32) - 5000;

    /// Says of a gap what is written down for its beginning.
    #[derive(Debug)]
    struct ByPlace(Vec<(u64, Cause)>);

    impl GapDifferentiator for ByPlace {
        fn judge(&mut self, gap: &Gap, _arrival: &Arrival) -> Verdict {
            let cause = self.0.iter().find(|(start, _)| *start == gap.start).map_or(Cause::Unknown, |(_, cause)| *cause);
            Verdict { cause, score: 0.0 }
        }
    }

    /// A receiver and what it has.
    struct Receiver {
        agent: LossCause,
        next: u64,
        highest: u64,
        islands: Vec<(u64, u64)>,
    }

    impl Receiver {
        fn new(causes: Vec<(u64, Cause)>) -> Self {
            Self { agent: LossCause::new(3, Box::new(ByPlace(causes))), next: FIRST, highest: FIRST, islands: Vec::new() }
        }

        fn view<'a>(&self, islands: &'a [(u64, u64)]) -> ReceiveView<'a> {
            let (next, window_end) = (self.next, self.highest + (1 << 30));
            ReceiveView { first: FIRST, window_end, islands, full_segment: 1000, ..ReceiveView::new(Instant::ZERO, next) }
        }

        fn take(&mut self, start: u64, end: u64) {
            self.islands.push((start, end));
            self.islands.sort_unstable();
            let mut merged: Vec<(u64, u64)> = Vec::new();
            for (left, right) in self.islands.drain(..) {
                match merged.last_mut() {
                    Some(last) if left <= last.1 => last.1 = last.1.max(right),
                    _ => merged.push((left, right)),
                }
            }
            if merged[0].0 <= self.next {
                self.next = merged.remove(0).1;
            }
            self.islands = merged;
            let gap = (start > self.highest).then_some(Gap::new(self.highest, start, 1));
            self.highest = self.highest.max(end);
            let (islands, segment) = (self.islands.clone(), Segment::default());
            let arrival = Arrival {
                view: self.view(&islands),
                start,
                len: (end - start) as u32,
                duplicate: false,
                spacing: None,
                trip: None,
                gap,
                segment: &segment,
            };
            self.agent.on_arrival(&arrival);
        }

        /// What the next acknowledgement says, as it comes off the wire beside timestamps and two SACK blocks.
        fn says(&mut self) -> Option<Report> {
            let islands = self.islands.clone();
            let view = self.view(&islands);
            let report = self.agent.report(&view)?;
            let mut sack = SackBlocks::default();
            assert!(sack.push(Seq(1), Seq(2)) && sack.push(Seq(3), Seq(4)));
            let rare = Some(Box::new(RareOptions { report: Some(report), ..RareOptions::default() }));
            let mut options = Options { timestamps: Some(Timestamps::default()), sack, rare, ..Options::default() };
            options.fit();
            assert_eq!(options.sack.len(), 2);
            let mut octets = Vec::new();
            let addresses = ip::Addresses::new("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()).unwrap();
            let segment = Segment { options, ..Segment::default() };
            crate::wire::emit(&ip::Header { addresses, hop_limit: 64 }, &segment, &mut octets).unwrap();
            crate::wire::parse(&Bytes::from(octets)).unwrap().segment.options.rare.unwrap().report
        }

        fn names(&mut self) -> Option<(u64, u32, Cause)> {
            self.says().map(|report| match report {
                Report::Cause(report) => (report.seq.near(self.next) - FIRST, report.len, report.cause),
                other => panic!("{other:?}"),
            })
        }
    }

    #[test]
    fn every_open_hole_is_named_the_newest_first_and_then_in_turn() {
        use Cause::{Congestion, Corruption};
        let at = |octets: u64| FIRST + octets;
        let mut receiver = Receiver::new(vec![(at(1000), Corruption), (at(5000), Congestion)]);
        receiver.take(at(0), at(1000));
        assert_eq!(receiver.names(), None);
        receiver.take(at(3000), at(4000));
        let low = Some((1000, 2000, Corruption));
        assert_eq!(receiver.names(), low);
        receiver.take(at(4000), at(5000));
        assert_eq!(receiver.names(), low);
        receiver.take(at(5500), at(6000));
        let high = Some((5000, 500, Congestion));
        let named: Vec<_> = (0..6).map(|_| receiver.names()).collect();
        assert_eq!(named, [high, high, high, low, high, low], "until it was named as often as the other");
        receiver.take(at(1000), at(2000));
        let rest = Some((2000, 1000, Corruption));
        assert_eq!([receiver.names(), receiver.names()], [high, rest]);
        receiver.take(at(5000), at(5500));
        assert_eq!([receiver.names(), receiver.names()], [rest, rest], "filled above a hole");
        receiver.take(at(2000), at(3000));
        assert_eq!(receiver.names(), None);
    }

    #[test]
    fn a_long_hole_is_named_as_exactly_as_it_may_be() {
        for (len, said) in [(65_535, 65_535), (65_536, 65_536), (65_537, 65_552), (1 << 21, 1 << 21), (20_000_001, 20_000_768)] {
            let mut receiver = Receiver::new(vec![(FIRST, Cause::Corruption)]);
            receiver.take(FIRST + len, FIRST + len + 1000);
            assert_eq!(receiver.names(), Some((0, said, Cause::Corruption)));
            receiver.take(FIRST, FIRST + len - 10_000);
            assert_eq!(receiver.names(), Some((len - 10_000, 10_000, Cause::Corruption)), "what is left of it");
        }
    }

    #[test]
    fn neither_end_remembers_more_than_its_bound() {
        let holes = 10_000;
        let mut receiver = Receiver::new((0..holes).map(|n| (FIRST + 2000 * n, Cause::Corruption)).collect());
        let mut sender = Relayed::default();
        let path = Path { una: FIRST, nxt: FIRST + 2000 * holes, ..Path::default() };
        for n in 0..holes {
            receiver.take(FIRST + 2000 * n + 1000, FIRST + 2000 * n + 2000);
            if n % 10 == 0 {
                let report = receiver.says().unwrap();
                sender.on_report(&Reported { path: &path, report: &report, news: false, segment: None });
            }
        }
        assert_eq!(receiver.agent.holes.len(), MAX_HOLES);
        let excused = (0..holes).filter(|n| verdict(&mut sender, &path, FIRST + 2000 * n, 1000, 0).cause == Cause::Corruption);
        assert_eq!(excused.count(), 256);
    }

    fn verdict(sender: &mut Relayed, path: &Path, start: u64, len: u32, transmission: u32) -> Verdict {
        let trigger = Trigger::DuplicateAcks;
        sender.judge(&Loss { path, start, len, transmission, sent_at: Instant::ZERO, trigger, first_of_episode: true })
    }

    /// A segment and what becomes of it.
    #[derive(Clone, Copy, Debug)]
    struct SegmentFate {
        len: u32,
        lost: Option<Cause>,
        /// Whether the acknowledgement of its arrival is lost.
        ack_lost: bool,
    }

    fn fate() -> impl Strategy<Value = SegmentFate> {
        let lost = prop_oneof![
            5 => Just(None),
            1 => Just(Some(Cause::Corruption)),
            1 => Just(Some(Cause::Congestion)),
            1 => Just(Some(Cause::Unknown)),
        ];
        (1..3000u32, lost, prop::bool::weighted(0.2)).prop_map(|(len, lost, ack_lost)| SegmentFate { len, lost, ack_lost })
    }

    proptest! {
        /// Whatever is lost on either way: the sender's verdict on a loss is the receiver's verdict on the gap that it left, or none.
        #[test]
        fn a_verdict_is_used_for_its_own_losses_only(fates in prop::collection::vec(fate(), 1..200), repair in any::<bool>()) {
            let mut at = FIRST;
            let segments: Vec<_> = fates.iter().map(|fate| { at += u64::from(fate.len); (at - u64::from(fate.len), at, *fate) }).collect();
            // A gap is judged as a whole, by what became of its first segment.
            let mut gap = None;
            let judged: Vec<_> = segments.iter().map(|(start, _, fate)| {
                gap = fate.lost.map(|cause| gap.unwrap_or((*start, cause)));
                gap
            }).collect();
            let causes = judged.iter().flatten().copied().collect();
            let mut receiver = Receiver::new(causes);
            let mut sender = Relayed::default();
            let mut path = Path { una: FIRST, nxt: at, ..Path::default() };
            let mut received_acks = 0;
            for (start, end, fate) in segments.iter().filter(|(.., fate)| fate.lost.is_none()) {
                receiver.take(*start, *end);
                // Only what a later arrival has shown to be missing is repaired.
                let shown = repair && receiver.next < receiver.highest;
                let repaired = segments.iter().find(|(left, _, fate)| shown && fate.lost.is_some() && *left == receiver.next);
                if let Some((left, right, _)) = repaired.filter(|_| end % 3 == 0) {
                    receiver.take(*left, *right);
                }
                let Some(report) = receiver.says() else { continue };
                if !fate.ack_lost {
                    path.una = receiver.next;
                    let options = Options::default();
                    sender.on_ack(&Ack {
                        path: &path, acked: 0, delivered: 0, rtt: None, delay: None, newest_sent_at: None, duplicate: true,
                        ece: false, in_recovery: false, window_limited: true, sample: None, options: &options,
                    });
                    sender.on_report(&Reported { path: &path, report: &report, news: false, segment: None });
                    received_acks += 1;
                }
                for ((start, _, fate), gap) in segments.iter().zip(&judged) {
                    let said = verdict(&mut sender, &path, *start, fate.len, 0).cause;
                    if let Some((_, cause)) = gap {
                        prop_assert!(said == *cause || said == Cause::Unknown, "{said:?} for {cause:?}");
                    } else {
                        prop_assert_eq!(said, Cause::Unknown, "it arrived");
                    }
                    prop_assert_eq!(verdict(&mut sender, &path, *start, fate.len, 1).cause, Cause::Unknown);
                }
            }
            // With every acknowledgement received, the sender knows the verdict on each gap that is still open behind the last arrival.
            if !fates.iter().any(|fate| fate.ack_lost) {
                let arrived = segments.iter().rposition(|(.., fate)| fate.lost.is_none()).unwrap_or(0);
                for ((start, _, fate), gap) in segments[..arrived].iter().zip(&judged).filter(|((start, ..), _)| *start >= receiver.next && received_acks > 0) {
                    let said = verdict(&mut sender, &path, *start, fate.len, 0).cause;
                    prop_assert_eq!(said, gap.map_or(Cause::Unknown, |(_, cause)| cause));
                }
            }
        }
    }
}
