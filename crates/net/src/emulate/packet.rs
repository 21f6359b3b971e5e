//! What a link emulator sees of an IP packet, and what it does to it.
//!
//! Nothing here asks for a packet that is whole: what cannot be read is zero.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use whyloss_sim::Cause;
use whyloss_transport::segment::{Dscp, Ecn};

const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
/// The bits of the seventh and eighth octet of an IPv4 header that say where a fragment belongs (RFC 791, 3.1).
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// What the headers of a packet say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Where it comes from.
    pub src: IpAddr,
    /// Where it goes to.
    pub dst: IpAddr,
    /// What it carries: 6 for TCP, 17 for UDP. Of IPv6 the first next header.
    pub protocol: u8,
    /// Source port; 0 where there is none.
    pub src_port: u16,
    /// Destination port; 0 where there is none.
    pub dst_port: u16,
    /// TCP sequence number; 0 without TCP.
    pub seq: u32,
    /// TCP acknowledgement number; 0 without TCP.
    pub ack: u32,
    /// TCP flags: CWR, ECE, URG, ACK, PSH, RST, SYN, FIN from the highest bit on.
    pub flags: u8,
    /// Identification of an IPv4 packet.
    pub id: u16,
    /// ECN codepoint of the IP header.
    pub ecn: Ecn,
    /// Differentiated services codepoint of the IP header.
    pub dscp: Dscp,
    /// Octets of the IP header.
    pub ip_octets: u16,
    /// Octets of the transport header.
    pub transport_octets: u16,
    /// Octets of data behind it.
    pub data_octets: u32,
}

impl Header {
    const UNREADABLE: Self = Self {
        src: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        dst: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        protocol: 0,
        src_port: 0,
        dst_port: 0,
        seq: 0,
        ack: 0,
        flags: 0,
        id: 0,
        ecn: Ecn::NotCapable,
        dscp: Dscp::DEFAULT,
        ip_octets: 0,
        transport_octets: 0,
        data_octets: 0,
    };

    /// Reads the headers of `packet`.
    pub fn read(packet: &[u8]) -> Self {
        let mut header = match packet.first().map(|first| first >> 4) {
            Some(4) => Self::read_v4(packet),
            Some(6) => Self::read_v6(packet),
            _ => None,
        }
        .unwrap_or(Self::UNREADABLE);
        let rest = packet.get(usize::from(header.ip_octets)..).unwrap_or_default();
        // The other fragments have no transport header.
        let first_fragment =
            header.src.is_ipv6() || packet.get(6..8).is_some_and(|field| u16_at(field, 0) & FRAGMENT_OFFSET == 0);
        if first_fragment && header.ip_octets > 0 {
            header.read_transport(rest);
        }
        header.data_octets = rest.len().saturating_sub(usize::from(header.transport_octets)) as u32;
        header
    }

    fn read_v4(packet: &[u8]) -> Option<Self> {
        let ip_octets = u16::from(packet[0] & 15) * 4;
        let fixed: &[u8; 20] = packet.first_chunk()?;
        let address = |at: usize| IpAddr::V4(Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]));
        Some(Self {
            src: address(12),
            dst: address(16),
            protocol: fixed[9],
            id: u16_at(fixed, 4),
            ecn: ecn(fixed[1]),
            dscp: Dscp(fixed[1] >> 2),
            ip_octets,
            ..Self::UNREADABLE
        })
    }

    fn read_v6(packet: &[u8]) -> Option<Self> {
        let fixed: &[u8; 40] = packet.first_chunk()?;
        let class = fixed[0] << 4 | fixed[1] >> 4;
        let address = |at: usize| {
            let octets: [u8; 16] = fixed[at..at + 16].try_into().expect("sixteen octets");
            IpAddr::V6(Ipv6Addr::from(octets))
        };
        Some(Self {
            src: address(8),
            dst: address(24),
            protocol: fixed[6],
            ecn: ecn(class),
            dscp: Dscp(class >> 2),
            ip_octets: 40,
            ..Self::UNREADABLE
        })
    }

    fn read_transport(&mut self, rest: &[u8]) {
        if matches!(self.protocol, TCP | UDP | DCCP) && rest.len() >= 4 {
            (self.src_port, self.dst_port) = (u16_at(rest, 0), u16_at(rest, 2));
        }
        match self.protocol {
            TCP if rest.len() >= 20 => {
                (self.seq, self.ack, self.flags) = (u32_at(rest, 4), u32_at(rest, 8), rest[13]);
                self.transport_octets = u16::from(rest[12] >> 4) * 4;
            }
            UDP if rest.len() >= 8 => self.transport_octets = 8,
            DCCP if rest.len() >= 12 => self.transport_octets = u16::from(rest[4]) * 4,
            _ => {}
        }
    }

    /// What it shares with the packets of its flow: a hash of addresses, protocol and ports. Fragments behind the first have no ports.
    pub fn flow(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.src, self.dst, self.protocol, self.src_port, self.dst_port).hash(&mut hasher);
        hasher.finish()
    }

    /// Where a packet with this header is damaged if `bit` is the first bit in error.
    pub fn place(&self, bit: u32) -> Cause {
        let octet = bit / 8;
        if octet < u32::from(self.ip_octets) {
            Cause::IpHeaderDamaged
        } else if octet < u32::from(self.ip_octets) + u32::from(self.transport_octets) {
            Cause::TransportHeaderDamaged
        } else {
            Cause::PayloadDamaged
        }
    }
}

fn ecn(class: u8) -> Ecn {
    match class & 3 {
        0 => Ecn::NotCapable,
        1 => Ecn::Capable1,
        2 => Ecn::Capable0,
        _ => Ecn::CongestionExperienced,
    }
}

fn u16_at(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

fn u32_at(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

/// Sets "congestion experienced" (RFC 3168, 5) on a packet that is ECN-capable and keeps the checksum of its IP header right.
pub fn mark(packet: &mut [u8]) {
    if packet.len() < 20 {
        return;
    }
    match packet[0] >> 4 {
        4 if ecn(packet[1]) != Ecn::NotCapable => {
            let before = u16_at(packet, 0);
            packet[1] |= 3;
            // RFC 1624, eq. 3: HC' = ~(~HC + ~m + m').
            let mut sum = u32::from(!u16_at(packet, 10)) + u32::from(!before) + u32::from(u16_at(packet, 0));
            sum = (sum & 0xffff) + (sum >> 16);
            sum = (sum & 0xffff) + (sum >> 16);
            packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
        6 if ecn(packet[1] >> 4) != Ecn::NotCapable => packet[1] |= 0x30,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_transport::segment::Flags;
    use whyloss_transport::wire::checksum::Sum;
    use whyloss_transport::wire::{emit, ip};
    use whyloss_transport::{Payload, Segment, Seq};

    fn packet(v6: bool, ecn: Ecn) -> Vec<u8> {
        let addresses = if v6 {
            ip::Addresses::V6 { src: "fd00::1".parse().unwrap(), dst: "fd00::2".parse().unwrap() }
        } else {
            ip::Addresses::V4 { src: [10, 0, 0, 1].into(), dst: [10, 0, 0, 2].into() }
        };
        let segment = Segment {
            src_port: 1234,
            dst_port: 80,
            seq: Seq(77),
            ack: Seq(99),
            flags: Flags::ACK,
            payload: Payload::Synthetic { offset: 0, len: 100 },
            ecn,
            ..Segment::default()
        };
        let mut out = Vec::new();
        emit(&ip::Header { addresses, hop_limit: 64 }, &segment, &mut out).unwrap();
        out
    }

    #[test]
    fn headers_are_read_and_damage_is_placed() {
        for (v6, ip_octets) in [(false, 20), (true, 40)] {
            let header = Header::read(&packet(v6, Ecn::Capable0));
            assert_eq!((header.protocol, header.src_port, header.dst_port, header.seq, header.ack), (6, 1234, 80, 77, 99));
            assert_eq!((header.ip_octets, header.transport_octets, header.data_octets), (ip_octets, 20, 100));
            assert_eq!((header.ecn, header.flags), (Ecn::Capable0, 0x10));
            assert_eq!(header.dst.to_string(), if v6 { "fd00::2" } else { "10.0.0.2" });
            let bits = u32::from(ip_octets) * 8;
            assert_eq!(
                [bits - 1, bits, bits + 159, bits + 160].map(|bit| header.place(bit)),
                [Cause::IpHeaderDamaged, Cause::TransportHeaderDamaged, Cause::TransportHeaderDamaged, Cause::PayloadDamaged]
            );
        }
    }

    #[test]
    fn marks_keep_the_checksum_right() {
        for ecn in [Ecn::Capable0, Ecn::Capable1] {
            let mut marked = packet(false, ecn);
            mark(&mut marked);
            assert_eq!(Header::read(&marked).ecn, Ecn::CongestionExperienced);
            assert_eq!(Sum::default().with(&marked[..20]).finish(), 0);
            let mut marked = packet(true, ecn);
            mark(&mut marked);
            assert_eq!(Header::read(&marked).ecn, Ecn::CongestionExperienced);
        }
        let plain = packet(false, Ecn::NotCapable);
        let mut same = plain.clone();
        mark(&mut same);
        assert_eq!(same, plain);
    }

    #[test]
    fn nothing_that_is_cut_off_or_garbled_panics() {
        for whole in [packet(false, Ecn::Capable0), packet(true, Ecn::Capable0)] {
            for length in 0..whole.len() {
                let mut piece = whole[..length].to_vec();
                Header::read(&piece);
                mark(&mut piece);
            }
            for at in 0..60 {
                for value in [0, 0x45, 0x4f, 0x60, 0xff] {
                    let mut garbled = whole.clone();
                    garbled[at] = value;
                    Header::read(&garbled);
                    mark(&mut garbled);
                }
            }
        }
    }
}
