//! What a receiver knows of its path, and the events that it tells its parts.
//!
//! As the parts of a sender see the structs of [`path`](crate::path), those of a receiver see these. Positions are 64-bit stream positions (see
//! [`seq`](crate::seq)), lengths are octets.

use crate::segment::{Integrity, Segment};
use crate::time::{Duration, Instant};

/// The state of reassembly.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReceiveView<'a> {
    /// When the segment arrived.
    pub now: Instant,
    /// Position of the first octet of the stream.
    pub first: u64,
    /// `RCV.NXT`, as a position in the stream.
    pub next: u64,
    /// Right edge of the receive window.
    pub window_end: u64,
    /// Ranges received out of order, ascending, disjoint: `[start, end)`.
    pub islands: &'a [(u64, u64)],
    /// Payload of a full segment as seen so far, in octets; 0 before the first.
    pub full_segment: u32,
    /// Whether loss reports were negotiated.
    pub reports_negotiated: bool,
    /// Octets of a block in selective negative acknowledgements; `None` if these were not negotiated.
    pub snack_block: Option<u32>,
    /// Position of the first octet behind the stream, once the peer's FIN has come.
    pub end: Option<u64>,
    /// Smoothed round-trip time of what this side has sent, the handshake included.
    pub srtt: Option<Duration>,
}

impl ReceiveView<'_> {
    /// A receiver that has everything up to `next`, its first octet, and takes reports. Set what it has.
    pub const fn new(now: Instant, next: u64) -> Self {
        Self {
            now,
            first: next,
            next,
            window_end: next,
            islands: &[],
            full_segment: 0,
            reports_negotiated: true,
            snack_block: None,
            end: None,
            srtt: None,
        }
    }

    /// Whether all of `[start, end)` has come.
    pub fn has(&self, start: u64, end: u64) -> bool {
        let start = start.max(self.next);
        let beyond = self.islands.partition_point(|island| island.0 <= start);
        start >= end || beyond > 0 && self.islands[beyond - 1].1 >= end
    }

    /// The hole that `position` lies in, between what has come: `[start, end)`. `None` if it has come, or lies beyond everything that has.
    pub fn hole(&self, position: u64) -> Option<(u64, u64)> {
        let beyond = self.islands.partition_point(|(_, end)| *end <= position);
        let start = if beyond == 0 { self.next } else { self.islands[beyond - 1].1 };
        let end = self.islands.get(beyond)?.0;
        (start..end).contains(&position).then_some((start, end))
    }
}

/// What a host can know of the link that it stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkHint {
    /// It is up and will go down at this time, as far as can be foreseen: a hand-off, a tunnel. Takes the place of what was foreseen before.
    GoesDown(Instant),
    /// It is back, or it did not go down after all; nothing is foreseen.
    Up,
}

/// An intact segment with data.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Arrival<'a> {
    /// Reassembly after the segment.
    pub view: ReceiveView<'a>,
    /// Position of its first octet.
    pub start: u64,
    /// Octets of data.
    pub len: u32,
    /// Whether nothing of it was new.
    pub duplicate: bool,
    /// Time since the previous arrival of data; `None` for the first.
    pub spacing: Option<Duration>,
    /// How much longer it was under way than an earlier one, in nanoseconds: the relative one-way trip time, as exact as the sender's
    /// timestamps tick ([`OneWay`](crate::estimate::OneWay)). The clocks need not agree. `None` without timestamps and until it is known how
    /// long the ticks are.
    pub trip: Option<i64>,
    /// The gap that it showed: segments missing before it that are not known to be missing from earlier arrivals.
    pub gap: Option<Gap>,
    /// The segment as it was parsed.
    pub segment: &'a Segment,
}

impl<'a> Arrival<'a> {
    /// The first arrival of `len` octets from `start` on, of which nothing else is known.
    pub const fn new(view: ReceiveView<'a>, segment: &'a Segment, start: u64, len: u32) -> Self {
        Self { view, start, len, duplicate: false, spacing: None, trip: None, gap: None, segment }
    }
}

/// A segment with a broken TCP checksum under an intact IP header whose addresses and ports match the connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Damaged<'a> {
    /// Reassembly; a damaged segment does not change it.
    pub view: ReceiveView<'a>,
    /// What could be read. Trust only what is confirmed independently.
    pub segment: &'a Segment,
    /// What is known of the header.
    pub integrity: Integrity,
}

impl<'a> Damaged<'a> {
    /// A damaged segment as it was read, and how far what was read can be trusted.
    pub const fn new(view: ReceiveView<'a>, segment: &'a Segment, integrity: Integrity) -> Self {
        Self { view, segment, integrity }
    }
}

/// Segments missing between the highest position that had arrived and a segment beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// Position of the first missing octet.
    pub start: u64,
    /// Position of the first octet of the segment that showed the gap.
    pub end: u64,
    /// Number of full segments that fit into it, rounded up: what the literature calls n.
    pub missing: u32,
}

impl Gap {
    /// `missing` segments between `start` and `end`.
    pub const fn new(start: u64, end: u64, missing: u32) -> Self {
        Self { start, end, missing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_lies_between_what_has_come() {
        let view = ReceiveView { islands: &[(20, 30), (40, 50)], ..ReceiveView::new(Instant::ZERO, 10) };
        let holes = [
            (9, None),
            (10, Some((10, 20))),
            (19, Some((10, 20))),
            (20, None),
            (29, None),
            (30, Some((30, 40))),
            (49, None),
            (50, None),
        ];
        for (position, hole) in holes {
            assert_eq!(view.hole(position), hole, "{position}");
        }
        assert_eq!(ReceiveView::new(Instant::ZERO, 10).hole(10), None, "nothing has come beyond it");
    }
}
