//! Packets as octets: for channels that flip bits and for captures.
//!
//! Host number `n` (from 0) has the addresses `10.0.0.0 + n + 1` and `fd00:: + n + 1`.

use crate::address::HostId;
use crate::truth::Cause;
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use whyloss_transport::wire::checksum::Sum;
use whyloss_transport::wire::damage::{examine, Arrival};
use whyloss_transport::wire::{self, dccp, ip};
use whyloss_transport::{datagram, segment::Ecn};
use whyloss_transport::{Integrity, Payload, Segment};

/// Octets of the headers of a datagram: IPv4 and UDP.
pub(crate) const DATAGRAM_HEADERS: u32 = 28;
const UDP: u8 = 17;
const V4_NET: u32 = 0x0A00_0001;
const V6_NET: u128 = 0xFD00 << 112 | 1;
const HOP_LIMIT: u8 = 64;

/// The most hosts that have addresses.
pub(crate) const MAX_HOSTS: usize = (1 << 24) - 2;

/// Where a packet comes from and goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Route {
    /// The host that sends the packet, and the one that it is for.
    pub hosts: [HostId; 2],
    /// Ports of sender and receiver.
    pub ports: [u16; 2],
    pub v6: bool,
}

impl Route {
    /// The route of an answer.
    pub const fn reversed(self) -> Self {
        Self { hosts: [self.hosts[1], self.hosts[0]], ports: [self.ports[1], self.ports[0]], v6: self.v6 }
    }

    fn addresses(self) -> ip::Addresses {
        if self.v6 {
            let [src, dst] = self.hosts.map(|host| Ipv6Addr::from_bits(V6_NET + host.index() as u128));
            ip::Addresses::V6 { src, dst }
        } else {
            let [src, dst] = self.hosts.map(|host| Ipv4Addr::from_bits(V4_NET + host.index() as u32));
            ip::Addresses::V4 { src, dst }
        }
    }
}

/// The host that has this address; a number that no host has if none does.
fn host_of(address: IpAddr) -> HostId {
    HostId::new(match address {
        IpAddr::V4(address) => address.to_bits().wrapping_sub(V4_NET) as usize,
        IpAddr::V6(address) => u32::try_from(address.to_bits().wrapping_sub(V6_NET)).unwrap_or(u32::MAX) as usize,
    })
}

/// The octets of an undamaged packet.
pub(crate) fn emit(segment: &Segment, route: Route, datagram: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if datagram {
        emit_datagram(&segment.payload, route, &mut out);
    } else {
        let header = ip::Header { addresses: route.addresses(), hop_limit: HOP_LIMIT };
        wire::emit(&header, segment, &mut out).expect("what the engine sends has a form on the wire");
    }
    out
}

/// The octets of an undamaged packet of a transport of datagrams.
pub(crate) fn emit_packet(packet: &datagram::Packet, route: Route) -> Vec<u8> {
    let mut out = Vec::new();
    match packet {
        datagram::Packet::Dccp(packet) => {
            let header = ip::Header { addresses: route.addresses(), hop_limit: HOP_LIMIT };
            dccp::emit(&header, packet, &mut out).expect("what the engine sends has a form on the wire");
        }
        datagram::Packet::Tfrc(packet) => emit_udp(packet.len(), packet.ecn, |out| packet.write(out), route, &mut out),
    }
    out
}

/// A UDP datagram (RFC 768) over IPv4.
fn emit_datagram(payload: &Payload, route: Route, out: &mut Vec<u8>) {
    emit_udp(payload.len(), Ecn::NotCapable, |out| payload.write_to(out), route, out);
}

/// A UDP datagram of `len` octets, which `write` appends.
fn emit_udp(len: usize, ecn: Ecn, write: impl FnOnce(&mut Vec<u8>), route: Route, out: &mut Vec<u8>) {
    let octets = (len + DATAGRAM_HEADERS as usize) as u16;
    let [src, dst] = route.hosts.map(|host| (V4_NET + host.index() as u32).to_be_bytes());
    let mut header = [0; 20];
    header[0] = 0x45;
    header[1] = ecn as u8;
    header[2..4].copy_from_slice(&octets.to_be_bytes());
    header[6] = 0x40;
    header[8] = HOP_LIMIT;
    header[9] = UDP;
    header[12..16].copy_from_slice(&src);
    header[16..20].copy_from_slice(&dst);
    let checksum = Sum::default().with(&header).finish();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(&header);
    let len = octets - 20;
    route.ports.iter().for_each(|port| out.extend_from_slice(&port.to_be_bytes()));
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    write(out);
    // Zero would mean "no checksum".
    let checksum = match udp_sum(out).finish() {
        0 => u16::MAX,
        checksum => checksum,
    };
    out[26..28].copy_from_slice(&checksum.to_be_bytes());
}

/// The sum over a UDP datagram and its pseudo-header.
fn udp_sum(packet: &[u8]) -> Sum {
    let len = (packet.len() - 20) as u32;
    Sum::default().with(&packet[12..20]).with(&[0, UDP]).with(&len.to_be_bytes()).with(&packet[20..])
}

/// What a node makes of a damaged packet.
#[derive(Debug)]
pub(crate) enum Reading {
    /// The IP header is damaged beyond doubt.
    Unreadable,
    /// It goes to this host, if there is one of that number; that is what the host will make of it.
    To(HostId, Content),
}

/// What a host makes of a damaged packet.
#[derive(Debug)]
pub(crate) enum Content {
    /// A TCP segment on this route with what is known of it; intact if the damage does not show.
    Tcp(Route, Box<Segment>, Integrity),
    /// A DCCP packet on this route whose header checksum holds, with what is known of its data.
    Dccp(Route, Box<dccp::Packet>, dccp::Data),
    /// A datagram on this route; `true` if the damage does not show.
    Datagram(Route, bool),
    /// Nothing that any transport can attribute.
    Garbage,
}

/// Reads a packet that a channel has damaged.
pub(crate) fn read(octets: &[u8]) -> Reading {
    match protocol(octets) {
        UDP if octets[0] == 0x45 => return read_datagram(octets),
        ip::DCCP => return read_dccp(octets),
        _ => {}
    }
    let (header, content) = match examine(&Bytes::copy_from_slice(octets)) {
        Arrival::Intact(packet) => (packet.header, Some((packet.segment, Integrity::Intact))),
        Arrival::Damaged(damaged) => (damaged.header, Some((damaged.segment, damaged.integrity))),
        Arrival::Unattributable { header, .. } => (header, None),
        Arrival::Discarded(_) => return Reading::Unreadable,
    };
    let hosts = [host_of(header.addresses.src()), host_of(header.addresses.dst())];
    let v6 = matches!(header.addresses, ip::Addresses::V6 { .. });
    let content = content.map_or(Content::Garbage, |(segment, integrity)| {
        let route = Route { hosts, ports: [segment.src_port, segment.dst_port], v6 };
        Content::Tcp(route, Box::new(segment), integrity)
    });
    Reading::To(hosts[1], content)
}

/// What the IP header says that it carries.
fn protocol(octets: &[u8]) -> u8 {
    octets[if octets[0] >> 4 == 6 { 6 } else { 9 }]
}

fn read_dccp(octets: &[u8]) -> Reading {
    let (header, arrival) = dccp::examine(&Bytes::copy_from_slice(octets));
    let Some(header) = header else { return Reading::Unreadable };
    let hosts = [host_of(header.addresses.src()), host_of(header.addresses.dst())];
    let v6 = matches!(header.addresses, ip::Addresses::V6 { .. });
    let content = arrival.map_or(Content::Garbage, |dccp::Arrival { packet, data, .. }| {
        Content::Dccp(Route { hosts, ports: [packet.src_port, packet.dst_port], v6 }, Box::new(packet), data)
    });
    Reading::To(hosts[1], content)
}

fn read_datagram(octets: &[u8]) -> Reading {
    let address = |at: usize| Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]);
    if Sum::default().with(&octets[..20]).finish() != 0 {
        return Reading::Unreadable;
    }
    let hosts = [host_of(IpAddr::V4(address(12))), host_of(IpAddr::V4(address(16)))];
    let ports = [20, 22].map(|at| u16::from_be_bytes([octets[at], octets[at + 1]]));
    let route = Route { hosts, ports, v6: false };
    Reading::To(hosts[1], Content::Datagram(route, udp_sum(octets).finish() == 0))
}

/// Where a packet is damaged: the outermost part that is hit. `None` if it is as it was sent.
pub(crate) fn place(original: &[u8], now: &[u8]) -> Option<Cause> {
    let start = if original[0] >> 4 == 6 { 40 } else { 20 };
    let transport = match protocol(original) {
        UDP => 8,
        ip::DCCP => usize::from(original[start + 4]) * 4,
        _ => usize::from(original[start + 12] >> 4) * 4,
    };
    let first = original.iter().zip(now).position(|(before, after)| before != after)?;
    Some(match first {
        at if at < start => Cause::IpHeaderDamaged,
        at if at < start + transport => Cause::TransportHeaderDamaged,
        _ => Cause::PayloadDamaged,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_transport::segment::Flags;
    use whyloss_transport::wire::damage::flip_bits;

    const TO: HostId = HostId::new(70_000);
    const ROUTE: Route = Route { hosts: [HostId::new(3), TO], ports: [1024, 1025], v6: false };

    fn segment() -> Segment {
        let [src_port, dst_port] = ROUTE.ports;
        let payload = Payload::Synthetic { offset: 7, len: 100 };
        Segment { src_port, dst_port, flags: Flags::ACK, payload, ..Segment::default() }
    }

    #[test]
    fn a_packet_leads_back_to_its_hosts() {
        for v6 in [false, true] {
            let route = Route { v6, ..ROUTE };
            let octets = emit(&segment(), route, false);
            match read(&octets) {
                Reading::To(TO, Content::Tcp(found, read, Integrity::Intact)) => {
                    assert_eq!(found, route);
                    assert_eq!(read.payload.to_bytes(), segment().payload.to_bytes());
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_datagram_is_checked_like_any_packet() {
        let payload = Payload::Synthetic { offset: 5 * 182, len: 182 };
        let octets = emit(&Segment { payload, ..Segment::default() }, ROUTE, true);
        assert_eq!(octets.len(), 210);
        assert!(matches!(read(&octets), Reading::To(TO, Content::Datagram(ROUTE, true))));
        for (bit, readable) in [(12 * 8, false), (28 * 8, true), (209 * 8, true)] {
            let mut damaged = octets.clone();
            flip_bits(&mut damaged, [bit]);
            match read(&damaged) {
                Reading::Unreadable => assert!(!readable),
                Reading::To(host, Content::Datagram(_, intact)) => assert_eq!((host, intact, readable), (TO, false, true)),
                other @ Reading::To(..) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn the_outermost_hit_counts() {
        let original = emit(&segment(), ROUTE, false);
        let hit = |bits: &[u64]| {
            let mut damaged = original.clone();
            flip_bits(&mut damaged, bits.iter().copied());
            place(&original, &damaged)
        };
        assert_eq!(hit(&[]), None);
        assert_eq!(hit(&[159, 500]), Some(Cause::IpHeaderDamaged));
        assert_eq!(hit(&[160, 500]), Some(Cause::TransportHeaderDamaged));
        assert_eq!(hit(&[319]), Some(Cause::TransportHeaderDamaged));
        assert_eq!(hit(&[320]), Some(Cause::PayloadDamaged));
    }
}
