//! What a packet whose checksum is broken still tells.
//!
//! A receiver that is to report corruption (Garcia & Brunstrom 2004) has to find out which connection a damaged segment belonged to.
//!
//! - **IPv4.** The header checksum covers addresses, lengths, protocol and ECN field. If it does not hold the packet is dropped, and
//!   its loss will look like congestion. If it holds, only the TCP segment is damaged. Its ports are covered by nothing else; that
//!   they match a connection is evidence, for the driver to look up as with any segment. Everything else in the segment is readable
//!   but proves nothing by itself. So a packet is not attributable when one of 24 octets is hit: the IP header (20) and the ports (4).
//! - **IPv6.** There is no header checksum: only the TCP checksum covers the addresses, and nothing the hop limit and the ECN field.
//!   When it is broken, all of the header is as suspect as the segment ([`Damaged::ip_header_vouched`] is false). A match of
//!   addresses and ports is still strong evidence of *whose* packet it was, but neither the absence nor the presence of a CE mark can be
//!   believed, so a receiver should report such a packet only where something else vouches for it, such as an echoed nonce.
//! - An intact checksum is not proof either: a 16-bit one's-complement sum misses opposite flips in the same bit column
//!   (Stone & Partridge 2000), and with them every set of flips whose signed sum is a multiple of 65535.

use super::{ip, tcp, Error, Packet};
use crate::segment::{Integrity, Segment};
use bytes::Bytes;

/// What arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// All checksums hold.
    Intact(Packet),
    /// The TCP checksum does not hold; this is what can be read.
    Damaged(Damaged),
    /// The IP header is well-formed, but what follows is too short to name a connection.
    Unattributable {
        /// The IP header.
        header: ip::Header,
        /// What is wrong.
        error: Error,
    },
    /// To be dropped as any stack would: a damaged or malformed IP header, not TCP, a fragment, or a TCP header that makes no sense
    /// under a checksum that holds.
    Discarded(Error),
}

/// A segment with a broken checksum. Trust only what is confirmed independently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The IP header.
    pub header: ip::Header,
    /// What the octets say. Options are read up to the first whose length makes no sense; with a data offset that makes none the
    /// header counts as 20 octets.
    pub segment: Segment,
    /// What is known of the TCP header.
    pub integrity: Integrity,
    /// Whether a checksum of its own vouches for the IP header: true for IPv4, false for IPv6.
    pub ip_header_vouched: bool,
}

/// Reads any byte string as an IP packet. Payload and unknown options are slices of `octets`.
pub fn examine(octets: &Bytes) -> Arrival {
    let ip::Datagram { header, ecn, body } = match ip::read(octets) {
        Ok(datagram) => datagram,
        Err(error) => return Arrival::Discarded(error),
    };
    let body = octets.slice(body);
    let Some(fixed) = body.first_chunk() else {
        return Arrival::Unattributable { header, error: Error::TcpTruncated(body.len()) };
    };
    if header.addresses.pseudo_header(body.len()).with(&body).finish() == 0 {
        return match tcp::read(&body, fixed, ecn) {
            Ok((segment, malformed)) => Arrival::Intact(Packet { header, segment, malformed }),
            Err(error) => Arrival::Discarded(error),
        };
    }
    Arrival::Damaged(Damaged {
        header,
        segment: tcp::read_damaged(&body, fixed, ecn),
        // Nothing in these octets is independent of the broken checksum.
        integrity: Integrity::HeaderSuspect,
        ip_header_vouched: matches!(header.addresses, ip::Addresses::V4 { .. }),
    })
}

/// Flips bits: bit 0 is the first on the wire, the most significant of the first octet. Bits beyond the end are ignored.
pub fn flip_bits(octets: &mut [u8], bits: impl IntoIterator<Item = u64>) {
    for bit in bits {
        if let Some(octet) = octets.get_mut((bit / 8) as usize) {
            *octet ^= 0x80 >> (bit % 8);
        }
    }
}
