//! What a router says of a packet of ours that does not fit its next link: ICMP *fragmentation needed* (RFC 792; RFC 1191, 4) and, for IPv6,
//! *packet too big* (RFC 4443, 3.2).
//!
//! Anybody can send such a message. What it quotes is for the connection to check (RFC 5927).

use super::checksum::Sum;
use super::ip::{self, Addresses};
use crate::seq::Seq;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Protocol number of ICMP.
pub const V4: u8 = 1;
/// Protocol number of ICMP for IPv6.
pub const V6: u8 = 58;

/// Octets of an ICMP message before what it quotes.
const HEAD: usize = 8;
/// Octets of the quoted TCP header that are needed: ports and sequence number. Routers are asked for no more (RFC 792).
const QUOTED: usize = 8;

/// "A packet of yours is too big for the next link."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// Of the packet that is quoted: from us to the peer.
    pub addresses: Addresses,
    /// Its source port, ours.
    pub src_port: u16,
    /// Its destination port, the peer's.
    pub dst_port: u16,
    /// Its TCP sequence number.
    pub seq: Seq,
    /// The largest packet that the link takes, IP header included, in octets; `None` if the router does not say (as before RFC 1191). More
    /// than a packet can have counts as the most that it can have.
    pub mtu: Option<u16>,
}

/// Reads `packet` as an intact, unfragmented message about a TCP segment that its receiver has sent. Anything else is `None`.
pub fn too_big(packet: &[u8]) -> Option<TooBig> {
    const UNREACHABLE: u8 = 3;
    const FRAGMENTATION_NEEDED: u8 = 4;
    const PACKET_TOO_BIG: u8 = 2;
    let protocol = if packet.first()? >> 4 == 4 { V4 } else { V6 };
    let ip::Datagram { header, body, .. } = ip::read(packet, protocol).ok()?;
    let message = &packet[body];
    let before = if protocol == V4 { Sum::default() } else { header.addresses.pseudo_header_of(V6, message.len()) };
    let head: &[u8; HEAD] = message.first_chunk()?;
    if before.with(message).finish() != 0 {
        return None;
    }
    let quoted = &message[HEAD..];
    let (mtu, (addresses, segment)) = match (protocol, head[0], head[1]) {
        (V4, UNREACHABLE, FRAGMENTATION_NEEDED) => (u32::from(u16::from_be_bytes([head[6], head[7]])), quoted_v4(quoted)?),
        (V6, PACKET_TOO_BIG, _) => (u32::from_be_bytes([head[4], head[5], head[6], head[7]]), quoted_v6(quoted)?),
        _ => return None,
    };
    if header.addresses.dst() != addresses.src() {
        return None;
    }
    Some(TooBig {
        addresses,
        src_port: u16::from_be_bytes([segment[0], segment[1]]),
        dst_port: u16::from_be_bytes([segment[2], segment[3]]),
        seq: Seq(u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]])),
        mtu: (mtu > 0).then(|| u16::try_from(mtu).unwrap_or(u16::MAX)),
    })
}

/// The addresses of the first part of an IPv4 packet with TCP, and the beginning of its segment. Its header checksum is not asked: routers change
/// the header on the way.
fn quoted_v4(quoted: &[u8]) -> Option<(Addresses, [u8; QUOTED])> {
    let header: &[u8; 20] = quoted.first_chunk()?;
    let header_len = usize::from(header[0] & 0xF) * 4;
    let is_first = u16::from_be_bytes([header[6], header[7]]) << 3 == 0;
    if header[0] >> 4 != 4 || header_len < 20 || !is_first || header[9] != ip::TCP {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    let segment = *quoted.get(header_len..)?.first_chunk()?;
    Some((Addresses::V4 { src: address(12), dst: address(16) }, segment))
}

/// The same of IPv6. We send no extension headers.
fn quoted_v6(quoted: &[u8]) -> Option<(Addresses, [u8; QUOTED])> {
    let (header, segment): (&[u8; 40], _) = quoted.split_first_chunk()?;
    if header[0] >> 4 != 6 || header[6] != ip::TCP {
        return None;
    }
    let address = |at: usize| header[at..].first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets));
    Some((Addresses::V6 { src: address(8)?, dst: address(24)? }, *segment.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Dscp, Ecn, Payload, Segment};
    use crate::wire::emit;

    const PAIRS: [[&str; 3]; 2] =
        [["192.0.2.1", "192.0.2.9", "198.51.100.1"], ["2001:db8::1", "2001:db8::9", "2001:db8:ffff::1"]];

    /// What `router` says of a packet of 1500 octets from `ours` to `peer`: the message, and what is to be read in it.
    fn message([ours, peer, router]: [&str; 3], mtu: u32) -> (Vec<u8>, TooBig) {
        let addresses = Addresses::new(ours.parse().unwrap(), peer.parse().unwrap()).unwrap();
        let payload = Payload::Synthetic { offset: 0, len: 1400 };
        let segment = Segment { src_port: 80, dst_port: 5000, seq: Seq(0xFFFF_FFF0), payload, ..Segment::default() };
        let mut quoted = Vec::new();
        emit(&ip::Header { addresses, hop_limit: 63 }, &segment, &mut quoted).unwrap();
        let from_router = Addresses::new(router.parse().unwrap(), ours.parse().unwrap()).unwrap();
        let v4 = matches!(addresses, Addresses::V4 { .. });
        let (protocol, head, room, before) =
            if v4 { (V4, [3, 4], 28, Sum::default()) } else { (V6, [2, 0], 1232, from_router.pseudo_header_of(V6, HEAD + 1232)) };
        let mut message = vec![head[0], head[1], 0, 0];
        message.extend(mtu.to_be_bytes());
        message.extend(&quoted[..room]);
        let sum = before.with(&message).finish();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut packet = Vec::new();
        let header = ip::Header { addresses: from_router, hop_limit: 64 };
        header.write(protocol, Dscp::DEFAULT, Ecn::NotCapable, message.len() as u16, &mut packet);
        packet.extend(message);
        let mtu = (mtu > 0).then(|| u16::try_from(mtu).unwrap_or(u16::MAX));
        (packet, TooBig { addresses, src_port: 80, dst_port: 5000, seq: Seq(0xFFFF_FFF0), mtu })
    }

    #[test]
    fn a_message_tells_the_size_and_whose_packet_it_was() {
        for pair in PAIRS {
            for mtu in [1400, 68, 0, 65_535] {
                let (packet, expected) = message(pair, mtu);
                assert_eq!(too_big(&packet), Some(expected));
            }
        }
        let (packet, expected) = message(PAIRS[1], 1 << 20);
        assert_eq!((too_big(&packet), expected.mtu), (Some(expected), Some(u16::MAX)));
    }

    #[test]
    fn nothing_is_read_from_a_truncated_or_damaged_message_or_one_for_somebody_else() {
        for pair in PAIRS {
            let (packet, expected) = message(pair, 1400);
            for end in 0..packet.len() {
                assert_eq!(too_big(&packet[..end]), None, "{end} octets");
            }
            for bit in 0..packet.len() * 8 {
                let mut damaged = packet.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                // IPv6 leaves traffic class, flow label and hop limit without a checksum.
                let found = too_big(&damaged);
                assert!(found.is_none() || pair == PAIRS[1] && bit / 8 < 8 && found == Some(expected), "bit {bit}: {found:?}");
            }
            let [_, peer, router] = pair;
            let (mut other, _) = message([peer, pair[0], router], 1400);
            // The quote is ours, the message is addressed to the peer.
            let quote = if pair == PAIRS[0] { 28 } else { 48 };
            other[quote..].copy_from_slice(&packet[quote..]);
            assert_eq!(too_big(&other), None);
        }
    }

    #[test]
    fn only_quotes_of_tcp_headers_count() {
        let (mut packet, _) = message(PAIRS[0], 1400);
        packet[28 + 9] = 17;
        let message = &mut packet[20..];
        message[2..4].fill(0);
        let sum = Sum::default().with(message).finish();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(too_big(&packet), None);
    }
}
