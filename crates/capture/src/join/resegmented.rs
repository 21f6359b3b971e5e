//! Data that left in other segments than it came in: something on the way has parted or joined them.

use super::clocks::Clocks;
use super::{End, Matching};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A segment with data that has no partner: where it is in the stream, and which it is.
type Piece = (u64, u64, u32);

impl Matching<'_> {
    /// For packets that `sender` saw leave, the packet with which the last of their octets came, if other segments brought all of them. `same`
    /// are the flows of the other file. What came is of the last copy that left before.
    pub(super) fn resegmented(&self, sender: End, same: &HashMap<u32, u32>, clocks: &Clocks) -> HashMap<u32, u32> {
        let receiver = sender.other();
        let leaving = self.pieces(sender, |flow| same.contains_key(&flow));
        let theirs: HashSet<u32> = same.values().copied().collect();
        let mut coming = self.pieces(receiver, |flow| theirs.contains(&flow));
        let mut found = HashMap::new();
        for (flow, sent) in leaving {
            let Some(came) = same.get(&flow).and_then(|there| coming.remove(there)) else { continue };
            // One that is whole on both sides is a copy that the other capture missed. Parts of a record have the headers of its first packet.
            let whole: HashSet<(u64, u64)> = sent.iter().map(|piece| (piece.0, piece.1)).collect();
            let is_part = |piece: &Piece| self.packet(receiver, piece.2).part || !whole.contains(&(piece.0, piece.1));
            let came: Vec<Piece> = came.into_iter().filter(is_part).collect();
            let longest = |pieces: &[Piece]| pieces.iter().map(|piece| piece.1 - piece.0).max().unwrap_or(0);
            let (long, reach) = (longest(&sent), longest(&came));
            let delay = |there: u32, here: u32| match sender {
                End::First => self.delay(clocks, sender, there, here),
                End::Second => self.delay(clocks, sender, here, there),
            };
            let least = -(clocks.error_ns.unwrap_or_default() as i64);
            for &(start, end, there) in &sent {
                let (mut covered, mut last) = (start, None);
                for &(from, to, here) in overlapping(&came, (start, end), reach) {
                    let late = delay(there, here);
                    let newer = |other: &Piece| {
                        other.2 > there
                            && other.0 < to.min(end)
                            && other.1 > from.max(start)
                            && delay(other.2, here) >= least.max(0)
                    };
                    if late < least || from > covered || overlapping(&sent, (from, to), long).any(newer) {
                        continue;
                    }
                    covered = covered.max(to);
                    last = Some(here);
                }
                if let Some(here) = last.filter(|_| covered >= end) {
                    found.insert(there, here);
                }
            }
        }
        found
    }

    /// Data without a partner, by flow, in the order of the stream.
    fn pieces(&self, end: End, of: impl Fn(u32) -> bool) -> BTreeMap<u32, Vec<Piece>> {
        let mut pieces: BTreeMap<u32, Vec<Piece>> = BTreeMap::new();
        for (number, packet) in self.files[end as usize].packets.iter().enumerate() {
            if packet.len > 0 && !packet.damaged && self.partner[end as usize][number].is_none() && of(packet.flow) {
                // Each file begins to count by itself.
                let start = u64::from(packet.start as u32);
                pieces.entry(packet.flow).or_default().push((start, start + u64::from(packet.len), number as u32));
            }
        }
        for pieces in pieces.values_mut() {
            pieces.sort_unstable();
        }
        pieces
    }
}

/// Those of the pieces, none of which is longer than `longest`, that have octets in the range.
fn overlapping(pieces: &[Piece], (start, end): (u64, u64), longest: u64) -> impl Iterator<Item = &Piece> {
    let from = pieces.partition_point(|piece| piece.0 + longest <= start);
    pieces[from..].iter().take_while(move |piece| piece.0 < end).filter(move |piece| piece.1 > start)
}
