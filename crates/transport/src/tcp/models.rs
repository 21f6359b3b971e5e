//! The data structures against models that are too simple to be wrong.

use super::assembler::{Arrived, Assembler};
use super::scoreboard::{Delivered, Scoreboard, Sent};
use crate::segment::{synthetic_octet, Payload, SackBlocks};
use crate::time::Instant;
use proptest::prelude::*;
use std::collections::BTreeSet;

const STREAM: u64 = 400;

#[derive(Clone, Debug)]
enum Step {
    Arrive { start: u64, len: u64 },
    Read { max: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let arrive = (0..STREAM, 1..60u64).prop_map(|(start, len)| Step::Arrive { start, len });
    let read = (1..80usize).prop_map(|max| Step::Read { max });
    prop::collection::vec(prop_oneof![4 => arrive, 1 => read], 1..120)
}

proptest! {
    /// Reassembly against a set of octets.
    #[test]
    fn reassembly_hands_over_what_a_set_of_octets_would(steps in steps()) {
        let base = 1 << 32;
        let mut assembler = Assembler::default();
        assembler.start_at(base);
        let mut have: BTreeSet<u64> = BTreeSet::new();
        let mut next = 0;
        let mut got = 0;
        for step in steps {
            match step {
                Step::Arrive { start, len } => {
                    let payload = Payload::Synthetic { offset: start, len: len as u32 };
                    let fresh: Vec<u64> = (start..start + len).filter(|octet| *octet >= next && !have.contains(octet)).collect();
                    let arrived = assembler.insert((base + start, base + start + len), &payload, false);
                    have.extend(&fresh);
                    let before = next;
                    while have.remove(&next) {
                        next += 1;
                    }
                    let expected = if fresh.is_empty() {
                        Arrived::Duplicate
                    } else if next > before {
                        Arrived::InOrder { octets: next - before, filled_hole: next > before && arrived_fills_hole(arrived) }
                    } else {
                        Arrived::OutOfOrder
                    };
                    prop_assert_eq!(arrived, expected);
                }
                Step::Read { max } => {
                    if let Some(piece) = assembler.read(max) {
                        prop_assert!(piece.len() <= max);
                        for octet in piece.to_bytes() {
                            prop_assert_eq!(octet, synthetic_octet(got));
                            got += 1;
                        }
                    }
                }
            }
            prop_assert_eq!(assembler.next(), base + next);
            prop_assert_eq!(assembler.unread(), next - got);
            let octets: Vec<u64> = assembler.islands().iter().flat_map(|&(l, r)| l - base..r - base).collect();
            prop_assert_eq!(octets, have.iter().copied().collect::<Vec<_>>());
            check_blocks(&assembler)?;
        }
    }

    /// The scoreboard's sums against a sum over its segments.
    #[test]
    fn the_scoreboard_counts_what_its_segments_say(actions in prop::collection::vec((0..8u8, 0..30u64, 1..400u64), 1..150)) {
        let mut board = Scoreboard::default();
        let (mut una, mut nxt, mut clock) = (1000u64, 1000u64, 0u64);
        let mut delivered = 0;
        for (what, index, len) in actions {
            clock += 1;
            let now = Instant::from_nanos(clock);
            let position = una + (index * 37) % (nxt - una).max(1);
            match what {
                0 | 1 => {
                    board.push(nxt, len as u32, false, now);
                    nxt += len;
                }
                2 => {
                    let mut news = Delivered::default();
                    board.sack(position, (position + len).min(nxt), &mut news);
                    delivered += news.octets;
                }
                3 => {
                    let mut news = Delivered::default();
                    una = (una + len / 2).min(nxt);
                    board.acknowledge(una, &mut news);
                    delivered += news.octets;
                }
                4 => {
                    if let Some(index) = board.find(position) {
                        board.mark_lost(index);
                    }
                }
                5 => {
                    board.mark_gone(position);
                    let unclear = |sent: &&Sent| sent.end() <= position && !sent.was_retransmitted();
                    prop_assert!(board.iter().filter(unclear).all(|sent| !sent.in_network() && !sent.needs_repair()));
                }
                6 if index < 3 => board.unmark_lost(),
                7 if index < 3 => board.mark_all_lost(),
                _ => {
                    if let Some(index) = board.next_repair() {
                        prop_assert!(board.iter().take(index).all(|sent| !sent.needs_repair()), "the first comes first");
                        board.on_retransmit(index, now);
                    }
                }
            }
            let of = |wanted: fn(&Sent) -> bool| -> u64 {
                board.iter().filter(|sent| wanted(sent)).map(|sent| u64::from(sent.len)).sum()
            };
            prop_assert_eq!(board.sacked(), of(Sent::is_sacked));
            prop_assert_eq!(board.absent(), of(|sent| !sent.in_network()));
            prop_assert_eq!(board.needs_repair(), of(Sent::needs_repair) > 0);
            prop_assert_eq!(delivered, una - 1000 + board.sacked(), "each octet is delivered once");
            let newest = (Instant::from_nanos(clock - (index % 8).min(clock)), una + (nxt - una) / 2);
            let (mut told, mut left_before) = (Vec::new(), Vec::new());
            board.left_before(newest, |index, left| told.push((index, left)));
            told.sort_unstable();
            for (index, sent) in board.iter().enumerate() {
                let (once, order) = (!sent.was_retransmitted(), (sent.last_at, sent.end()) < newest);
                if sent.in_network() && if once { order } else { sent.last_at < newest.0 } {
                    left_before.push((index, sent.last_at));
                }
            }
            prop_assert_eq!(told, left_before);
            let mut at = una;
            for sent in board.iter() {
                prop_assert_eq!(sent.start, at, "no hole between segments");
                at = sent.end();
            }
            prop_assert_eq!(at, nxt);
        }
    }
}

fn arrived_fills_hole(arrived: Arrived) -> bool {
    matches!(arrived, Arrived::InOrder { filled_hole: true, .. })
}

/// Blocks are islands, none twice.
fn check_blocks(assembler: &Assembler) -> Result<(), TestCaseError> {
    let mut blocks = SackBlocks::default();
    assembler.sack_blocks(&mut blocks, 4);
    let islands: Vec<(u32, u32)> = assembler.islands().iter().map(|&(l, r)| (l as u32, r as u32)).collect();
    let told: Vec<(u32, u32)> = blocks.as_slice().iter().map(|(l, r)| (l.0, r.0)).collect();
    prop_assert!(told.iter().all(|block| islands.contains(block)));
    prop_assert_eq!(told.iter().collect::<BTreeSet<_>>().len(), told.len());
    prop_assert_eq!(told.len(), islands.len().min(4));
    Ok(())
}
