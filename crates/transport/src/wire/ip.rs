//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers in front of a transport protocol.
//!
//! Sent headers are plain: no options, no extension headers, "don't fragment". An IPv4 packet that is never fragmented needs no
//! identification (RFC 6864, 4.1), so it is 0.

use super::checksum::Sum;
use super::Error;
use crate::segment::{Dscp, Ecn};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of DCCP (RFC 4340, 19.1).
pub const DCCP: u8 = 33;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
pub(super) const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// Source and destination, of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Addresses {
    /// Two hosts of IPv4 (RFC 791).
    V4 {
        /// The host that sent it.
        src: Ipv4Addr,
        /// The host that it is for.
        dst: Ipv4Addr,
    },
    /// Two hosts of IPv6 (RFC 8200).
    V6 {
        /// The host that sent it.
        src: Ipv6Addr,
        /// The host that it is for.
        dst: Ipv6Addr,
    },
}

impl Addresses {
    /// The pair, if both are of one family.
    pub const fn new(src: IpAddr, dst: IpAddr) -> Option<Self> {
        match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Some(Self::V4 { src, dst }),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Some(Self::V6 { src, dst }),
            _ => None,
        }
    }

    /// The address of the sender.
    pub const fn src(&self) -> IpAddr {
        match *self {
            Self::V4 { src, .. } => IpAddr::V4(src),
            Self::V6 { src, .. } => IpAddr::V6(src),
        }
    }

    /// The address of the destination.
    pub const fn dst(&self) -> IpAddr {
        match *self {
            Self::V4 { dst, .. } => IpAddr::V4(dst),
            Self::V6 { dst, .. } => IpAddr::V6(dst),
        }
    }

    /// The addresses of an answer.
    pub const fn reversed(self) -> Self {
        match self {
            Self::V4 { src, dst } => Self::V4 { src: dst, dst: src },
            Self::V6 { src, dst } => Self::V6 { src: dst, dst: src },
        }
    }

    /// Length in octets of the IP header that [`emit`](super::emit) writes: 20 or 40.
    pub const fn header_len(&self) -> usize {
        match self {
            Self::V4 { .. } => 20,
            Self::V6 { .. } => 40,
        }
    }

    /// The sum over the pseudo-header of a TCP segment of `len` octets (RFC 9293, 3.1; RFC 8200, 8.1).
    pub fn pseudo_header(&self, len: usize) -> Sum {
        self.pseudo_header_of(TCP, len)
    }

    /// The sum over the pseudo-header of `len` octets of another transport protocol.
    pub fn pseudo_header_of(&self, protocol: u8, len: usize) -> Sum {
        let addresses = match self {
            Self::V4 { src, dst } => Sum::default().with(&src.octets()).with(&dst.octets()),
            Self::V6 { src, dst } => Sum::default().with(&src.octets()).with(&dst.octets()),
        };
        addresses.with_u16(u16::from(protocol)).with(&(len as u32).to_be_bytes())
    }
}

/// What an IP header says beside the length and the ECN field, which stand in the [`Segment`](crate::Segment).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source and destination.
    pub addresses: Addresses,
    /// Time to live (IPv4) or hop limit (IPv6).
    pub hop_limit: u8,
}

impl Header {
    /// Appends the header of a packet with `len` octets of `protocol`.
    pub(super) fn write(&self, protocol: u8, dscp: Dscp, ecn: Ecn, len: u16, out: &mut Vec<u8>) {
        let traffic_class = dscp.0 << 2 | ecn as u8;
        match self.addresses {
            Addresses::V4 { src, dst } => {
                let mut header = [0; 20];
                header[0] = 0x45;
                header[1] = traffic_class;
                header[2..4].copy_from_slice(&(len + 20).to_be_bytes());
                header[6] = 0x40;
                header[8] = self.hop_limit;
                header[9] = protocol;
                header[12..16].copy_from_slice(&src.octets());
                header[16..20].copy_from_slice(&dst.octets());
                let checksum = Sum::default().with(&header).finish();
                header[10..12].copy_from_slice(&checksum.to_be_bytes());
                out.extend_from_slice(&header);
            }
            Addresses::V6 { src, dst } => {
                let mut header = [0; 40];
                header[0] = 0x60 | traffic_class >> 4;
                header[1] = traffic_class << 4;
                header[4..6].copy_from_slice(&len.to_be_bytes());
                header[6] = protocol;
                header[7] = self.hop_limit;
                header[8..24].copy_from_slice(&src.octets());
                header[24..40].copy_from_slice(&dst.octets());
                out.extend_from_slice(&header);
            }
        }
    }
}

/// An IP packet with the wanted protocol in it.
pub(super) struct Datagram {
    pub(super) header: Header,
    /// Traffic class, formerly type of service.
    pub(super) traffic_class: u8,
    /// Where the transport header and its data stand.
    pub(super) body: Range<usize>,
}

/// Reads the headers up to `protocol`. Octets behind the packet's own length (link padding) are left out.
pub(super) fn read(octets: &[u8], protocol: u8) -> Result<Datagram, Error> {
    match octets.first().map(|first| first >> 4) {
        None => Err(Error::Truncated { needed: 20, found: 0 }),
        Some(4) => read_v4(octets, protocol),
        Some(6) => read_v6(octets, protocol),
        Some(version) => Err(Error::Version(version)),
    }
}

fn read_v4(octets: &[u8], protocol: u8) -> Result<Datagram, Error> {
    let found = octets.len();
    let header: &[u8; 20] = octets.first_chunk().ok_or(Error::Truncated { needed: 20, found })?;
    let header_len = usize::from(header[0] & 0x0F) * 4;
    if header_len < 20 {
        return Err(Error::HeaderLength(header_len));
    }
    let whole_header = octets.get(..header_len).ok_or(Error::Truncated { needed: header_len, found })?;
    if Sum::default().with(whole_header).finish() != 0 {
        return Err(Error::IpChecksum);
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if total < header_len {
        return Err(Error::TotalLength { total, header: header_len });
    }
    if total > found {
        return Err(Error::Truncated { needed: total, found });
    }
    // More fragments, or an offset that is not 0.
    if u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0 {
        return Err(Error::Fragment);
    }
    if header[9] != protocol {
        return Err(Error::Protocol(header[9]));
    }
    let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    Ok(Datagram {
        header: Header { addresses: Addresses::V4 { src: address(12), dst: address(16) }, hop_limit: header[8] },
        traffic_class: header[1],
        body: header_len..total,
    })
}

fn read_v6(octets: &[u8], protocol: u8) -> Result<Datagram, Error> {
    let found = octets.len();
    let header: &[u8; 40] = octets.first_chunk().ok_or(Error::Truncated { needed: 40, found })?;
    let total = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let packet = octets.get(..total).ok_or(Error::Truncated { needed: total, found })?;
    let address = |at: usize| {
        let mut address = [0; 16];
        address.copy_from_slice(&header[at..at + 16]);
        Ipv6Addr::from(address)
    };
    Ok(Datagram {
        header: Header { addresses: Addresses::V6 { src: address(8), dst: address(24) }, hop_limit: header[7] },
        traffic_class: header[0] << 4 | header[1] >> 4,
        body: skip_extensions(packet, header[6], protocol)?..total,
    })
}

/// Where `protocol` begins in an IPv6 packet whose first next-header field is `next`.
pub(super) fn skip_extensions(packet: &[u8], mut next: u8, protocol: u8) -> Result<usize, Error> {
    let mut at = 40;
    while next != protocol {
        // RFC 8200, 4.3: hop-by-hop options stand first or not at all.
        if !matches!(next, ROUTING | FRAGMENT | DESTINATION_OPTIONS) && (next != HOP_BY_HOP || at != 40) {
            return Err(Error::Protocol(next));
        }
        let truncated = |needed| Error::Truncated { needed, found: packet.len() };
        let head: &[u8; 4] = packet.get(at..).and_then(<[u8]>::first_chunk).ok_or(truncated(at + 8))?;
        let len = if next == FRAGMENT { 8 } else { 8 * (1 + usize::from(head[1])) };
        match next {
            // The pseudo-header takes the final destination; here it is only known when nothing is left to visit.
            ROUTING if head[3] != 0 => return Err(Error::Routing(head[3])),
            // RFC 6946: a fragment that is the whole packet is processed as if it were none.
            FRAGMENT if u16::from_be_bytes([head[2], head[3]]) & 0xFFF9 != 0 => return Err(Error::Fragment),
            _ => {}
        }
        at += len;
        next = head[0];
        if at > packet.len() {
            return Err(truncated(at));
        }
    }
    Ok(at)
}

/// The ECN field in the two low bits of a traffic class.
pub(super) const fn ecn(traffic_class: u8) -> Ecn {
    match traffic_class & 0b11 {
        0b00 => Ecn::NotCapable,
        0b01 => Ecn::Capable1,
        0b10 => Ecn::Capable0,
        _ => Ecn::CongestionExperienced,
    }
}
