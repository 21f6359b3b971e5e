//! The TCP header (RFC 9293, 3.1).

use super::ip::{self, Addresses};
use super::options::{self, Malformed};
use super::{EmitError, Error};
use crate::segment::{Dscp, Flags, Options, Payload, Segment};
use crate::seq::Seq;
use bytes::Bytes;
use std::ops::Range;

/// Length of a header without options, in octets.
pub(super) const MIN_HEADER: usize = 20;

/// The length in octets that the segment has on the wire, if it has a form there.
pub(super) fn check(segment: &Segment) -> Result<usize, EmitError> {
    let options = segment.options.encoded_len();
    if options > options::MAX_LEN {
        return Err(EmitError::Options(options));
    }
    if let Some((kind, _)) = segment.options.rare.iter().flat_map(|rare| &rare.unknown).find(|(kind, _)| *kind < 2) {
        return Err(EmitError::OptionKind(*kind));
    }
    Ok(MIN_HEADER + options + segment.payload.len())
}

/// Appends the segment with its checksums. It has passed [`check`] and is `len` octets long.
pub(super) fn write(addresses: &Addresses, segment: &Segment, len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    write_header(addresses, segment, len, out);
    segment.payload.write_to(out);
    let written = &mut out[start..];
    debug_assert_eq!(written.len(), len);
    let checksum = addresses.pseudo_header(len).with(written).finish();
    written[16..18].copy_from_slice(&checksum.to_be_bytes());
}

/// Appends the header of a segment that is `len` octets long. Where its checksum stands is the sum of the pseudo-header, to which whoever
/// completes it adds the rest.
pub(super) fn write_partial(addresses: &Addresses, segment: &Segment, len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    write_header(addresses, segment, len, out);
    let sum = !addresses.pseudo_header(len).finish();
    out[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
}

/// Appends the header of a segment that is `len` octets long, its checksum zero.
fn write_header(addresses: &Addresses, segment: &Segment, len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    let header_len = segment.header_len();
    let mut header = [0; MIN_HEADER];
    header[0..2].copy_from_slice(&segment.src_port.to_be_bytes());
    header[2..4].copy_from_slice(&segment.dst_port.to_be_bytes());
    header[4..8].copy_from_slice(&segment.seq.0.to_be_bytes());
    header[8..12].copy_from_slice(&segment.ack.0.to_be_bytes());
    header[12] = (header_len as u8 / 4) << 4;
    header[13] = segment.flags.0;
    header[14..16].copy_from_slice(&segment.window.to_be_bytes());
    header[18..20].copy_from_slice(&segment.urgent.to_be_bytes());
    out.extend_from_slice(&header);
    segment.options.write(out);
    let written = &mut out[start..];
    debug_assert_eq!(written.len(), header_len);
    if segment.options.header_check {
        if let Some((at, checksum)) = header_check(addresses, written, len) {
            written[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// Where the checksum of `header` stands in it and what it has to be, if it has one: over the pseudo-header of a segment of `len` octets and
/// the header with all options, the TCP checksum and this one taken as zero (Balan et al. 2002; what counts as zero is our reading).
fn header_check(addresses: &Addresses, header: &[u8], len: usize) -> Option<(usize, u16)> {
    let at = MIN_HEADER + options::header_check_at(header.get(MIN_HEADER..)?)?;
    let mut copy = [0; 60];
    let copy = copy.get_mut(..header.len())?;
    copy.copy_from_slice(header);
    copy[16..18].fill(0);
    copy[at..at + 2].fill(0);
    Some((at, addresses.pseudo_header(len).with(copy).finish()))
}

/// Whether the segment carries a checksum of its header that holds.
pub(super) fn header_holds(addresses: &Addresses, segment: &[u8]) -> bool {
    let offset = segment.get(12).map_or(0, |octet| usize::from(octet >> 4) * 4);
    let checked = segment.get(..offset).and_then(|header| Some((header, header_check(addresses, header, segment.len())?)));
    checked.is_some_and(|(header, (at, checksum))| header[at..at + 2] == checksum.to_be_bytes())
}

/// Reads the segment at `body` of `packet`, whose checksum holds. `fixed` is its beginning.
pub(super) fn read(
    packet: &Bytes,
    body: Range<usize>,
    fixed: &[u8; MIN_HEADER],
    traffic_class: u8,
) -> Result<(Segment, Option<Malformed>), Error> {
    let (mut segment, offset) = read_fixed(fixed, traffic_class);
    if !(MIN_HEADER..=body.len()).contains(&offset) {
        return Err(Error::DataOffset { offset, len: body.len() });
    }
    let malformed = read_rest(&mut segment, packet, body, offset);
    Ok((segment, malformed))
}

/// Reads what can be read of a segment whose checksum is broken: with a data offset that makes no sense, no options.
pub(super) fn read_damaged(packet: &Bytes, body: Range<usize>, fixed: &[u8; MIN_HEADER], traffic_class: u8) -> Segment {
    let (mut segment, offset) = read_fixed(fixed, traffic_class);
    let offset = if (MIN_HEADER..=body.len()).contains(&offset) { offset } else { MIN_HEADER };
    read_rest(&mut segment, packet, body, offset);
    segment
}

/// The fields of the fixed header and the data offset in octets.
fn read_fixed(header: &[u8; MIN_HEADER], traffic_class: u8) -> (Segment, usize) {
    let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let u32_at = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let segment = Segment {
        src_port: u16_at(0),
        dst_port: u16_at(2),
        seq: Seq(u32_at(4)),
        ack: Seq(u32_at(8)),
        flags: Flags(header[13]),
        window: u16_at(14),
        urgent: u16_at(18),
        ecn: ip::ecn(traffic_class),
        dscp: Dscp(traffic_class >> 2),
        options: Options::default(),
        payload: Payload::Empty,
    };
    (segment, usize::from(header[12] >> 4) * 4)
}

/// Reads options and payload of a segment whose fixed header is known.
fn read_rest(segment: &mut Segment, packet: &Bytes, body: Range<usize>, offset: usize) -> Option<Malformed> {
    let payload = body.start + offset..body.end;
    let syn = segment.flags.contains(Flags::SYN);
    let malformed = segment.options.read(packet, body.start + MIN_HEADER..payload.start, syn);
    if !payload.is_empty() {
        segment.payload = Payload::Bytes(packet.slice(payload));
    }
    malformed
}
