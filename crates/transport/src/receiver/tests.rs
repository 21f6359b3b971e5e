//! Scripted arrivals, and random ones against what really happened.

use super::{Arrival, Checksum, Damaged, ReceiveView, ReceiverAgent};
use crate::segment::{CorruptionReport, Ecn, Flags, Integrity, Payload, PositionBasis, Report, Segment};
use crate::seq::Seq;
use crate::time::{Duration, Instant};

const FULL: u64 = 1000;
const WINDOW: u64 = 64 * FULL;
/// The stream begins just before the sequence numbers wrap.
const START: u64 = (1 << 32) - 3 * FULL;

/// A receiver: reassembly and the agent.
struct Receiver {
    agent: Checksum,
    now: Instant,
    next: u64,
    islands: Vec<(u64, u64)>,
    full: u32,
    negotiated: bool,
}

impl Receiver {
    fn new(hardened: bool) -> Self {
        let agent = Checksum::new(hardened, Duration::from_millis(100));
        Self { agent, now: Instant::ZERO, next: START, islands: Vec::new(), full: 0, negotiated: true }
    }

    /// A receiver that has `0..segments` already.
    fn with(hardened: bool, segments: u64) -> Self {
        let mut receiver = Self::new(hardened);
        (0..segments).for_each(|n| receiver.intact(n));
        receiver
    }

    fn view<'a>(&self, islands: &'a [(u64, u64)]) -> ReceiveView<'a> {
        ReceiveView {
            first: START,
            window_end: self.next + WINDOW,
            islands,
            full_segment: self.full,
            reports_negotiated: self.negotiated,
            ..ReceiveView::new(self.now, self.next)
        }
    }

    /// Segment number `n` arrives intact.
    fn intact(&mut self, n: u64) {
        let start = position(n);
        self.full = FULL as u32;
        let duplicate = self.has(start);
        if !duplicate {
            self.islands.push((start, start + FULL));
            self.islands.sort_unstable();
            let mut merged: Vec<(u64, u64)> = Vec::new();
            for (left, right) in self.islands.drain(..) {
                match merged.last_mut() {
                    Some(last) if last.1 == left => last.1 = right,
                    _ => merged.push((left, right)),
                }
            }
            if merged[0].0 == self.next {
                self.next = merged.remove(0).1;
            }
            self.islands = merged;
        }
        let islands = self.islands.clone();
        let segment = data(start, None);
        let arrival = Arrival {
            view: self.view(&islands),
            start,
            len: FULL as u32,
            duplicate,
            spacing: None,
            trip: None,
            gap: None,
            segment: &segment,
        };
        self.agent.on_arrival(&arrival);
    }

    /// A damaged segment arrives; returns whether it is acknowledged at once.
    fn damaged(&mut self, segment: &Segment) -> bool {
        let islands = self.islands.clone();
        self.agent.on_damaged(&Damaged { view: self.view(&islands), segment, integrity: Integrity::HeaderSuspect })
    }

    fn report(&mut self) -> Option<CorruptionReport> {
        let islands = self.islands.clone();
        let view = self.view(&islands);
        match self.agent.report(&view) {
            Some(Report::Corruption(report)) => Some(report),
            _ => None,
        }
    }

    fn has(&self, start: u64) -> bool {
        start < self.next || self.islands.iter().any(|(left, right)| (*left..*right).contains(&start))
    }

    /// What the next acknowledgement says: segment number, basis, count.
    fn says(&mut self) -> Option<(Option<(u64, PositionBasis)>, u8)> {
        self.report().map(|report| {
            let place = report.position.map(|p| ((p.seq.near(START) - START) / FULL, p.basis));
            (place, report.count)
        })
    }
}

fn position(n: u64) -> u64 {
    START + n * FULL
}

fn data(start: u64, nonce: Option<u32>) -> Segment {
    let mut segment = Segment { seq: Seq::from(start), flags: Flags::ACK, ..Segment::default() };
    segment.payload = Payload::Synthetic { offset: start - START.min(start), len: FULL as u32 };
    segment.options.nonce = nonce;
    segment
}

use PositionBasis::{OrderInferred, SeqConfirmed};

#[test]
fn the_segment_that_follows_the_previous_one_is_confirmed_and_reported_until_it_has_come() {
    let mut receiver = Receiver::with(false, 5);
    assert_eq!(receiver.says(), None);
    assert!(receiver.damaged(&data(position(5), None)));
    let report = receiver.report().unwrap();
    assert_eq!(report.position.unwrap().len, FULL as u16);
    assert!(!report.congestion_experienced && !report.rate_limited && report.echo.is_none());
    for n in 6..9 {
        receiver.intact(n);
        assert_eq!(receiver.says(), Some((Some((5, SeqConfirmed)), 1)));
    }
    receiver.intact(5);
    assert_eq!(receiver.says(), None);
}

#[test]
fn the_first_segment_of_the_connection_is_confirmed_without_a_length() {
    let mut receiver = Receiver::new(false);
    assert!(receiver.damaged(&data(START, None)));
    let report = receiver.report().unwrap();
    assert_eq!((report.position.unwrap().seq, report.position.unwrap().len), (Seq::from(START), 0));
}

#[test]
fn several_in_a_row_are_all_confirmed_and_take_turns() {
    let mut receiver = Receiver::with(false, 5);
    for n in 5..8 {
        assert!(receiver.damaged(&data(position(n), None)));
        assert_eq!(receiver.says(), Some((Some((n, SeqConfirmed)), (n - 4) as u8)), "the newest first");
    }
    let mut said: Vec<_> = (0..3).map(|_| receiver.says().unwrap().0.unwrap().0).collect();
    said.sort_unstable();
    assert_eq!(said, [5, 6, 7]);
}

#[test]
fn a_damaged_retransmission_is_confirmed_at_the_edge_of_its_hole_and_on_its_grid() {
    let mut receiver = Receiver::with(false, 5);
    receiver.intact(8); // hole 5, 6, 7
    for (count, n) in (1..).zip([5, 7]) {
        assert!(receiver.damaged(&data(position(n), None)));
        assert_eq!(receiver.says(), Some((Some((n, SeqConfirmed)), count)));
    }
    // Off the grid it is an event without a position.
    assert!(receiver.damaged(&data(position(6) + 1, None)));
    receiver.intact(5);
    receiver.intact(7);
    assert_eq!(receiver.says(), Some((None, 3)));
}

#[test]
fn a_segment_behind_a_lost_one_is_confirmed_once_the_hole_is_known() {
    let mut receiver = Receiver::with(false, 5);
    assert!(receiver.damaged(&data(position(6), None))); // 5 was dropped
    assert_eq!(receiver.says(), Some((None, 1)));
    receiver.intact(7);
    assert_eq!(receiver.says(), Some((Some((6, SeqConfirmed)), 1)), "placed without another step of the count");
    receiver.intact(6);
    assert_eq!(receiver.says(), None);
}

#[test]
fn an_event_without_a_position_is_told_alone_before_positions_are_repeated() {
    let mut receiver = Receiver::with(false, 5);
    assert!(receiver.damaged(&data(position(5), None)));
    assert_eq!(receiver.says(), Some((Some((5, SeqConfirmed)), 1)));
    assert!(receiver.damaged(&data(position(7), None))); // 6 was dropped
    assert_eq!(receiver.says(), Some((None, 2)));
    assert_eq!(receiver.says(), Some((Some((5, SeqConfirmed)), 2)));
}

#[test]
fn a_hit_sequence_number_is_inferred_from_the_order() {
    let garbage = data(position(5) ^ 0x4000_0000, None);
    for k in 1..4u64 {
        let mut receiver = Receiver::with(false, 5);
        for count in 1..=k {
            assert!(receiver.damaged(&garbage));
            assert_eq!(receiver.says(), Some((None, count as u8)));
        }
        receiver.intact(5 + k);
        let mut said: Vec<_> = (0..k).map(|_| receiver.says().unwrap()).collect();
        said.sort_unstable_by_key(|(place, _)| place.unwrap().0);
        let expected: Vec<_> = (0..k).map(|i| (Some((5 + i, OrderInferred)), k as u8)).collect();
        assert_eq!(said, expected);
    }
}

#[test]
fn nothing_is_inferred_if_more_or_less_is_missing_than_was_damaged() {
    for next in [5, 7] {
        let mut receiver = Receiver::with(false, 5);
        assert!(receiver.damaged(&data(position(5) ^ 0x4000_0000, None)));
        receiver.intact(next);
        assert!(matches!(receiver.says(), None | Some((None, 1))));
    }
}

#[test]
fn a_report_without_a_position_ends_when_everything_before_and_one_more_has_come() {
    let mut receiver = Receiver::with(false, 5);
    receiver.intact(6);
    assert!(receiver.damaged(&data(position(5) ^ 0x4000_0000, None)));
    receiver.intact(9);
    assert_eq!(receiver.says(), Some((None, 1)));
    receiver.intact(5);
    assert_eq!(receiver.says(), Some((None, 1)));
    receiver.intact(7);
    assert_eq!(receiver.says(), None);
}

#[test]
fn duplicates_and_acknowledgements_are_no_losses() {
    let mut receiver = Receiver::with(false, 5);
    receiver.intact(7);
    assert!(!receiver.damaged(&data(position(3), None)));
    assert!(!receiver.damaged(&data(position(7), None)));
    let mut acknowledgement = data(position(5), None);
    acknowledgement.payload = Payload::Synthetic { offset: 0, len: 12 }; // options taken for data by a damaged data offset
    assert!(!receiver.damaged(&acknowledgement));
    assert_eq!(receiver.says(), None);
}

#[test]
fn nothing_is_reported_to_a_peer_that_did_not_agree() {
    let mut receiver = Receiver::with(false, 5);
    receiver.negotiated = false;
    assert!(!receiver.damaged(&data(position(5), None)));
    assert_eq!(receiver.says(), None);
}

#[test]
fn a_congestion_mark_on_the_damaged_segment_is_passed_on() {
    for hardened in [false, true] {
        let mut receiver = Receiver::with(hardened, 5);
        assert!(receiver.damaged(&Segment { ecn: Ecn::CongestionExperienced, ..data(position(5), Some(7)) }));
        assert!(receiver.report().unwrap().congestion_experienced);
    }
}

#[test]
fn a_header_that_something_vouches_for_needs_no_other_confirmation() {
    let mut receiver = Receiver::with(false, 5);
    let segment = data(position(9) + 123, None);
    let view = receiver.view(&[]);
    assert!(receiver.agent.on_damaged(&Damaged { view, segment: &segment, integrity: Integrity::PayloadDamaged }));
    let position = receiver.report().unwrap().position.unwrap();
    assert_eq!((position.seq, position.len, position.basis), (segment.seq, FULL as u16, SeqConfirmed));
}

#[test]
fn the_hardened_form_wants_window_position_and_nonce() {
    let mut receiver = Receiver::with(true, 5);
    assert!(receiver.agent.wants_reports());
    let refused = [
        data(position(5), None),
        data(position(5) + 1, Some(7)),
        data(position(4), Some(7)),
        data(position(5) + WINDOW, Some(7)),
        data(position(5) ^ 0x4000_0000, Some(7)),
    ];
    for segment in &refused {
        assert!(!receiver.damaged(segment), "{segment:?}");
        assert_eq!(receiver.says(), None);
    }
    receiver.intact(7);
    assert_eq!(receiver.says(), None, "nothing is inferred from the order");
    assert!(receiver.damaged(&data(position(5), Some(7))));
    assert_eq!(receiver.report().unwrap().echo, Some(7));
}

#[test]
fn the_hardened_form_confirms_late_with_the_nonce() {
    let mut receiver = Receiver::with(true, 5);
    assert!(!receiver.damaged(&data(position(6), Some(66)))); // 5 was dropped
    receiver.intact(7);
    let report = receiver.report().unwrap();
    assert_eq!((report.position.unwrap().seq, report.echo), (Seq::from(position(6)), Some(66)));
}

#[test]
fn a_forged_copy_does_not_displace_the_genuine_report() {
    let mut receiver = Receiver::with(true, 5);
    assert!(receiver.damaged(&data(position(5), Some(7))));
    assert!(receiver.damaged(&data(position(5), Some(8))));
    let mut echoes = [receiver.report().unwrap().echo, receiver.report().unwrap().echo];
    echoes.sort_unstable();
    assert_eq!(echoes, [Some(7), Some(8)]);
}

#[test]
fn the_hardened_form_limits_its_rate_and_says_so() {
    let mut receiver = Receiver::with(true, 5);
    let answered = (5..20).filter(|n| receiver.damaged(&data(position(*n), Some(1)))).count();
    assert_eq!(answered, 4);
    let report = receiver.report().unwrap();
    assert!(report.rate_limited);
    assert_eq!(report.count, 4);
    receiver.now += Duration::from_millis(100);
    assert!(receiver.damaged(&data(position(9), Some(1))));
    assert!(!receiver.report().unwrap().rate_limited);
}

/// A small generator for scripts (Steele, Lea & Flood 2014).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }
}

/// Random losses, damage with and without a hit header, reordering, retransmissions and forged packets from outside the window. What
/// has arrived is never reported; the hardened form never reports anything that did not arrive damaged.
#[test]
fn what_has_arrived_is_never_reported_lost() {
    let mut reported = 0;
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let hardened = seed % 2 == 0;
        let mut receiver = Receiver::new(hardened);
        let mut really_damaged = Vec::new();
        for step in 0..200 {
            receiver.now += Duration::from_millis(7);
            let frontier = (receiver.islands.last().map_or(receiver.next, |island| island.1) - START) / FULL;
            let first = (receiver.next - START) / FULL;
            let n = if dice.roll(3) == 0 { first + dice.roll(frontier - first + 1) } else { frontier + dice.roll(3) };
            let acks = match dice.roll(6) {
                0..=2 => {
                    receiver.intact(n);
                    true
                }
                3 => {
                    really_damaged.push(n);
                    receiver.damaged(&data(position(n), Some(n as u32)))
                }
                4 => {
                    really_damaged.push(n);
                    receiver.damaged(&data(position(n) ^ (1 << dice.roll(32)), Some(n as u32)))
                }
                _ => {
                    let outside = receiver.next + WINDOW + dice.roll(1 << 30);
                    let acknowledged = receiver.damaged(&data(outside, Some(0)));
                    assert!(!(hardened && acknowledged), "seed {seed} step {step}");
                    acknowledged
                }
            };
            if !acks {
                continue;
            }
            let Some(report) = receiver.report() else { continue };
            let Some(place) = report.position else {
                assert!(!hardened);
                continue;
            };
            reported += 1;
            let start = place.seq.near(receiver.next);
            assert!(!receiver.has(start), "seed {seed} step {step}: {place:?} has arrived");
            assert!(start < receiver.next + WINDOW, "seed {seed} step {step}: {place:?} is outside the window");
            if hardened {
                let n = (start - START) / FULL;
                assert!(really_damaged.contains(&n), "seed {seed} step {step}: {place:?} was not damaged");
                assert_eq!(report.echo, Some(n as u32));
            }
        }
    }
    assert!(reported > 10_000, "the property was put to the test {reported} times");
}
