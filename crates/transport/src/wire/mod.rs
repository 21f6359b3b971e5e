//! Octets on the wire: IPv4, IPv6 and TCP, to and from a structured [`Segment`].
//!
//! [`emit`] and [`parse`] are each other's inverse for everything that a segment can say. Bytes from the network never panic: any byte
//! string gives a [`Packet`] or an [`Error`]. [`damage::examine`] tells more of a packet whose checksum is broken.
//!
//! ```
//! use bytes::Bytes;
//! use whyloss_transport::segment::{Flags, Segment};
//! use whyloss_transport::wire::{self, ip};
//!
//! let addresses = ip::Addresses::new("192.0.2.1".parse()?, "192.0.2.2".parse()?).ok_or("one family")?;
//! let segment = Segment { src_port: 49152, dst_port: 80, flags: Flags::SYN, ..Segment::default() };
//! let mut octets = Vec::new();
//! wire::emit(&ip::Header { addresses, hop_limit: 64 }, &segment, &mut octets)?;
//! assert_eq!(octets.len(), 40);
//! assert_eq!(wire::parse(&Bytes::from(octets))?.segment, segment);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod checksum;
pub mod damage;
pub mod dccp;
mod experiment;
pub mod fragments;
pub mod icmp;
pub mod ip;
pub mod notices;
pub mod options;
mod probe;
pub mod report;
mod snack;
mod tcp;
pub mod tfrc;

#[cfg(test)]
mod tests;

use crate::segment::Segment;
use bytes::Bytes;
use damage::Arrival;

/// An intact TCP segment with the addresses of the IP header that carried it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What the IP header says. Its traffic class stands in the segment.
    pub header: ip::Header,
    /// The TCP segment that it carries.
    pub segment: Segment,
    /// Where reading the options had to stop, if their lengths make no sense. RFC 9293 (3.1, MUST-7) wants such a segment survived;
    /// stacks in the field process it with the options read so far, which is what `segment` holds.
    pub malformed: Option<options::Malformed>,
}

/// Why a byte string is not an intact TCP segment in an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Fewer octets than the headers claim.
    #[error("the packet needs {needed} octets and has {found}")]
    Truncated {
        /// Octets that the headers claim.
        needed: usize,
        /// Octets that are there.
        found: usize,
    },
    /// Neither IPv4 nor IPv6.
    #[error("IP version {0}; known are 4 and 6")]
    Version(u8),
    /// An IPv4 header length below 20 octets.
    #[error("an IPv4 header of {0} octets; at least 20 are needed")]
    HeaderLength(usize),
    /// An IPv4 total length smaller than the header.
    #[error("an IPv4 total length of {total} octets, less than its header of {header}")]
    TotalLength {
        /// Total length in octets.
        total: usize,
        /// Header length in octets.
        header: usize,
    },
    /// The IPv4 header checksum does not hold.
    #[error("the IPv4 header checksum does not hold")]
    IpChecksum,
    /// A fragment of a larger packet; [`fragments::Reassembler`] puts them together.
    #[error("a fragment of a larger packet")]
    Fragment,
    /// An IPv6 routing header that has not reached its final destination.
    #[error("an IPv6 routing header with {0} segments left")]
    Routing(u8),
    /// Not the protocol that is wanted.
    #[error("protocol {0}; known are TCP (6) and DCCP (33)")]
    Protocol(u8),
    /// Fewer than 20 octets of TCP.
    #[error("a TCP segment of {0} octets; its header has at least 20")]
    TcpTruncated(usize),
    /// The TCP checksum does not hold.
    #[error("the TCP checksum does not hold")]
    TcpChecksum,
    /// A TCP data offset below 20 octets or beyond the end.
    #[error("a TCP data offset of {offset} octets in a segment of {len}")]
    DataOffset {
        /// The offset in octets.
        offset: usize,
        /// The length of the segment in octets.
        len: usize,
    },
}

/// Why a segment has no form on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// More options than a header has room for.
    #[error("the options take {0} octets; a TCP header has room for 40")]
    Options(usize),
    /// An unknown option whose kind is one of the two that have no length (0 and 1).
    #[error("option kind {0} carries no data")]
    OptionKind(u8),
    /// More than an IP packet can hold.
    #[error("a TCP segment of {0} octets does not fit into an IP packet")]
    TooLong(usize),
}

/// Appends the IP packet that carries `segment` to `out`, with all checksums. On an error `out` is unchanged.
pub fn emit(header: &ip::Header, segment: &Segment, out: &mut Vec<u8>) -> Result<(), EmitError> {
    let len = begin(header, segment, 0, out)?;
    tcp::write(&header.addresses, segment, len, out);
    Ok(())
}

/// As [`emit`], but without data: the headers of a packet in which `data` octets follow. The TCP checksum is left to whoever cuts the packet into
/// segments or delivers it; in its place stands the sum of the pseudo-header (as a virtio network device wants it).
pub fn emit_headers(header: &ip::Header, segment: &Segment, data: usize, out: &mut Vec<u8>) -> Result<(), EmitError> {
    debug_assert!(segment.payload.is_empty());
    let len = begin(header, segment, data, out)?;
    tcp::write_partial(&header.addresses, segment, len, out);
    Ok(())
}

/// Appends the IP header for `segment` and `data` more octets, and gives the length of both.
fn begin(header: &ip::Header, segment: &Segment, data: usize, out: &mut Vec<u8>) -> Result<usize, EmitError> {
    let len = tcp::check(segment)? + data;
    if len + header.addresses.header_len() > usize::from(u16::MAX) {
        return Err(EmitError::TooLong(len));
    }
    out.reserve(header.addresses.header_len() + len - data);
    header.write(ip::TCP, segment.dscp, segment.ecn, len as u16, out);
    Ok(len)
}

/// Reads an IP packet that carries an intact TCP segment. The payload is a slice of `octets`, not a copy.
pub fn parse(octets: &Bytes) -> Result<Packet, Error> {
    match damage::examine(octets) {
        Arrival::Intact(packet) => Ok(packet),
        Arrival::Damaged(_) => Err(Error::TcpChecksum),
        Arrival::Unattributable { error, .. } | Arrival::Discarded(error) => Err(error),
    }
}
