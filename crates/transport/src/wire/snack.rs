//! SNACK: which segments are missing (CCSDS 714.0-B, SCPS-TP selective negative acknowledgement; option kind 21).
//!
//! | octet | |
//! | ---: | --- |
//! | 0 | kind 21 |
//! | 1 | length: 6 + *v* |
//! | 2–3 | offset of the first hole from the acknowledgement number, in segments |
//! | 4–5 | size of the first hole, in segments |
//! | 6… | *v* octets: one bit a segment from the end of the first hole on, most significant first; 1 received, 0 missing |
//!
//! Nothing is said beyond the last 1. Segments are blocks of MSS octets counted from the acknowledgement number; a hole that begins or
//! ends inside a block takes the whole block. Both sides have to agree on what MSS is: the data that a full segment carries.

use super::options::SNACK_LEN;
use crate::segment::Snack;
use bytes::Bytes;

impl Snack {
    /// The SNACK for everything between `ack` and the last of `islands`: the first hole, and as many of the others as `max_bits`
    /// octets of bits can tell. `islands` are the ranges of stream positions received above `ack`, ascending and disjoint.
    ///
    /// `None` if nothing is missing, if the first hole is too far away for the option's 16-bit offset, or if `mss` is 0.
    pub fn with_bits(ack: u64, islands: &[(u64, u64)], mss: u32, max_bits: usize) -> Option<Self> {
        let mut holes = holes(ack, islands, mss);
        let (first, first_end) = holes.next()?;
        let mut snack = Self::of_hole(first, first_end)?;
        let origin = first + u64::from(snack.hole1_size);
        let received_end = islands.last().map_or(ack, |island| island.1);
        // A block that the last island only begins is the short last segment of a burst: all of it that is known of was received.
        let blocks = (received_end - ack).div_ceil(u64::from(mss)).saturating_sub(origin);
        let mut bits = vec![0xFF_u8; (blocks.div_ceil(8) as usize).min(max_bits)];
        let mut clear = |from: u64, to: u64| {
            for block in from..to.min(bits.len() as u64 * 8) {
                bits[(block / 8) as usize] &= !(0x80 >> (block % 8));
            }
        };
        clear(0, first_end - origin);
        for (from, to) in holes {
            clear(from.max(origin) - origin, to.max(origin) - origin);
        }
        clear(blocks, u64::MAX);
        let told = told(&bits);
        // Without another hole the bits say nothing that the first hole does not.
        if missing(&bits[..told]).next().is_some() {
            bits.truncate(told);
            snack.bits = Bytes::from(bits);
        }
        Some(snack)
    }

    /// The same as one SNACK without bits for each hole, for peers that do not read bits.
    pub fn one_per_hole(ack: u64, islands: &[(u64, u64)], mss: u32) -> impl Iterator<Item = Self> + '_ {
        holes(ack, islands, mss).map_while(|(from, to)| Self::of_hole(from, to))
    }

    /// As many options as fit into `room` octets, for as many holes as they can tell. With `bits` the first one tells of all holes that it
    /// can, and what it cannot tell, such as a hole with nothing received beyond it, stands in options of its own.
    pub fn several(ack: u64, islands: &[(u64, u64)], mss: u32, room: usize, bits: bool) -> Vec<Self> {
        let most = room / SNACK_LEN;
        if !bits {
            return Self::one_per_hole(ack, islands, mss).take(most).collect();
        }
        let Some(first) = room.checked_sub(SNACK_LEN).and_then(|room| Self::with_bits(ack, islands, mss, room)) else {
            return Vec::new();
        };
        let told = first.holes(ack, mss).last().map_or(ack, |hole| hole.1);
        let more = (room - SNACK_LEN - first.bits.len()) / SNACK_LEN;
        let untold = |snack: &Self| snack.holes(ack, mss).next().is_some_and(|hole| hole.1 > told);
        let rest: Vec<_> = Self::one_per_hole(ack, islands, mss).filter(untold).take(more).collect();
        std::iter::once(first).chain(rest).collect()
    }

    /// The holes as ranges of stream positions, ascending, if the SNACK came with acknowledgement number `ack`. A sender that acts on
    /// them has to intersect them with what is outstanding.
    pub fn holes(&self, ack: u64, mss: u32) -> impl Iterator<Item = (u64, u64)> + '_ {
        let position = move |block: u64| ack + block * u64::from(mss);
        let first = u64::from(self.hole1_offset);
        let end = first + u64::from(self.hole1_size);
        let mut missing = missing(&self.bits[..told(&self.bits)]).map(move |block| end + block).peekable();
        let runs = std::iter::from_fn(move || {
            let from = missing.next()?;
            let mut to = from + 1;
            while missing.next_if_eq(&to).is_some() {
                to += 1;
            }
            Some((from, to))
        });
        (end > first).then_some((first, end)).into_iter().chain(runs).map(move |(from, to)| (position(from), position(to)))
    }

    fn of_hole(from: u64, to: u64) -> Option<Self> {
        let hole1_size = (to - from).min(u64::from(u16::MAX)) as u16;
        Some(Self { hole1_offset: u16::try_from(from).ok()?, hole1_size, bits: Bytes::new() })
    }
}

/// Octets of bits up to the one with the last 1.
fn told(bits: &[u8]) -> usize {
    bits.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1)
}

/// The zeros left of the last 1, as block numbers. The last octet is not 0.
fn missing(bits: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bits.iter().enumerate().flat_map(|(at, octet)| {
        let end = if at + 1 == bits.len() { 8 - octet.trailing_zeros() } else { 8 };
        (0..end).filter(move |bit| octet & (0x80 >> bit) == 0).map(move |bit| at as u64 * 8 + u64::from(bit))
    })
}

/// The holes below the last island as ranges of blocks `[from, to)`, counted from `ack`.
fn holes(ack: u64, islands: &[(u64, u64)], mss: u32) -> impl Iterator<Item = (u64, u64)> + '_ {
    let mss = u64::from(mss);
    let mut next = ack;
    islands.iter().filter(move |_| mss > 0).filter_map(move |(start, end)| {
        let hole = (next, *start);
        next = next.max(*end);
        (hole.0 < hole.1).then(|| ((hole.0 - ack) / mss, (hole.1 - ack).div_ceil(mss)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 1000;

    fn blocks(snack: &Snack) -> Vec<u64> {
        let holes = snack.holes(5000, MSS).flat_map(|(from, to)| (from..to).step_by(MSS as usize));
        holes.map(|at| (at - 5000) / u64::from(MSS)).collect()
    }

    /// Missing 0 to 2, 7, 10 and 11; received 3 to 6, 8, 9 and 12.
    const ISLANDS: [(u64, u64); 3] = [(8000, 12_000), (13_000, 15_000), (17_000, 18_000)];

    #[test]
    fn three_holes_in_bits() {
        let snack = Snack::with_bits(5000, &ISLANDS, MSS, 34).unwrap();
        assert_eq!((snack.hole1_offset, snack.hole1_size, &snack.bits[..]), (0, 3, &[0xF6, 0x40][..]));
        assert_eq!(blocks(&snack), [0, 1, 2, 7, 10, 11]);
        assert_eq!(snack.holes(5000, MSS).collect::<Vec<_>>(), [(5000, 8000), (12_000, 13_000), (15_000, 17_000)]);
    }

    #[test]
    fn three_holes_without_bits() {
        let snacks: Vec<_> = Snack::one_per_hole(5000, &ISLANDS, MSS).collect();
        let fields: Vec<_> = snacks.iter().map(|snack| (snack.hole1_offset, snack.hole1_size)).collect();
        assert_eq!(fields, [(0, 3), (7, 1), (10, 2)]);
        assert_eq!(snacks.iter().flat_map(blocks).collect::<Vec<_>>(), [0, 1, 2, 7, 10, 11]);
    }

    #[test]
    fn what_bits_cannot_tell_stands_in_options_of_its_own() {
        // The end of the stream is known, and the last two segments are missing.
        let islands = [&ISLANDS[..], &[(20_000, 20_001)]].concat();
        let all = [0, 1, 2, 7, 10, 11, 13, 14];
        let fields = |room, bits| {
            let snacks = Snack::several(5000, &islands, MSS, room, bits);
            assert!(snacks.iter().map(|snack| SNACK_LEN + snack.bits.len()).sum::<usize>() <= room);
            let told: Vec<_> = snacks.iter().flat_map(blocks).collect();
            assert_eq!(told, all[..told.len()], "{room} octets");
            let fields = |snack: &Snack| (snack.hole1_offset, snack.hole1_size, snack.bits.len());
            snacks.iter().map(fields).collect::<Vec<_>>()
        };
        assert_eq!(fields(30, true), [(0, 3, 2)], "aligned, so that the bit of the FIN ends them");
        assert_eq!(fields(30, false), [(0, 3, 0), (7, 1, 0), (10, 2, 0), (13, 2, 0)]);
        assert_eq!(fields(7, true), [(0, 3, 1)]);
        assert_eq!(fields(17, false), [(0, 3, 0), (7, 1, 0)]);
        assert_eq!(fields(12, true), [(0, 3, 2)]);
        assert_eq!(fields(5, true), []);
        assert_eq!(fields(5, false), []);
        // The last hole ends inside a block, of which the bits cannot say both.
        let odd = Snack::several(5000, &[(6000, 7000), (9500, 9501)], MSS, 30, true);
        let odd: Vec<_> = odd.iter().map(|snack| (snack.hole1_offset, snack.hole1_size, snack.bits.len())).collect();
        assert_eq!(odd, [(0, 1, 0), (2, 3, 0)]);
    }

    #[test]
    fn a_partial_segment_counts_whole() {
        let one = |islands: &[(u64, u64)]| {
            let snack = Snack::with_bits(5000, islands, MSS, 34).unwrap();
            (snack.hole1_offset, snack.hole1_size, snack.bits.to_vec())
        };
        assert_eq!(one(&[(6500, 7000)]), (0, 2, vec![]), "a hole of one and a half");
        assert_eq!(one(&[(5000, 6700), (7700, 9000)]), (1, 2, vec![]), "the remainder of the offset is added to the size");
    }

    #[test]
    fn bits_end_with_the_room() {
        let islands = [(6000, 7000), (8000, 9000), (25_000, 26_000)];
        assert_eq!(Snack::with_bits(5000, &islands, MSS, 34).unwrap().bits[..], [0b1010_0000, 0, 0b0001_0000]);
        assert_eq!(blocks(&Snack::with_bits(5000, &islands, MSS, 2).unwrap()), [0, 2], "the last 1 is in the first octet");
        assert_eq!(blocks(&Snack::with_bits(5000, &islands, MSS, 0).unwrap()), [0]);
    }

    #[test]
    fn trailing_zeros_are_padding() {
        let snack = Snack { hole1_offset: 1, hole1_size: 1, bits: Bytes::from_static(&[0b0110_0000, 0, 0]) };
        assert_eq!(blocks(&snack), [1, 2]);
        let nothing = Snack { hole1_offset: 1, hole1_size: 0, bits: Bytes::from_static(&[0, 0]) };
        assert_eq!(blocks(&nothing), [0; 0]);
    }

    proptest! {
        /// Against a model that marks segments one by one.
        #[test]
        fn what_is_missing_is_told(received in prop::collection::vec(any::<bool>(), 1..200), max_bits in 0..=34usize) {
            let position = |block: usize| 5000 + block as u64 * u64::from(MSS);
            let blocks_received = received.iter().enumerate().filter(|(_, received)| **received);
            let islands: Vec<_> = blocks_received.map(|(block, _)| (position(block), position(block + 1))).collect();
            let Some(end) = received.iter().rposition(|received| *received) else { return Ok(()) };
            let missing: Vec<u64> = (0..end).filter(|block| !received[*block]).map(|block| block as u64).collect();

            let without_bits: Vec<_> = Snack::one_per_hole(5000, &islands, MSS).flat_map(|snack| blocks(&snack)).collect();
            prop_assert_eq!(&without_bits, &missing);

            let Some(snack) = Snack::with_bits(5000, &islands, MSS, max_bits) else {
                prop_assert!(missing.is_empty());
                return Ok(());
            };
            prop_assert!(snack.bits.len() <= max_bits);
            let told = blocks(&snack);
            prop_assert_eq!(&told[..], &missing[..told.len()]);
            let reach = u64::from(snack.hole1_offset) + u64::from(snack.hole1_size) + max_bits as u64 * 8;
            let untold = missing[told.len()..].iter().find(|block| **block < reach);
            let behind = |block: u64| received[block as usize..received.len().min(reach as usize)].iter().any(|received| *received);
            prop_assert!(untold.is_none_or(|block| !behind(*block)), "a hole with something received behind it fits and is not told");
        }
    }

    proptest! {
        /// Holes of any size at any octet: what is told fits, is ascending, reaches less than a block beyond what is missing, and leaves nothing out
        /// that there is room for.
        #[test]
        fn holes_of_any_size_are_told_in_whole_blocks(
            pieces in prop::collection::vec((1..4000u64, 1..4000u64), 1..12),
            room in 0..=30usize,
            bits: bool,
            wraps: bool,
        ) {
            let ack = if wraps { (1 << 32) - 700 } else { 5000 };
            let mut at = ack;
            let islands: Vec<_> = pieces.iter().map(|(hole, island)| {
                let start = at + hole;
                at = start + island;
                (start, at)
            }).collect();
            let mut left = ack;
            let missing: Vec<(u64, u64)> = islands.iter().map(|&(start, end)| (std::mem::replace(&mut left, end), start)).collect();

            let snacks = Snack::several(ack, &islands, MSS, room, bits);
            prop_assert!(snacks.iter().map(|snack| SNACK_LEN + snack.bits.len()).sum::<usize>() <= room);
            prop_assert_eq!(snacks.is_empty(), room < SNACK_LEN);
            let told: Vec<_> = snacks.iter().flat_map(|snack| snack.holes(ack, MSS)).collect();
            let block = u64::from(MSS);
            for &(start, end) in &told {
                prop_assert!(start < end && (start - ack) % block == 0 && (end - ack) % block == 0);
                for at in (start..end).step_by(MSS as usize) {
                    let touches = |hole: &(u64, u64)| hole.0 < at + block && at < hole.1;
                    prop_assert!(missing.iter().any(touches), "nothing of the block at {} is missing", at);
                }
            }
            let covered = |octet: u64| told.iter().any(|(start, end)| (*start..*end).contains(&octet));
            let first_untold = missing.iter().position(|hole| !covered(hole.0) || !covered(hole.1 - 1));
            if let Some(untold) = first_untold {
                let spent: usize = snacks.iter().map(|snack| SNACK_LEN + snack.bits.len()).sum();
                prop_assert!(room - spent < SNACK_LEN, "there is room for hole {}", untold);
            }
        }
    }

    #[test]
    fn what_the_fields_cannot_say_is_left_out() {
        assert_eq!(Snack::with_bits(5000, &[], MSS, 34), None);
        assert_eq!(Snack::with_bits(5000, &[(5000, 6000)], MSS, 34), None, "no hole");
        assert_eq!(Snack::with_bits(5000, &ISLANDS, 0, 34), None);
        let far = 5000 + 70_000 * u64::from(MSS);
        assert_eq!(Snack::with_bits(5000, &[(5000, far), (far + 1000, far + 2000)], MSS, 34), None);
        let large = Snack::with_bits(5000, &[(far, far + 1000)], MSS, 34).unwrap();
        assert_eq!((large.hole1_offset, large.hole1_size), (0, u16::MAX));
    }
}
