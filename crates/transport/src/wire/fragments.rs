//! Putting fragments of IP packets together (RFC 791, 3.2; RFC 8200, 4.5).
//!
//! We never send fragments, and hardly anybody sends them to us: a path that is narrower than its ends know, and a sender without path MTU
//! discovery. So there is room for few, and what is odd is refused.

use super::ip::{self, Addresses};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is not complete after this long is dropped (RFC 1122, 3.3.2 and RFC 8200, 4.5 want at most a minute; Linux takes half of one).
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Fragments of one packet: those of the largest packet on the narrowest links are fewer.
pub const MAX_FRAGMENTS: usize = 128;
/// Incomplete packets of one sender. A further one takes the place of its oldest.
pub const MAX_BY_SENDER: usize = 16;
/// Incomplete packets in all, each of at most 64 KiB. A further one takes the place of the oldest.
pub const MAX_PACKETS: usize = 64;

/// The longest packet behind its first header: what its length field can say.
const LONGEST: usize = u16::MAX as usize;

/// What fragments of one packet have in common (RFC 791; RFC 8200, where the protocol does not count).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    addresses: Addresses,
    protocol: u8,
    identification: u32,
}

/// One fragment with what its IP header says of it.
#[derive(Debug)]
struct Fragment<'a> {
    name: Name,
    traffic_class: u8,
    hop_limit: u8,
    /// What the data is, as this fragment says; the first one counts.
    protocol: u8,
    /// Where its data stands in the packet, in octets.
    start: usize,
    more: bool,
    data: &'a [u8],
}

/// A packet of which something is missing.
#[derive(Debug)]
struct Partial {
    since: Instant,
    /// Came so many packets after the first; orders those of one instant.
    order: u64,
    /// The ranges that are there, ascending, each a fragment.
    ranges: Vec<(usize, usize)>,
    data: Vec<u8>,
    /// Where it ends, once the last fragment is there.
    end: Option<usize>,
    /// Traffic class, hop limit and protocol of the first fragment, once it is there.
    first: Option<(u8, u8, u8)>,
    congestion_experienced: bool,
    /// Fragments of it make no sense together: whatever else comes of it is dropped too (RFC 8200, 4.5; RFC 5722).
    refused: bool,
}

/// Counters. Packets, but for the fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentStats {
    /// Fragments that were taken, of whole packets or not.
    pub fragments: u64,
    /// Packets put together.
    pub complete: u64,
    /// Refused since their fragments overlapped, were too many, or contradicted each other.
    pub refused: u64,
    /// Dropped because they took too long, or to make room.
    pub dropped: u64,
}

/// The incomplete packets of a host.
#[derive(Debug, Default)]
pub struct Reassembler {
    packets: BTreeMap<Name, Partial>,
    taken: u64,
    stats: FragmentStats,
}

impl Reassembler {
    /// What was counted since it was made.
    pub const fn stats(&self) -> &FragmentStats {
        &self.stats
    }

    /// Incomplete packets, and octets held of them.
    pub fn held(&self) -> (usize, usize) {
        (self.packets.len(), self.packets.values().map(|packet| packet.data.capacity()).sum())
    }

    /// Takes a fragment to one of `ours`; gives the packet if that completes it, without options and extension headers.
    pub fn take(&mut self, now: Instant, octets: &[u8], ours: &[IpAddr]) -> Option<Bytes> {
        let fragment = read(octets).filter(|fragment| ours.contains(&fragment.name.addresses.dst()))?;
        self.expire(now);
        self.stats.fragments += 1;
        self.taken += 1;
        if !self.packets.contains_key(&fragment.name) {
            self.make_room(fragment.name.addresses.src());
        }
        let order = self.taken;
        let packet = self.packets.entry(fragment.name).or_insert_with(|| Partial::new(now, order));
        if packet.refused {
            return None;
        }
        if !packet.add(&fragment) {
            *packet = Partial { since: packet.since, order: packet.order, refused: true, ..Partial::new(now, 0) };
            self.stats.refused += 1;
            return None;
        }
        let whole = packet.finish(fragment.name.addresses)?;
        self.packets.remove(&fragment.name);
        self.stats.complete += 1;
        Some(whole)
    }

    fn expire(&mut self, now: Instant) {
        let stats = &mut self.stats;
        self.packets.retain(|_, packet| {
            let keep = now.since(packet.since) < TIMEOUT;
            stats.dropped += u64::from(!keep && !packet.refused);
            keep
        });
    }

    /// Drops the oldest packet of `sender`, or of all, if there are too many for one more.
    fn make_room(&mut self, sender: IpAddr) {
        let oldest = |of: &dyn Fn(&Name) -> bool| {
            let mut count = 0;
            let candidates = self.packets.iter().filter(|(name, _)| of(name)).inspect(|_| count += 1);
            let oldest = candidates.min_by_key(|(_, packet)| packet.order).map(|(name, _)| *name);
            (count, oldest)
        };
        let (own, own_oldest) = oldest(&|name| name.addresses.src() == sender);
        let (all, all_oldest) = oldest(&|_| true);
        let victim = if own >= MAX_BY_SENDER { own_oldest } else { all_oldest.filter(|_| all >= MAX_PACKETS) };
        if let Some(dropped) = victim.and_then(|name| self.packets.remove(&name)) {
            self.stats.dropped += u64::from(!dropped.refused);
        }
    }
}

impl Partial {
    fn new(since: Instant, order: u64) -> Self {
        Self {
            since,
            order,
            ranges: Vec::new(),
            data: Vec::new(),
            end: None,
            first: None,
            congestion_experienced: false,
            refused: false,
        }
    }

    /// Takes the fragment; whether it makes sense beside the others.
    fn add(&mut self, fragment: &Fragment<'_>) -> bool {
        let (start, end) = (fragment.start, fragment.start + fragment.data.len());
        let at = self.ranges.partition_point(|range| range.0 < start);
        if self.ranges.get(at) == Some(&(start, end)) && self.data[start..end] == *fragment.data {
            return true; // the network has made two of one (RFC 8200, 4.5)
        }
        let overlaps = self.ranges.get(at).is_some_and(|next| next.0 < end) || at > 0 && self.ranges[at - 1].1 > start;
        let beyond = match self.end {
            Some(known) => end > known || !fragment.more && end != known,
            None => !fragment.more && self.ranges.last().is_some_and(|last| last.1 > end),
        };
        let odd = fragment.more && (fragment.data.len() % 8 != 0 || fragment.data.is_empty());
        if overlaps || beyond || odd || end > LONGEST || self.ranges.len() >= MAX_FRAGMENTS {
            return false;
        }
        self.ranges.insert(at, (start, end));
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
        self.data[start..end].copy_from_slice(fragment.data);
        self.congestion_experienced |= fragment.traffic_class & 3 == 3;
        if !fragment.more {
            self.end = Some(end);
        }
        if start == 0 {
            self.first = Some((fragment.traffic_class, fragment.hop_limit, fragment.protocol));
        }
        true
    }

    /// The packet, if nothing is missing.
    fn finish(&self, addresses: Addresses) -> Option<Bytes> {
        let (traffic_class, hop_limit, protocol) = self.first?;
        let held: usize = self.ranges.iter().map(|(start, end)| end - start).sum();
        let length = self.end.filter(|&end| held == end)?;
        let total = if matches!(addresses, Addresses::V4 { .. }) { length + addresses.header_len() } else { length };
        if total > LONGEST {
            return None;
        }
        // RFC 3168, 5.3: a mark on any of them is a mark on the whole.
        let marked = if self.congestion_experienced && traffic_class & 3 != 0 { traffic_class | 3 } else { traffic_class };
        let mut out = Vec::with_capacity(addresses.header_len() + length);
        let header = ip::Header { addresses, hop_limit };
        header.write(protocol, crate::segment::Dscp(marked >> 2), ip::ecn(marked), length as u16, &mut out);
        out.extend_from_slice(&self.data);
        Some(out.into())
    }
}

/// Reads a fragment whose IP header holds.
fn read(octets: &[u8]) -> Option<Fragment<'_>> {
    match octets.first()? >> 4 {
        4 => read_v4(octets),
        6 => read_v6(octets),
        _ => None,
    }
}

fn read_v4(octets: &[u8]) -> Option<Fragment<'_>> {
    let header: &[u8; 20] = octets.first_chunk()?;
    let header_len = usize::from(header[0] & 0xF) * 4;
    let whole_header = octets.get(..header_len).filter(|header| header.len() >= 20)?;
    if super::checksum::Sum::default().with(whole_header).finish() != 0 {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let place = u16::from_be_bytes([header[6], header[7]]);
    let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    let addresses = Addresses::V4 { src: address(12), dst: address(16) };
    let identification = u32::from(u16::from_be_bytes([header[4], header[5]]));
    (place & 0x3FFF != 0).then_some(Fragment {
        name: Name { addresses, protocol: header[9], identification },
        traffic_class: header[1],
        hop_limit: header[8],
        protocol: header[9],
        start: usize::from(place & 0x1FFF) * 8,
        more: place & 0x2000 != 0,
        data: octets.get(header_len..total)?,
    })
}

fn read_v6(octets: &[u8]) -> Option<Fragment<'_>> {
    let header: &[u8; 40] = octets.first_chunk()?;
    let packet = octets.get(..40 + usize::from(u16::from_be_bytes([header[4], header[5]])))?;
    let at = ip::skip_extensions(packet, header[6], ip::FRAGMENT).ok()?;
    let own: &[u8; 8] = packet.get(at..)?.first_chunk()?;
    let place = u16::from_be_bytes([own[2], own[3]]);
    let address = |at: usize| header[at..].first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets));
    let addresses = Addresses::V6 { src: address(8)?, dst: address(24)? };
    (place & 0xFFF9 != 0).then_some(Fragment {
        name: Name { addresses, protocol: 0, identification: u32::from_be_bytes([own[4], own[5], own[6], own[7]]) },
        traffic_class: header[0] << 4 | header[1] >> 4,
        hop_limit: header[7],
        protocol: own[0],
        start: usize::from(place & 0xFFF8),
        more: place & 1 != 0,
        data: &packet[at + 8..],
    })
}

#[cfg(test)]
mod tests {
    use super::super::{emit, parse};
    use super::*;
    use crate::segment::{Flags, Payload, Segment};
    use crate::wire::checksum::Sum;

    const V4: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
    const V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];

    fn addresses([src, dst]: [&str; 2]) -> Addresses {
        Addresses::new(src.parse().unwrap(), dst.parse().unwrap()).unwrap()
    }

    fn segment(len: u32) -> Segment {
        let payload = Payload::Bytes(Payload::Synthetic { offset: 3, len }.to_bytes());
        Segment { src_port: 1, dst_port: 2, flags: Flags::ACK, payload, ..Segment::default() }
    }

    /// The IP packet that carries `segment`.
    fn packet(pair: [&str; 2], segment: &Segment) -> Vec<u8> {
        let mut out = Vec::new();
        emit(&ip::Header { addresses: addresses(pair), hop_limit: 9 }, segment, &mut out).unwrap();
        out
    }

    /// The fragment of `whole` with the octets `range` behind its IP header.
    fn fragment(whole: &[u8], identification: u16, range: std::ops::Range<usize>, more: bool) -> Vec<u8> {
        let v4 = whole[0] >> 4 == 4;
        let header = if v4 { 20 } else { 40 };
        let data = &whole[header..][range.clone()];
        let mut out = whole[..header].to_vec();
        if v4 {
            out[2..4].copy_from_slice(&(20 + data.len() as u16).to_be_bytes());
            out[4..6].copy_from_slice(&identification.to_be_bytes());
            out[6..8].copy_from_slice(&((range.start as u16 / 8) | (u16::from(more) << 13)).to_be_bytes());
            out[10..12].fill(0);
            let sum = Sum::default().with(&out).finish();
            out[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            out[4..6].copy_from_slice(&(8 + data.len() as u16).to_be_bytes());
            out[6] = ip::FRAGMENT;
            out.extend([ip::TCP, 0]);
            out.extend((range.start as u16 | u16::from(more)).to_be_bytes());
            out.extend(u32::from(identification).to_be_bytes());
        }
        out.extend(data);
        out
    }

    /// All fragments of a packet in pieces of `size` octets.
    fn cut(whole: &[u8], identification: u16, size: usize) -> Vec<Vec<u8>> {
        let length = whole.len() - if whole[0] >> 4 == 4 { 20 } else { 40 };
        let starts = (0..length).step_by(size);
        starts.map(|at| fragment(whole, identification, at..length.min(at + size), at + size < length)).collect()
    }

    fn take(reassembler: &mut Reassembler, at: u64, octets: &[u8]) -> Option<Bytes> {
        let ours: [IpAddr; 2] = [V4[1].parse().unwrap(), V6[1].parse().unwrap()];
        reassembler.take(Instant::ZERO + Duration::from_secs(at), octets, &ours)
    }

    #[test]
    fn fragments_in_any_order_give_the_packet() {
        for pair in [V4, V6] {
            let sent = segment(4000);
            let whole = packet(pair, &sent);
            for size in [8, 40, 1480, 4000] {
                for turn in 0..3 {
                    let mut reassembler = Reassembler::default();
                    let mut pieces = cut(&whole, 7, size);
                    if pieces.len() > MAX_FRAGMENTS {
                        continue;
                    }
                    let first = turn % pieces.len();
                    pieces.rotate_left(first);
                    pieces.insert(1, pieces[0].clone());
                    let found: Vec<_> = pieces.iter().filter_map(|piece| take(&mut reassembler, 0, piece)).collect();
                    assert_eq!(found.len(), 1, "{size}");
                    assert_eq!(parse(&found[0]).unwrap().segment, sent);
                    assert_eq!(reassembler.held(), (0, 0));
                }
            }
        }
    }

    /// RFC 5722.
    #[test]
    fn a_packet_whose_fragments_overlap_is_dropped_with_all_that_follows() {
        for pair in [V4, V6] {
            let whole = packet(pair, &segment(3000));
            let end = 3020;
            let fragments = [
                vec![(0..1000, true), (992..2000, true)],
                vec![(0..1000, true), (0..504, true)],
                vec![(1000..2000, true), (504..2504, true)],
                vec![(2000..end, false), (1000..2008, true)],
                vec![(2000..3008, true), (1000..2000, false)],
                vec![(2000..end, false), (1000..2000, false)],
                vec![(0..1001, true)],
                vec![(0..0, true)],
            ];
            for ranges in fragments {
                let mut reassembler = Reassembler::default();
                for (range, more) in &ranges {
                    assert_eq!(take(&mut reassembler, 0, &fragment(&whole, 7, range.clone(), *more)), None);
                }
                assert_eq!((reassembler.stats().refused, reassembler.held()), (1, (1, 0)), "{ranges:?}");
                for piece in cut(&whole, 7, 1000) {
                    assert_eq!(take(&mut reassembler, 0, &piece), None, "{ranges:?}");
                }
                // Another packet is another matter, and in time this one may come again.
                let again = |reassembler: &mut Reassembler, id, at| {
                    cut(&whole, id, 1000).iter().filter_map(|piece| take(reassembler, at, piece)).count()
                };
                assert_eq!((again(&mut reassembler, 8, 1), again(&mut reassembler, 7, 31)), (1, 1));
            }
        }
    }

    #[test]
    fn an_incomplete_packet_is_dropped_in_time() {
        let whole = packet(V4, &segment(3000));
        let pieces = cut(&whole, 7, 1000);
        let mut reassembler = Reassembler::default();
        assert_eq!(take(&mut reassembler, 0, &pieces[0]), None);
        assert_eq!(take(&mut reassembler, 29, &pieces[1]), None);
        for piece in &pieces[2..] {
            assert_eq!(take(&mut reassembler, 30, piece), None);
        }
        assert_eq!(reassembler.stats().dropped, 1);
    }

    #[test]
    fn a_flood_of_fragments_holds_no_more_than_it_may() {
        let mut reassembler = Reassembler::default();
        let whole = packet(V4, &segment(60_000));
        for number in 0..20_000u32 {
            // The last octets of a packet of 64 KiB claim all of its room.
            let mut piece = fragment(&whole, number as u16, 59_992..60_000, true);
            if number >= 10_000 {
                piece[12..16].copy_from_slice(&(0x0A00_0000 | number).to_be_bytes());
            }
            piece[10..12].fill(0);
            let sum = Sum::default().with(&piece[..20]).finish();
            piece[10..12].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(take(&mut reassembler, 0, &piece), None);
            let (packets, octets) = reassembler.held();
            assert!(packets <= if number < 10_000 { MAX_BY_SENDER } else { MAX_PACKETS }, "{packets}");
            assert!(octets <= packets << 16, "{octets}");
        }
        assert_eq!(reassembler.held().0, MAX_PACKETS);
        // And somebody honest gets through.
        let sent = segment(3000);
        let honest = packet(V6, &sent);
        let found = cut(&honest, 1, 1000).iter().find_map(|piece| take(&mut reassembler, 0, piece)).unwrap();
        assert_eq!(parse(&found).unwrap().segment, sent);
    }

    #[test]
    fn too_many_fragments_are_refused() {
        let whole = packet(V6, &segment(8 * (MAX_FRAGMENTS as u32 + 1)));
        let mut reassembler = Reassembler::default();
        assert!(cut(&whole, 1, 8).iter().all(|piece| take(&mut reassembler, 0, piece).is_none()));
        assert_eq!(reassembler.stats().refused, 1);
    }

    #[test]
    fn what_is_longer_than_a_packet_can_be_is_refused() {
        let whole = packet(V6, &segment(3000));
        let mut piece = fragment(&whole, 1, 0..1000, false);
        piece[42..44].copy_from_slice(&0xFFF8u16.to_be_bytes());
        let mut reassembler = Reassembler::default();
        assert_eq!(take(&mut reassembler, 0, &piece), None);
        assert_eq!(reassembler.stats().refused, 1);
    }

    #[test]
    fn fragments_for_others_truncated_and_whole_packets_are_left_alone() {
        for pair in [V4, V6] {
            let whole = packet(pair, &segment(3000));
            let piece = fragment(&whole, 1, 0..1000, true);
            let mut reassembler = Reassembler::default();
            for end in 0..piece.len() {
                assert_eq!(take(&mut reassembler, 0, &piece[..end]), None);
            }
            assert_eq!(take(&mut reassembler, 0, &whole), None);
            assert_eq!(reassembler.take(Instant::ZERO, &piece, &[]), None);
            assert_eq!(reassembler.held(), (0, 0), "nothing was taken");
        }
    }
}
