//! Packets as Linux would lay them out, which is what scripts compare with: the order of the options, and runs of full segments that leave
//! at one instant as the one large packet that segmentation offload hands to the device.

use whyloss_transport::segment::{Flags, Options, RareOptions, Segment};
use whyloss_transport::wire::checksum::Sum;
use whyloss_transport::wire::ip::{Addresses, Header};
use whyloss_transport::wire::{emit, EmitError};
use whyloss_transport::Payload;

const HOP_LIMIT: u8 = 64;
/// The most data in one large packet.
const LARGEST: usize = 65_000;

/// Whether `next` can travel in one packet with `first`, which left at the same instant on the same connection.
pub fn joins(first: &Segment, next: &Segment) -> bool {
    let plain = Flags::ACK;
    let data = !first.payload.is_empty() && !next.payload.is_empty();
    let flags = first.flags == plain && (next.flags == plain || next.flags == (Flags::ACK | Flags::PSH));
    let same = (first.src_port, first.dst_port, first.ack, first.window, first.ecn)
        == (next.src_port, next.dst_port, next.ack, next.window, next.ecn);
    data && flags
        && same
        && first.options == next.options
        && first.seq + first.payload.len() as u32 == next.seq
        && first.payload.len() + next.payload.len() <= LARGEST
}

/// Puts the data of `next` behind that of `first`.
pub fn join(first: &mut Segment, next: &Segment) {
    let mut octets = first.payload.to_bytes().to_vec();
    octets.extend_from_slice(&next.payload.to_bytes());
    first.payload = Payload::Bytes(octets.into());
    first.flags |= next.flags;
}

/// The packet with `segment`.
pub fn packet(addresses: Addresses, segment: &Segment) -> Result<Vec<u8>, EmitError> {
    let header = Header { addresses, hop_limit: HOP_LIMIT };
    let mut octets = Vec::new();
    let Some(options) = options(&segment.options) else {
        emit(&header, segment, &mut octets)?;
        return Ok(octets);
    };
    let bare = Segment { options: Options::default(), ..segment.clone() };
    emit(&header, &bare, &mut octets)?;
    let start = addresses.header_len();
    octets.splice(start + 20..start + 20, options.iter().copied());
    let tcp_len = octets.len() - start;
    match addresses {
        Addresses::V4 { .. } => {
            octets[2..4].copy_from_slice(&((start + tcp_len) as u16).to_be_bytes());
            octets[10..12].fill(0);
            let checksum = Sum::default().with(&octets[..start]).finish();
            octets[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        Addresses::V6 { .. } => octets[4..6].copy_from_slice(&(tcp_len as u16).to_be_bytes()),
    }
    octets[start + 12] = ((20 + options.len()) as u8 / 4) << 4;
    octets[start + 16..start + 18].fill(0);
    let checksum = addresses.pseudo_header(tcp_len).with(&octets[start..]).finish();
    octets[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
    Ok(octets)
}

/// The options in Linux's order, each aligned to 32 bits; `None` if there are others than Linux has.
fn options(options: &Options) -> Option<Vec<u8>> {
    let fast_open = options.rare.as_ref().and_then(|rare| rare.fast_open);
    let known = RareOptions { fast_open, ..RareOptions::default() };
    if options.rare.as_ref().is_some_and(|rare| **rare != known)
        || options.nonce.is_some()
        || options.header_check
        || options.wave.is_some()
    {
        return None;
    }
    let mut out = Vec::new();
    if let Some(mss) = options.mss {
        out.extend_from_slice(&[2, 4]);
        out.extend_from_slice(&mss.to_be_bytes());
    }
    if let Some(times) = options.timestamps {
        out.extend_from_slice(if options.sack_permitted { &[4, 2, 8, 10] } else { &[1, 1, 8, 10] });
        out.extend_from_slice(&times.value.to_be_bytes());
        out.extend_from_slice(&times.echo.to_be_bytes());
    } else if options.sack_permitted {
        out.extend_from_slice(&[1, 1, 4, 2]);
    }
    if let Some(shift) = options.window_scale {
        out.extend_from_slice(&[1, 3, 3, shift]);
    }
    if !options.sack.is_empty() {
        out.extend_from_slice(&[1, 1, 5, 2 + 8 * options.sack.len() as u8]);
        for (left, right) in options.sack.as_slice() {
            out.extend_from_slice(&left.0.to_be_bytes());
            out.extend_from_slice(&right.0.to_be_bytes());
        }
    }
    if let Some(fast_open) = fast_open {
        fast_open.write(&mut out);
        out.resize(out.len().next_multiple_of(4), 1);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_transport::segment::Timestamps;
    use whyloss_transport::seq::Seq;
    use whyloss_transport::wire::parse;

    fn addresses() -> [Addresses; 2] {
        let pair = |one: &str, other: &str| Addresses::new(one.parse().unwrap(), other.parse().unwrap()).unwrap();
        [pair("192.0.2.1", "192.0.2.2"), pair("fd00::1", "fd00::2")]
    }

    #[test]
    fn what_is_laid_out_anew_is_read_as_the_same_segment() {
        let timestamps = Some(Timestamps { value: 1, echo: 2 });
        let syn = Options { mss: Some(1460), sack_permitted: true, window_scale: Some(7), timestamps, ..Options::default() };
        let without = Options { timestamps: None, ..syn.clone() };
        let mut sack = Options { timestamps, ..Options::default() };
        sack.sack.push(Seq(10), Seq(20));
        for options in [syn, without, sack, Options::default()] {
            let segment = Segment { options, payload: Payload::Bytes(b"odd".as_slice().into()), ..Segment::default() };
            for addresses in addresses() {
                let octets = packet(addresses, &segment).unwrap();
                let read = parse(&octets.into()).unwrap();
                assert_eq!((read.segment, read.header.addresses, read.malformed), (segment.clone(), addresses, None));
            }
        }
    }

    #[test]
    fn options_stand_in_linuxs_order() {
        let full = Options {
            mss: Some(1460),
            sack_permitted: true,
            window_scale: Some(7),
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            ..Options::default()
        };
        assert_eq!(options(&full).unwrap(), [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7]);
        let without = Options { timestamps: None, ..full };
        assert_eq!(options(&without).unwrap(), [2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 7]);
    }

    #[test]
    fn contiguous_data_of_one_instant_is_one_packet() {
        let piece =
            |seq, flags| Segment { seq: Seq(seq), flags, payload: Payload::Bytes(vec![0; 100].into()), ..Segment::default() };
        let mut first = piece(0, Flags::ACK);
        assert!(joins(&first, &piece(100, Flags::ACK | Flags::PSH)));
        assert!(!joins(&first, &piece(200, Flags::ACK)));
        assert!(!joins(&first, &piece(100, Flags::ACK | Flags::FIN)));
        join(&mut first, &piece(100, Flags::ACK | Flags::PSH));
        assert_eq!((first.payload.len(), first.flags), (200, Flags::ACK | Flags::PSH));
        assert!(!joins(&first, &piece(200, Flags::ACK)), "what was pushed is complete");
    }
}
