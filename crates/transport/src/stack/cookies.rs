//! SYN cookies: handshakes that take no memory before their third packet (RFC 4987, 3.6).
//!
//! Our initial sequence number is the cookie: five bits of time, three that stand for the peer's MSS, and 24 of a keyed hash over both, the
//! connection and the peer's initial sequence number. The other options that are agreed upon stand in the low bits of our first
//! timestamp, which the peer echoes; without timestamps there are none (as Linux does).

use super::identity::Identity;
use super::FourTuple;
use crate::segment::{Flags, Options, RareOptions, Segment, Timestamps};
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// The unit of time in a cookie. One of this unit or the one before is taken, so a handshake may last at least this long.
const SLOT: Duration = Duration::from_secs(64);
/// For how long after the last cookie was sent one may come back.
pub(super) const LIFETIME: Duration = Duration::from_secs(2 * 64);
/// What an MSS is rounded down to: the least, what hosts and links of all kinds use, and Ethernet's jumbo frames.
const SIZES: [u16; 8] = [64, 536, 1220, 1300, 1400, 1440, 1460, 8960];
/// Bits of the hash.
const HASH: u32 = 0x00FF_FFFF;

/// Low bits of the timestamp: the window scale, and what else is agreed upon. 15 says that windows are not scaled.
const SCALE: u32 = 0xF;
const SACK: u32 = 1 << 4;
const ECN: u32 = 1 << 5;
const REPORTS: u32 = 1 << 6;
const BITS: u32 = 0x7F;

fn slot(now: Instant) -> u32 {
    (now.as_nanos() / SLOT.as_nanos()) as u32 & 0x1F
}

fn cookie(identity: &Identity, tuple: &FourTuple, peer: Seq, slot: u32, index: u32) -> u32 {
    slot << 27 | index << 24 | identity.proof(tuple, peer, slot << 3 | index) & HASH
}

/// The initial sequence number that answers `syn`.
pub(super) fn bake(identity: &Identity, tuple: &FourTuple, syn: &Segment, now: Instant) -> u32 {
    let mss = syn.options.mss.unwrap_or(SIZES[1]);
    let index = SIZES.partition_point(|&size| size <= mss).saturating_sub(1);
    cookie(identity, tuple, syn.seq, slot(now), index as u32)
}

/// `syn` without what a cookie cannot keep.
pub(super) fn plain(syn: &Segment, timestamps: bool) -> Segment {
    let mut syn = Segment { payload: crate::Payload::Empty, ..syn.clone() };
    if let Some(rare) = &mut syn.options.rare {
        rare.scps = None;
    }
    if !timestamps || syn.options.timestamps.is_none() {
        syn.options = Options { mss: syn.options.mss, ..Options::default() };
        syn.flags = Flags::SYN;
    }
    syn
}

/// Writes what `syn` agrees upon into the timestamp of its answer. The clock goes back if it must, never forth.
pub(super) fn mark(answer: &mut Segment, syn: &Segment) {
    let options = &answer.options;
    let scale = options.window_scale.and(syn.options.window_scale).map_or(SCALE, |scale| u32::from(scale.min(14)));
    let reports = options.rare.as_ref().is_some_and(|rare| rare.reports_permitted);
    let bits = scale
        | if options.sack_permitted { SACK } else { 0 }
        | if answer.flags.contains(Flags::ECE) { ECN } else { 0 }
        | if reports { REPORTS } else { 0 };
    if let Some(timestamps) = &mut answer.options.timestamps {
        let marked = timestamps.value & !BITS | bits;
        timestamps.value = if marked > timestamps.value { marked.wrapping_sub(BITS + 1) } else { marked };
    }
}

/// The SYN that the handshake which `ack` completes must have begun with, and our initial sequence number, if it is one of ours.
pub(super) fn redeem(identity: &Identity, tuple: &FourTuple, ack: &Segment, now: Instant) -> Option<(Segment, u32)> {
    let (peer, ours) = (Seq(ack.seq.0.wrapping_sub(1)), ack.ack.0.wrapping_sub(1));
    let (then, index) = (ours >> 27, ours >> 24 & 7);
    if (slot(now).wrapping_sub(then) & 0x1F) > 1 || cookie(identity, tuple, peer, then, index) != ours {
        return None;
    }
    let mut options = Options { mss: Some(SIZES[index as usize]), ..Options::default() };
    let mut flags = Flags::SYN;
    if let Some(Timestamps { value, echo }) = ack.options.timestamps {
        options.timestamps = Some(Timestamps { value, echo: 0 });
        options.window_scale = Some((echo & SCALE) as u8).filter(|&scale| u32::from(scale) != SCALE);
        options.sack_permitted = echo & SACK != 0;
        if echo & ECN != 0 {
            flags |= Flags::ECE | Flags::CWR;
        }
        if echo & REPORTS != 0 {
            options.rare = Some(Box::new(RareOptions { reports_permitted: true, ..RareOptions::default() }));
        }
    }
    let (src_port, dst_port, window) = (ack.src_port, ack.dst_port, ack.window);
    Some((Segment { src_port, dst_port, seq: peer, flags, window, options, ..Segment::default() }, ours))
}
