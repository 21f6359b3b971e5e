//! The IP packet in a record, behind any link layer and any tunnel.

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket};
use pcap_parser::Linktype;

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

/// What a record holds.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    /// The innermost IP packet, with its headers taken apart.
    pub ip: LaxNetSlice<'a>,
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
        let sliced = LaxSlicedPacket::from_ip(payload).map_err(|_| Other::Malformed)?;
        let ip = sliced.net.ok_or(Other::NotIp)?;
        match tunnelled(&ip)? {
            Some(inner) => payload = inner,
            None => return Ok(Found { ip, octets: payload, tunnels, bad_frame }),
        }
    }
    Err(Other::Malformed)
}

fn u16_at(octets: &[u8], at: usize) -> Result<u16, Other> {
    octets.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]])).ok_or(Other::Malformed)
}

/// The IP packet behind an Ethernet type: VLAN tags, MPLS labels and PPPoE taken off.
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
fn tunnelled<'a>(ip: &LaxNetSlice<'a>) -> Result<Option<&'a [u8]>, Other> {
    const IP_IN_IP: u8 = 4;
    const UDP: u8 = 17;
    const IPV6: u8 = 41;
    const GRE: u8 = 47;
    let payload = match ip {
        LaxNetSlice::Ipv4(ip) => ip.payload(),
        LaxNetSlice::Ipv6(ip) => ip.payload(),
        LaxNetSlice::Arp(_) => return Err(Other::NotIp),
    };
    if payload.fragmented {
        return Ok(None);
    }
    let octets = payload.payload;
    match payload.ip_number.0 {
        IP_IN_IP | IPV6 => Ok(Some(octets)),
        GRE => gre(octets),
        UDP if octets.len() >= 8 => {
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
