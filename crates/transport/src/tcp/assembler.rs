//! Puts arriving data in order.

use crate::segment::{Payload, SackBlocks};
use crate::seq::Seq;
use std::collections::{BTreeMap, VecDeque};

/// What a piece of data did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// It was next in order; this many octets became available, those that had waited for it included.
    InOrder {
        /// Octets that became available.
        octets: u64,
        /// Whether it filled a hole, wholly or in part.
        filled_hole: bool,
    },
    /// It lies beyond a hole.
    OutOfOrder,
    /// Nothing of it was new.
    Duplicate,
}

/// Pieces of this many octets fill a buffer before there are too many of them: no host sends full segments of fewer.
const SMALLEST_PIECE: u64 = 64;
/// So many pieces are taken whatever the size of the buffer.
const LEAST_PIECES: u64 = 256;
/// With nothing to read there is no room for more pieces than this: many connections are idle most of the time.
const FEW: usize = 4;
/// Ranges beyond holes. Each arrival looks for its place among them.
const MOST_ISLANDS: usize = 4096;

/// Received data: what is in order and not yet read, and islands beyond holes.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    next: u64,
    ready: VecDeque<Payload>,
    unread: u64,
    /// Ranges `[start, end)` beyond `next`, ascending, disjoint, not adjacent.
    islands: Vec<(u64, u64)>,
    /// The data of the islands by position; pieces do not overlap.
    pieces: BTreeMap<u64, Payload>,
    /// A position in each recently extended island, the most recent first (RFC 2018, 4).
    recent: [u64; 4],
}

impl Assembler {
    /// Expects the octet at `next` first.
    pub fn start_at(&mut self, next: u64) {
        self.next = next;
    }

    /// `RCV.NXT` as far as data goes.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Octets in order that have not been read.
    pub const fn unread(&self) -> u64 {
        self.unread
    }

    /// Ranges received out of order, ascending.
    pub fn islands(&self) -> &[(u64, u64)] {
        &self.islands
    }

    /// Whether data at `start` has to be dropped, given a buffer of `buffer` octets: many small pieces take more memory than their octets. What
    /// fills the first hole is taken whatever waits behind it.
    pub fn refuses(&self, start: u64, buffer: u64) -> bool {
        let most = (buffer / SMALLEST_PIECE).max(LEAST_PIECES) as usize;
        let behind = if start > self.next { self.pieces.len() } else { 0 };
        self.ready.len() + behind >= most || start > self.next && self.islands.len() >= MOST_ISLANDS
    }

    /// Takes `payload`, which is the data from `start` to `end`. With `discard`, data in order is counted and dropped instead of kept for reading.
    #[inline]
    pub fn insert(&mut self, (start, end): (u64, u64), payload: &Payload, discard: bool) -> Arrived {
        if start <= self.next && self.islands.is_empty() {
            if end <= self.next {
                return Arrived::Duplicate;
            }
            let fresh = end - self.next;
            if !discard {
                let known = (self.next - start) as usize;
                let piece = if known == 0 { payload.clone() } else { payload.slice(known, payload.len()) };
                self.ready.push_back(piece);
                self.unread += fresh;
            }
            self.next = end;
            return Arrived::InOrder { octets: fresh, filled_hole: false };
        }
        self.insert_among_islands(start.max(self.next), end, start, payload, discard)
    }

    #[inline(never)]
    fn insert_among_islands(&mut self, from: u64, end: u64, start: u64, payload: &Payload, discard: bool) -> Arrived {
        if from >= end {
            return Arrived::Duplicate;
        }
        // The islands that touch or overlap [from, end) become one.
        let low = self.islands.partition_point(|island| island.1 < from);
        let high = self.islands.partition_point(|island| island.0 <= end);
        let held = self.pieces.len();
        let mut at = from;
        let gaps = self.islands[low..high].iter().copied().chain([(end, end)]);
        for (left, right) in gaps {
            let to = left.min(end);
            if at < to {
                let mut piece = payload.slice((at - start) as usize, (to - start) as usize);
                piece.detach();
                self.pieces.insert(at, piece);
            }
            at = at.max(right);
        }
        if self.pieces.len() == held {
            self.remember(from);
            return Arrived::Duplicate;
        }
        let merged = self.islands[low..high].iter().fold((from, end), |m, i| (m.0.min(i.0), m.1.max(i.1)));
        self.islands.splice(low..high, [merged]);
        if merged.0 > self.next {
            self.remember(from);
            return Arrived::OutOfOrder;
        }
        self.islands.remove(0);
        let octets = merged.1 - self.next;
        self.next = merged.1;
        while let Some(piece) = self.pieces.first_entry() {
            if *piece.key() >= self.next {
                break;
            }
            let piece = piece.remove();
            if !discard {
                self.unread += piece.len() as u64;
                self.ready.push_back(piece);
            }
        }
        Arrived::InOrder { octets, filled_hole: true }
    }

    fn remember(&mut self, position: u64) {
        self.recent.rotate_right(1);
        self.recent[0] = position;
    }

    /// The next piece in order, at most `max` octets.
    pub fn read(&mut self, max: usize) -> Option<Payload> {
        let first = self.ready.front_mut()?;
        let piece = if first.len() <= max {
            let piece = self.ready.pop_front()?;
            if self.ready.is_empty() && self.ready.capacity() > FEW {
                self.ready = VecDeque::new();
            }
            piece
        } else {
            let head = first.slice(0, max);
            *first = first.slice(max, first.len());
            head
        };
        self.unread -= piece.len() as u64;
        Some(piece)
    }

    /// SACK blocks for the islands: the one that changed last first, then those that changed before, then any others.
    pub fn sack_blocks(&self, blocks: &mut SackBlocks, room: usize) {
        let mut used = [u64::MAX; 4];
        let mut offer = |island: (u64, u64)| {
            let count = blocks.len();
            if count < room && !used.contains(&island.0) && blocks.push(Seq::from(island.0), Seq::from(island.1)) {
                used[count.min(3)] = island.0;
            }
        };
        for &position in &self.recent {
            let index = self.islands.partition_point(|island| island.1 <= position);
            if let Some(&island) = self.islands.get(index).filter(|island| island.0 <= position) {
                offer(island);
            }
        }
        self.islands.iter().rev().copied().take(room).for_each(offer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn synthetic(from: u64, to: u64) -> Payload {
        Payload::Synthetic { offset: from, len: (to - from) as u32 }
    }

    fn blocks(assembler: &Assembler) -> Vec<(u32, u32)> {
        let mut blocks = SackBlocks::default();
        assembler.sack_blocks(&mut blocks, 4);
        blocks.as_slice().iter().map(|(l, r)| (l.0, r.0)).collect()
    }

    #[test]
    fn holes_fill_in_any_order() {
        let mut a = Assembler::default();
        let mut put = |from, to| a.insert((from, to), &synthetic(from, to), false);
        assert_eq!(put(10, 20), Arrived::OutOfOrder);
        assert_eq!(put(30, 40), Arrived::OutOfOrder);
        assert_eq!(put(12, 18), Arrived::Duplicate);
        assert_eq!(put(15, 35), Arrived::OutOfOrder);
        assert_eq!(put(0, 5), Arrived::InOrder { octets: 5, filled_hole: true });
        assert_eq!(put(0, 12), Arrived::InOrder { octets: 35, filled_hole: true });
        let mut at = 0;
        while let Some(piece) = a.read(7) {
            assert_eq!(piece, synthetic(at, at + piece.len() as u64));
            at += piece.len() as u64;
        }
        assert_eq!((at, a.unread()), (40, 0));
    }

    #[test]
    fn the_most_recent_block_comes_first() {
        let mut a = Assembler::default();
        for start in [10, 30, 50, 70, 90] {
            a.insert((start, start + 5), &synthetic(start, start + 5), true);
        }
        assert_eq!(blocks(&a), [(90, 95), (70, 75), (50, 55), (30, 35)]);
        a.insert((15, 20), &synthetic(15, 20), true);
        assert_eq!(blocks(&a)[..2], [(10, 20), (90, 95)]);
    }

    #[test]
    fn pieces_of_one_octet_are_bounded_and_do_not_keep_the_hole_open() {
        const BUFFER: u64 = 1 << 16;
        let mut a = Assembler::default();
        let packet = bytes::Bytes::from(vec![7; 2048]);
        let octet = || Payload::Bytes(packet.slice(1000..1001));
        let take = |a: &mut Assembler, at| {
            let taken = !a.refuses(at, BUFFER);
            if taken {
                a.insert((at, at + 1), &octet(), false);
            }
            taken
        };
        let taken = (1..BUFFER).filter(|at| at % 2 == 1 && take(&mut a, *at)).count();
        assert_eq!((taken, a.pieces.len(), a.islands.len()), (1024, 1024, 1024));
        assert!(packet.is_unique(), "nothing keeps the packet");
        // In order: the holes are filled, and the rest has to wait until somebody reads.
        let filled = (0..BUFFER).filter(|at| *at == a.next() && take(&mut a, *at)).count();
        assert!(filled >= 512 && a.ready.len() <= 2 * 1024, "{filled} {}", a.ready.len());
        while a.read(1 << 16).is_some() {}
        assert!(!a.refuses(a.next(), BUFFER));
        // A large buffer has a bound of its own for ranges.
        let mut b = Assembler::default();
        let taken = (1..1 << 20).filter(|at| {
            at % 2 == 1 && !b.refuses(*at, 1 << 23) && b.insert((*at, *at + 1), &octet(), false) == Arrived::OutOfOrder
        });
        assert_eq!(taken.count(), MOST_ISLANDS);
    }

    #[test]
    fn a_buffer_full_of_small_segments_is_not_refused() {
        const BUFFER: u64 = 1 << 20;
        let mut a = Assembler::default();
        for at in (SMALLEST_PIECE..BUFFER).step_by(SMALLEST_PIECE as usize) {
            assert!(!a.refuses(at, BUFFER), "{at}");
            a.insert((at, at + SMALLEST_PIECE), &synthetic(at, at + SMALLEST_PIECE), false);
        }
        assert!(!a.refuses(0, BUFFER));
        assert!(matches!(
            a.insert((0, SMALLEST_PIECE), &synthetic(0, SMALLEST_PIECE), false),
            Arrived::InOrder { octets: BUFFER, .. }
        ));
    }
}
