//! A host that answers pings (RFC 792, RFC 4443).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use whyloss_transport::wire::checksum::Sum;
use whyloss_transport::wire::icmp;

/// Hop limit of our answers (RFC 1122, 3.2.1.7).
const HOP_LIMIT: u8 = 64;

/// An ICMP echo request (a ping).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Whom it is for.
    pub to: IpAddr,
    /// The packet that answers it.
    pub reply: Vec<u8>,
}

/// Reads `packet` as an intact, unfragmented echo request. Anything else is `None`.
pub fn echo(packet: &[u8]) -> Option<Echo> {
    match packet.first()? >> 4 {
        4 => echo_v4(packet),
        6 => echo_v6(packet),
        _ => None,
    }
}

fn echo_v4(packet: &[u8]) -> Option<Echo> {
    const REQUEST: u8 = 8;
    const REPLY: u8 = 0;
    let header_len = usize::from(packet[0] & 0xf) * 4;
    let header = packet.get(..header_len.max(20))?;
    let message = packet.get(header_len..usize::from(u16::from_be_bytes([header[2], header[3]])))?;
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    if header_len < 20 || fragment || header[9] != icmp::V4 || !sound(Sum::default(), header) || !sound(Sum::default(), message) {
        return None;
    }
    let to = Ipv4Addr::from(<[u8; 4]>::try_from(&header[16..20]).ok()?);
    let mut reply = header[..20].to_vec();
    reply[0] = 0x45;
    reply[2..4].copy_from_slice(&(20 + message.len() as u16).to_be_bytes());
    reply[8] = HOP_LIMIT;
    reply[10..12].fill(0);
    reply[12..16].copy_from_slice(&header[16..20]);
    reply[16..20].copy_from_slice(&header[12..16]);
    let sum = Sum::default().with(&reply).finish();
    reply[10..12].copy_from_slice(&sum.to_be_bytes());
    answer(&mut reply, message, REQUEST, REPLY, Sum::default())?;
    Some(Echo { to: to.into(), reply })
}

fn echo_v6(packet: &[u8]) -> Option<Echo> {
    const REQUEST: u8 = 128;
    const REPLY: u8 = 129;
    let header = packet.get(..40)?;
    let length = u16::from_be_bytes([header[4], header[5]]);
    let message = packet.get(40..40 + usize::from(length))?;
    // The pseudo-header does not change when source and destination change places.
    let pseudo_header = Sum::default().with(&header[8..40]).with_u16(length).with_u16(u16::from(icmp::V6));
    if header[6] != icmp::V6 || !sound(pseudo_header, message) {
        return None;
    }
    let to = Ipv6Addr::from(<[u8; 16]>::try_from(&header[24..40]).ok()?);
    let mut reply = header.to_vec();
    reply[7] = HOP_LIMIT;
    reply[8..24].copy_from_slice(&header[24..40]);
    reply[24..40].copy_from_slice(&header[8..24]);
    answer(&mut reply, message, REQUEST, REPLY, pseudo_header)?;
    Some(Echo { to: to.into(), reply })
}

/// Appends `message` with its type turned from `request` to `reply`.
fn answer(out: &mut Vec<u8>, message: &[u8], request: u8, reply: u8, pseudo_header: Sum) -> Option<()> {
    if message.len() < 8 || message[0] != request || message[1] != 0 {
        return None;
    }
    let start = out.len();
    out.extend_from_slice(message);
    out[start] = reply;
    out[start + 2..start + 4].fill(0);
    let sum = pseudo_header.with(&out[start..]).finish();
    out[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
    Some(())
}

fn sound(before: Sum, octets: &[u8]) -> bool {
    before.with(octets).finish() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_v4() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 32, 0, 7, 0, 0, 64, 1, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        let sum = Sum::default().with(&packet).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        let mut message = vec![8, 0, 0, 0, 0x12, 0x34, 0, 1, b'p', b'i', b'n', b'g'];
        let sum = Sum::default().with(&message).finish();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        packet.extend(message);
        packet
    }

    #[test]
    fn an_answer_goes_back_with_the_same_data_and_sound_checksums() {
        let Echo { to, reply } = echo(&request_v4()).unwrap();
        assert_eq!(to, IpAddr::from([192, 0, 2, 2]));
        assert_eq!(reply[12..20], [192, 0, 2, 2, 192, 0, 2, 1]);
        assert!(sound(Sum::default(), &reply[..20]) && sound(Sum::default(), &reply[20..]));
        assert_eq!(reply[20], 0);
        assert_eq!(reply[24..], request_v4()[24..]);
    }

    #[test]
    fn no_damaged_or_truncated_request_is_answered() {
        let packet = request_v4();
        for bit in 0..packet.len() * 8 {
            let mut damaged = packet.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(echo(&damaged), None, "bit {bit}");
        }
        for end in 0..packet.len() {
            assert_eq!(echo(&packet[..end]), None, "{end} octets");
        }
    }

    #[test]
    fn ipv6_answers_carry_a_checksum_over_the_pseudo_header() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8, icmp::V6, 255];
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        let mut message = vec![128, 0, 0, 0, 0, 1, 0, 2];
        let sum = Sum::default().with(&packet[8..40]).with_u16(8).with_u16(58).with(&message).finish();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        packet.extend(message);
        let Echo { to, reply } = echo(&packet).unwrap();
        assert_eq!(to, "2001:db8::2".parse::<IpAddr>().unwrap());
        assert_eq!(reply[8..24], packet[24..40]);
        assert_eq!(reply[40], 129);
        assert!(sound(Sum::default().with(&reply[8..40]).with_u16(8).with_u16(58), &reply[40..]));
    }
}
