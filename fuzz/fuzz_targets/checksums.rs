//! Right checksums for octets that a fuzzer made up, so that it gets past them.

use std::net::{Ipv4Addr, Ipv6Addr};
use whyloss_transport::wire::checksum::Sum;
use whyloss_transport::wire::ip::{Addresses, DCCP};

/// Puts the right header and TCP checksums into a packet without IPv6 extension headers, as far as it has the fields for it.
/// Returns where TCP begins.
#[allow(dead_code, reason = "not every target speaks TCP")]
pub fn repair(packet: &mut [u8]) -> Option<usize> {
    let (addresses, start, end) = repair_ip(packet)?;
    let segment = packet.get_mut(start..end).filter(|segment| segment.len() >= 20)?;
    segment[16..18].fill(0);
    let checksum = addresses.pseudo_header(segment.len()).with(segment).finish();
    segment[16..18].copy_from_slice(&checksum.to_be_bytes());
    Some(start)
}

/// The same for DCCP, with a header checksum that covers no data.
#[allow(dead_code, reason = "not every target speaks DCCP")]
pub fn repair_dccp(packet: &mut [u8]) -> Option<usize> {
    let (addresses, start, end) = repair_ip(packet)?;
    let len = end.checked_sub(start)?;
    let dccp = packet.get_mut(start..end).filter(|dccp| dccp.len() >= 16)?;
    dccp[5] = dccp[5] & 0xF0 | 1;
    dccp[6..8].fill(0);
    let header = usize::from(dccp[4]) * 4;
    let checksum = addresses.pseudo_header_of(DCCP, len).with(dccp.get(..header)?).finish();
    dccp[6..8].copy_from_slice(&checksum.to_be_bytes());
    Some(start)
}

/// Puts the right checksum into an IPv4 header. Returns addresses, and where the body of the packet begins and ends.
fn repair_ip(packet: &mut [u8]) -> Option<(Addresses, usize, usize)> {
    Some(match packet.first()? >> 4 {
        4 if packet.len() >= 20 => {
            let start = usize::from(packet[0] & 0x0F) * 4;
            packet[10..12].fill(0);
            let checksum = Sum::default().with(packet.get(..start)?).finish();
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
            let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
            (Addresses::V4 { src: address(12), dst: address(16) }, start, total)
        }
        6 if packet.len() >= 40 => {
            let address = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&packet[at..at + 16]).unwrap());
            let total = 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]]));
            (Addresses::V6 { src: address(8), dst: address(24) }, 40, total)
        }
        _ => return None,
    })
}
