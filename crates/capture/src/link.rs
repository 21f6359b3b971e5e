//! The IP packet in a record, behind any link layer and any tunnel.

use etherparse::{
    EtherType, IpAuthHeaderSlice, IpNumber, Ipv6FragmentHeaderSlice, Ipv6RawExtHeaderSlice, LaxNetSlice, LaxSlicedPacket,
};
use pcap_parser::Linktype;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Headers of tunnels that are taken off, one inside the other.
const MAX_DEPTH: usize = 8;

/// Linux cooked capture, version 2, and others that the parser of files has no name for (tcpdump.org/linktypes.html).
const NULL: i32 = 0;
const ETHERNET: i32 = 1;
const PPP: i32 = 9;
/// Raw IP as OpenBSD, and as most others have it.
const RAW_OLD: [i32; 2] = [12, 14];
const RAW: i32 = 101;
const IEEE802_11: i32 = 105;
const LOOP: i32 = 108;
const LINUX_SLL: i32 = 113;
const RADIOTAP: i32 = 127;
const IPV4: i32 = 228;
const IPV6: i32 = 229;
const LINUX_SLL2: i32 = 276;

/// Ports of tunnels over UDP.
const VXLAN: u16 = 4789;
const GTP_U: u16 = 2152;

/// An IP packet, its headers taken apart.
#[derive(Clone, Copy, Debug)]
pub struct Ip<'a> {
    /// Where it was sent.
    pub src: IpAddr,
    /// Where it was to go.
    pub dst: IpAddr,
    /// What it carries, behind any extension headers.
    pub protocol: u8,
    /// Octets that it has as its header says, 0 if that does not say it.
    pub len: usize,
    /// Identification of an IPv4 packet.
    pub id: Option<u16>,
    /// Time to live or hop limit.
    pub hop_limit: u8,
    /// ECN field: 3 is "congestion experienced".
    pub ecn: u8,
    /// It is one of several fragments.
    pub fragmented: bool,
    /// It is a fragment, and not the first.
    pub later_fragment: bool,
    /// What it carries, as far as it was captured.
    pub payload: &'a [u8],
}

/// What a record holds.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The innermost IP packet.
    pub ip: Ip<'a>,
    /// The octets of that packet as far as they were captured.
    pub octets: &'a [u8],
    /// Tunnels around it.
    pub tunnels: usize,
    /// The radio says that the frame was damaged: its frame check sequence is wrong.
    pub bad_frame: bool,
}

/// Why a record holds no IP packet that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// Its link layer is not known here.
    LinkType(i32),
    /// It carries something else.
    NotIp,
    /// Its headers make no sense, or too little of them was captured.
    Malformed,
}

/// Whether packets of that link type can be read.
pub fn is_known(link: Linktype) -> bool {
    let known = [NULL, ETHERNET, PPP, RAW, IEEE802_11, LOOP, LINUX_SLL, RADIOTAP, IPV4, IPV6, LINUX_SLL2];
    known.contains(&link.0) || RAW_OLD.contains(&link.0)
}

/// Finds the innermost IP packet.
pub fn ip_packet(link: Linktype, octets: &[u8]) -> Result<Found<'_>, Other> {
    let mut bad_frame = false;
    let mut payload = match link.0 {
        ETHERNET => ether(EtherType(u16_at(octets, 12)?), &octets[14..])?,
        LINUX_SLL => ether(EtherType(u16_at(octets, 14)?), &octets[16..])?,
        LINUX_SLL2 => ether(EtherType(u16_at(octets, 0)?), octets.get(20..).ok_or(Other::Malformed)?)?,
        // The address family, whose numbers depend on the system that captured.
        NULL | LOOP => octets.get(4..).ok_or(Other::Malformed)?,
        PPP => ppp(octets)?,
        RADIOTAP => {
            let (frame, bad) = radiotap(octets)?;
            bad_frame = bad;
            ieee802_11(frame)?
        }
        IEEE802_11 => ieee802_11(octets)?,
        RAW | IPV4 | IPV6 => octets,
        other if RAW_OLD.contains(&other) => octets,
        other => return Err(Other::LinkType(other)),
    };
    for tunnels in 0..MAX_DEPTH {
        let ip = plain_ipv4(payload).or_else(|| plain_ipv6(payload)).map_or_else(|| any_ip(payload), Ok)?;
        match tunnelled(&ip)? {
            Some(inner) => payload = inner,
            None => return Ok(Found { ip, octets: payload, tunnels, bad_frame }),
        }
    }
    Err(Other::Malformed)
}

/// An IPv4 packet without anything unusual, which most packets are.
fn plain_ipv4(octets: &[u8]) -> Option<Ip<'_>> {
    const MORE_FRAGMENTS_OR_OFFSET: u16 = 0x3FFF;
    let header = octets.first_chunk::<20>()?;
    let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let fragment = u16::from_be_bytes([header[6], header[7]]) & MORE_FRAGMENTS_OR_OFFSET;
    if header[0] != 0x45 || fragment != 0 || len < 20 || header[9] == IpNumber::AUTHENTICATION_HEADER.0 {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]).into();
    Some(Ip {
        src: address(12),
        dst: address(16),
        protocol: header[9],
        len,
        id: Some(u16::from_be_bytes([header[4], header[5]])),
        hop_limit: header[8],
        ecn: header[1] & 3,
        fragmented: false,
        later_fragment: false,
        payload: &octets[20..len.min(octets.len())],
    })
}

/// Any IP packet: options, extension headers, fragments, lengths that are too small.
fn any_ip(octets: &[u8]) -> Result<Ip<'_>, Other> {
    let sliced = LaxSlicedPacket::from_ip(octets).map_err(|_| Other::Malformed)?;
    match sliced.net.ok_or(Other::NotIp)? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            Ok(Ip {
                src: header.source_addr().into(),
                dst: header.destination_addr().into(),
                protocol: ip.payload().ip_number.0,
                len: usize::from(header.total_len()),
                id: Some(header.identification()),
                hop_limit: header.ttl(),
                ecn: header.ecn().value(),
                fragmented: ip.payload().fragmented,
                later_fragment: header.fragments_offset().value() != 0,
                payload: ip.payload().payload,
            })
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let extensions = ip.extensions();
            let fragment = extensions.first_header().and_then(|first| fragment_offset(first, extensions.slice()));
            Ok(Ip {
                src: header.source_addr().into(),
                dst: header.destination_addr().into(),
                protocol: ip.payload().ip_number.0,
                // 0 is that of a jumbogram, or of a segment that the network card was still to part.
                len: Some(usize::from(header.payload_length())).filter(|len| *len > 0).map_or(0, |len| len + 40),
                id: None,
                hop_limit: header.hop_limit(),
                ecn: header.traffic_class() & 3,
                fragmented: ip.payload().fragmented,
                later_fragment: fragment.is_some_and(|offset| offset != 0),
                payload: ip.payload().payload,
            })
        }
        LaxNetSlice::Arp(_) => Err(Other::NotIp),
    }
}

/// The place of a fragment, in units of eight octets, if there is a fragment header among these extension headers.
///
/// The parser's own iterator takes for granted that the header that the last one announces is there, too.
fn fragment_offset(first: IpNumber, mut octets: &[u8]) -> Option<u16> {
    let mut next = first;
    loop {
        let len = match next {
            IpNumber::IPV6_FRAGMENTATION_HEADER => {
                return Some(Ipv6FragmentHeaderSlice::from_slice(octets).ok()?.fragment_offset().value());
            }
            IpNumber::IPV6_HEADER_HOP_BY_HOP | IpNumber::IPV6_ROUTE_HEADER | IpNumber::IPV6_DESTINATION_OPTIONS => {
                let header = Ipv6RawExtHeaderSlice::from_slice(octets).ok()?;
                next = header.next_header();
                header.slice().len()
            }
            IpNumber::AUTHENTICATION_HEADER => {
                let header = IpAuthHeaderSlice::from_slice(octets).ok()?;
                next = header.next_header();
                header.slice().len()
            }
            _ => return None,
        };
        octets = octets.get(len..)?;
    }
}

/// An IPv6 packet that carries TCP or UDP at once.
fn plain_ipv6(octets: &[u8]) -> Option<Ip<'_>> {
    let header = octets.first_chunk::<40>()?;
    let len = usize::from(u16::from_be_bytes([header[4], header[5]])) + 40;
    if header[0] >> 4 != 6 || !matches!(IpNumber(header[6]), IpNumber::TCP | IpNumber::UDP) || len == 40 {
        return None;
    }
    let address = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&header[at..at + 16]).expect("sixteen octets")).into();
    Some(Ip {
        src: address(8),
        dst: address(24),
        protocol: header[6],
        len,
        id: None,
        hop_limit: header[7],
        ecn: header[1] >> 4 & 3,
        fragmented: false,
        later_fragment: false,
        payload: &octets[40..len.min(octets.len())],
    })
}

fn u16_at(octets: &[u8], at: usize) -> Result<u16, Other> {
    octets.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]])).ok_or(Other::Malformed)
}

/// The IP packet behind an Ethernet type: VLAN tags, MPLS labels and `PPPoE` taken off.
fn ether(mut kind: EtherType, mut octets: &[u8]) -> Result<&[u8], Other> {
    const QINQ_OLD: u16 = 0x9100;
    const MPLS: [u16; 2] = [0x8847, 0x8848];
    const PPPOE: u16 = 0x8864;
    const TRANSPARENT_BRIDGING: u16 = 0x6558;
    for _ in 0..MAX_DEPTH {
        match kind {
            EtherType::IPV4 | EtherType::IPV6 => return Ok(octets),
            EtherType::VLAN_TAGGED_FRAME | EtherType::PROVIDER_BRIDGING | EtherType(QINQ_OLD) => {
                kind = EtherType(u16_at(octets, 2)?);
                octets = &octets[4..];
            }
            EtherType(kind) if MPLS.contains(&kind) => return mpls(octets),
            EtherType(PPPOE) => return ppp(octets.get(6..).ok_or(Other::Malformed)?),
            EtherType(TRANSPARENT_BRIDGING) => {
                kind = EtherType(u16_at(octets, 12)?);
                octets = &octets[14..];
            }
            _ => return Err(Other::NotIp),
        }
    }
    Err(Other::Malformed)
}

/// What stands behind the label at the bottom of the stack is told by its first half octet, as routers do it (RFC 3032, 3.6).
fn mpls(mut octets: &[u8]) -> Result<&[u8], Other> {
    for _ in 0..MAX_DEPTH {
        let label = octets.get(..4).ok_or(Other::Malformed)?;
        octets = &octets[4..];
        if label[2] & 1 == 1 {
            return match octets.first().map(|first| first >> 4) {
                Some(4 | 6) => Ok(octets),
                _ => Err(Other::NotIp),
            };
        }
    }
    Err(Other::Malformed)
}

/// PPP with or without its address and control octets, its protocol in one octet or two (RFC 1661).
fn ppp(octets: &[u8]) -> Result<&[u8], Other> {
    let octets = octets.strip_prefix(&[0xFF, 0x03]).unwrap_or(octets);
    match octets {
        [0x00, 0x21 | 0x57, ip @ ..] | [0x21 | 0x57, ip @ ..] => Ok(ip),
        [_, _, ..] => Err(Other::NotIp),
        _ => Err(Other::Malformed),
    }
}

/// The frame behind a radiotap header, without its check sequence, and whether the radio found it damaged (radiotap.org).
fn radiotap(octets: &[u8]) -> Result<(&[u8], bool), Other> {
    const TIMER: u32 = 1 << 0;
    const FLAGS: u32 = 1 << 1;
    const MORE: u32 = 1 << 31;
    const CHECK_SEQUENCE: u8 = 0x10;
    const BAD: u8 = 0x40;
    let len = octets.get(2..4).ok_or(Other::Malformed)?;
    let len = usize::from(u16::from_le_bytes([len[0], len[1]]));
    let word = |n: usize| {
        let four = octets.get(4 + 4 * n..8 + 4 * n).ok_or(Other::Malformed)?;
        Ok(u32::from_le_bytes(four.try_into().expect("four octets")))
    };
    let present = word(0)?;
    let mut words = 1;
    while word(words - 1)? & MORE != 0 {
        words += 1;
    }
    // The timer stands first, on a boundary of eight octets.
    let mut at = 4 + 4 * words;
    if present & TIMER != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if present & FLAGS != 0 && at < len { *octets.get(at).ok_or(Other::Malformed)? } else { 0 };
    let frame = octets.get(len..).ok_or(Other::Malformed)?;
    let check = if flags & CHECK_SEQUENCE != 0 { 4 } else { 0 };
    Ok((&frame[..frame.len().saturating_sub(check)], flags & BAD != 0))
}

/// The IP packet in an unencrypted data frame of IEEE 802.11.
fn ieee802_11(frame: &[u8]) -> Result<&[u8], Other> {
    let control = frame.get(..2).ok_or(Other::Malformed)?;
    let (kind, subtype) = (control[0] >> 2 & 3, control[0] >> 4);
    let (to_and_from, order, protected) = (control[1] & 3 == 3, control[1] & 0x80 != 0, control[1] & 0x40 != 0);
    const DATA: u8 = 2;
    const NO_DATA: u8 = 4;
    const QOS: u8 = 8;
    if kind != DATA || subtype & NO_DATA != 0 || protected {
        return Err(Other::NotIp);
    }
    let mut header = if to_and_from { 30 } else { 24 };
    if subtype & QOS != 0 {
        header += if order { 6 } else { 2 };
    }
    // Logical link control with a sub-network access protocol's header (RFC 1042).
    match frame.get(header..) {
        Some([0xAA, 0xAA, 0x03, _, _, _, rest @ ..]) => ether(EtherType(u16_at(rest, 0)?), &rest[2..]),
        Some([_, _, _, _, _, _, _, ..]) => Err(Other::NotIp),
        _ => Err(Other::Malformed),
    }
}

/// The IP packet in an IP packet, if there is one.
fn tunnelled<'a>(ip: &Ip<'a>) -> Result<Option<&'a [u8]>, Other> {
    if ip.fragmented {
        return Ok(None);
    }
    let octets = ip.payload;
    match IpNumber(ip.protocol) {
        IpNumber::IPV4 | IpNumber::IPV6 => Ok(Some(octets)),
        IpNumber::GRE => gre(octets),
        IpNumber::UDP if octets.len() >= 8 => {
            let (from, to) = (u16_at(octets, 0)?, u16_at(octets, 2)?);
            match to {
                VXLAN => vxlan(&octets[8..]),
                GTP_U => Ok(gtp(&octets[8..])),
                _ if from == GTP_U => Ok(gtp(&octets[8..])),
                _ => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// Generic routing encapsulation (RFC 2784, RFC 2890); other versions carry no IP packets as they are.
fn gre(octets: &[u8]) -> Result<Option<&[u8]>, Other> {
    let flags = u16_at(octets, 0)?;
    if flags & 7 != 0 {
        return Ok(None);
    }
    let optional = [0x8000, 0x2000, 0x1000].into_iter().filter(|bit| flags & bit != 0).count();
    let inner = octets.get(4 + 4 * optional..).ok_or(Other::Malformed)?;
    Ok(ether(EtherType(u16_at(octets, 2)?), inner).ok())
}

/// RFC 7348.
fn vxlan(octets: &[u8]) -> Result<Option<&[u8]>, Other> {
    match octets {
        [flags, _, _, _, _, _, _, _, frame @ ..] if flags & 0x08 != 0 => {
            Ok(ether(EtherType(u16_at(frame, 12)?), &frame[14..]).ok())
        }
        _ => Ok(None),
    }
}

/// A user's packet in the tunnel of a mobile network (3GPP TS 29.281): version 1, with its optional fields and extension headers.
fn gtp(octets: &[u8]) -> Option<&[u8]> {
    const USER_DATA: u8 = 0xFF;
    let [flags, USER_DATA, ..] = octets else { return None };
    if flags >> 5 != 1 || flags & 0x10 == 0 {
        return None;
    }
    let mut inner = octets.get(8..)?;
    if flags & 0x07 != 0 {
        let mut next = *inner.get(3)?;
        inner = &inner[4..];
        let mut left = MAX_DEPTH;
        while flags & 0x04 != 0 && next != 0 {
            left = left.checked_sub(1)?;
            let len = usize::from(*inner.first()?) * 4;
            next = *inner.get(len.checked_sub(1)?)?;
            inner = inner.get(len..)?;
        }
    }
    matches!(inner.first()? >> 4, 4 | 6).then_some(inner)
}
