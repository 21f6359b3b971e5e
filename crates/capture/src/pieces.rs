//! What of a stream was seen: the pieces between the acknowledgement and the newest octet, and the latest of those that are acknowledged.

use crate::headers::MAX_SACK_BLOCKS;
use std::collections::VecDeque;
use whyloss_transport::time::{Duration, Instant};

/// Pieces of a stream that are told apart between the acknowledgement and the newest octet; a larger window is followed in coarser pieces.
const MAX_PIECES: usize = 1 << 16;
/// Acknowledged pieces that are remembered, to recognise what comes again after all, where acknowledgements soon reach the sender.
const REMEMBERED: usize = 32;
/// The same where they take long, at most.
const MOST_REMEMBERED: usize = 512;

/// A transmission of a piece.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// The number of its record.
    pub number: u64,
    /// When it was captured.
    pub at: Instant,
    /// Identification of its IPv4 packet.
    pub ip_id: Option<u16>,
    /// Its timestamp.
    pub timestamp: Option<u32>,
    /// It came to the capture damaged.
    pub damaged: bool,
}

/// A piece of the stream.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Position of its first octet.
    pub start: u64,
    /// Position behind its last octet.
    pub end: u64,
    /// Its latest transmission.
    pub last: Sending,
    /// That was not the first.
    pub again: bool,
    /// It was selectively acknowledged.
    pub sacked: bool,
}

/// When pieces were seen that arrived now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrived {
    /// The newest of those that were sent once, and were not known to have arrived.
    pub once: Option<Instant>,
    /// The newest of those that were sent again.
    pub again: Option<Instant>,
}

impl Arrived {
    fn note(&mut self, piece: &Piece) {
        if piece.sacked {
            return;
        }
        let slot = if piece.again { &mut self.again } else { &mut self.once };
        *slot = Some(slot.map_or(piece.last.at, |at| at.max(piece.last.at)));
    }
}

/// The pieces of a stream, in order, without overlaps.
#[derive(Debug, Default)]
pub struct Pieces {
    open: VecDeque<Piece>,
    done: VecDeque<Piece>,
    /// If the sender hears of acknowledgements much later than the capture: how much longer a piece may come again than one sent later was
    /// acknowledged.
    pub remote: Option<Duration>,
    /// Octets that are selectively acknowledged.
    sacked: u64,
    /// SACK blocks that are noted, all of whose pieces are marked; none after a piece in the middle changed.
    noted: [(u64, u64); MAX_SACK_BLOCKS],
}

impl Pieces {
    /// Octets for which it has room beside itself.
    pub fn octets(&self) -> usize {
        (self.open.capacity() + self.done.capacity()) * size_of::<Piece>()
    }

    /// Those that are not acknowledged.
    pub fn iter(&self) -> impl Iterator<Item = &Piece> {
        self.open.iter()
    }

    /// The first piece, acknowledged or not, that has octets of a stretch.
    pub fn seen(&self, start: u64, end: u64) -> Option<&Piece> {
        let index = self.open.partition_point(|piece| piece.end <= start);
        let open = self.open.get(index).filter(|piece| piece.start < end);
        open.or_else(|| {
            let index = self.done.partition_point(|piece| piece.end <= start);
            self.done.get(index).filter(|piece| piece.start < end)
        })
    }

    /// The first piece that starts at `position` or above.
    pub fn from(&self, position: u64) -> Option<&Piece> {
        self.open.get(self.index_from(position))
    }

    /// The first such piece that was sent once.
    pub fn once_from(&self, position: u64) -> Option<&Piece> {
        self.open.range(self.index_from(position)..).find(|piece| !piece.again)
    }

    /// Whether there is anything between `una` and `below` that is not known to have arrived, and was not sent again since `at`.
    pub fn has_unrepaired(&self, una: u64, at: Instant, below: u64) -> bool {
        let mut reached = una;
        for piece in self.open.iter().take_while(|piece| piece.start < below) {
            if piece.start > reached || !piece.sacked && piece.last.at < at {
                return true;
            }
            reached = piece.end;
        }
        reached < below
    }

    /// Octets that are selectively acknowledged.
    pub fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Those of them at `position` and above.
    pub fn sacked_above(&self, position: u64) -> u64 {
        if self.sacked == 0 {
            return 0;
        }
        let below = self.open.iter().take_while(|piece| piece.start < position);
        self.sacked - below.filter(|piece| piece.sacked).map(|piece| piece.end - piece.start).sum::<u64>()
    }

    fn index_from(&self, position: u64) -> usize {
        self.open.partition_point(|piece| piece.start < position)
    }

    /// Appends what is new.
    pub fn push(&mut self, start: u64, end: u64, last: Sending) {
        if self.open.len() < MAX_PIECES {
            self.open.push_back(Piece { start, end, last, again: false, sacked: false });
        } else if let Some(newest) = self.open.back_mut() {
            self.sacked += if newest.sacked { end - newest.end } else { 0 };
            newest.end = end;
        }
    }

    /// The newest piece goes on to `end`, if it is there and reaches to `until`.
    pub fn lengthen(&mut self, until: u64, end: u64) -> bool {
        let Some(newest) = self.open.back_mut().filter(|newest| newest.end == until) else { return false };
        self.sacked += if newest.sacked { end - until } else { 0 };
        newest.end = end;
        true
    }

    /// Notes that a stretch in the middle was seen.
    pub fn put(&mut self, start: u64, end: u64, last: Sending) {
        self.noted = Default::default();
        // Split what overlaps at the edges, mark what lies between, fill what is missing.
        self.split(start);
        self.split(end);
        let from = self.open.partition_point(|piece| piece.end <= start);
        let to = self.index_from(end);
        let mut between = self.open.range(from..to);
        let reached = between.try_fold(start, |at, piece| (at >= piece.start).then_some(piece.end));
        if reached.is_some_and(|reached| reached >= end) {
            self.open.range_mut(from..to).for_each(|piece| (piece.last, piece.again) = (last, true));
            return;
        }
        let piece = Piece { start, end, last, again: false, sacked: false };
        let mut filled = Vec::with_capacity(to - from + 1);
        let mut at = start;
        for old in self.open.range(from..to) {
            if old.start > at {
                filled.push(Piece { start: at, end: old.start, ..piece });
            }
            filled.push(Piece { last, again: true, ..*old });
            at = old.end;
        }
        if at < end {
            filled.push(Piece { start: at, end, ..piece });
        }
        if self.open.len() + filled.len() - (to - from) > MAX_PIECES {
            return;
        }
        let tail = self.open.split_off(to);
        self.open.truncate(from);
        self.open.extend(filled);
        self.open.extend(tail);
    }

    /// Parts the piece around a position there; of too many, whole ones are taken.
    fn split(&mut self, position: u64) {
        if self.open.len() >= MAX_PIECES {
            return;
        }
        let index = self.open.partition_point(|piece| piece.end <= position);
        if let Some(piece) = self.open.get_mut(index).filter(|piece| piece.start < position) {
            let rest = Piece { start: position, ..*piece };
            piece.end = position;
            self.open.insert(index + 1, rest);
        }
    }

    /// All below `ack` has arrived; `unseen` hears of stretches from `una` on that were never seen.
    pub fn acknowledge(&mut self, una: u64, ack: u64, unseen: &mut dyn FnMut(u64, u64)) -> Arrived {
        let mut arrived = Arrived::default();
        let mut at = una;
        while let Some(&first) = self.open.front().filter(|piece| piece.start < ack) {
            let piece = Piece { end: first.end.min(ack), ..first };
            if piece.start > at {
                unseen(at, piece.start);
            }
            at = at.max(piece.end);
            arrived.note(&piece);
            if piece.sacked {
                self.sacked -= piece.end - piece.start;
            }
            match self.open.front_mut().filter(|first| first.end > ack) {
                Some(rest) => rest.start = ack,
                None => drop(self.open.pop_front()),
            }
            self.remember(piece);
        }
        if at < ack {
            unseen(at, ack);
        }
        arrived
    }

    fn remember(&mut self, piece: Piece) {
        let (most, since) = match self.remote {
            Some(horizon) => (MOST_REMEMBERED, piece.last.at.as_nanos().saturating_sub(horizon.as_nanos())),
            None => (REMEMBERED, 0),
        };
        while self.done.len() >= most
            || self.done.len() > REMEMBERED && self.done.front().is_some_and(|oldest| oldest.last.at.as_nanos() < since)
        {
            self.done.pop_front();
        }
        self.done.push_back(piece);
    }

    /// An acknowledgement has these SACK blocks. Each stretch that is new is told to `told`.
    pub fn sack(&mut self, blocks: impl Iterator<Item = (u64, u64)>, told: &mut dyn FnMut(u64, u64, Arrived)) {
        let mut noted = [(0, 0); MAX_SACK_BLOCKS];
        let mut any = false;
        for (slot, (left, right)) in noted.iter_mut().zip(blocks) {
            any = true;
            *slot = (left, right);
            // A receiver repeats its blocks: what an earlier one told is not looked at again.
            let known = self.noted.iter().find(|block| block.0 <= left && left <= block.1).map_or(left, |block| block.1);
            if right <= known {
                continue;
            }
            let from = self.index_from(left).max(self.open.partition_point(|piece| piece.end <= known));
            let mut arrived = Arrived::default();
            for piece in self.open.range_mut(from..).take_while(|piece| piece.end <= right) {
                arrived.note(piece);
                if !piece.sacked {
                    self.sacked += piece.end - piece.start;
                }
                piece.sacked = true;
            }
            told(left, right, arrived);
        }
        if any {
            self.noted = noted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_again_in_parts_stays_bounded() {
        let last = Sending { number: 0, at: Instant::ZERO, ip_id: None, timestamp: None, damaged: false };
        let mut pieces = Pieces::default();
        let most = MAX_PIECES as u64;
        (0..most + 1000).for_each(|start| pieces.push(start * 10, start * 10 + 10, last));
        let end = (most + 1000) * 10;
        for start in (end - 9000..end).step_by(100) {
            pieces.put(start, start + 1, Sending { number: start, ..last });
        }
        assert_eq!(pieces.open.len(), MAX_PIECES);
        assert!(pieces.open.back().is_some_and(|piece| piece.again && piece.end == end));
        assert!(pieces.iter().zip(pieces.iter().skip(1)).all(|(one, next)| one.end == next.start));
        // In the middle of the first one, and of the last.
        for ack in [5, end - 1] {
            pieces.acknowledge(0, ack, &mut |_, _| {});
            assert_eq!(pieces.iter().next().map(|piece| piece.start), Some(ack));
        }
        assert_eq!(pieces.open.len(), 1);
    }
}
