//! DCCP (RFC 4340) on the wire: header, options and checksums.
//!
//! A packet has two checksums. The one in the header covers the header, the options, and as much of the data as *checksum coverage*
//! says (9.2). With the [`Opt::DataChecksum`] option a CRC-32c covers the data alone (9.3). So a packet whose data only is damaged
//! still names its connection and its place, and its receiver can say why the data is missing.
//!
//! ```
//! use bytes::Bytes;
//! use whyloss_transport::segment::Payload;
//! use whyloss_transport::wire::{dccp, ip};
//!
//! let addresses = ip::Addresses::new("192.0.2.1".parse()?, "192.0.2.2".parse()?).ok_or("one family")?;
//! let packet = dccp::Packet {
//!     coverage: 1,
//!     options: vec![dccp::Opt::DataChecksum],
//!     payload: Payload::Bytes(Bytes::from_static(b"123456789")),
//!     ..dccp::Packet::new(49152, 5001, dccp::Kind::Data)
//! };
//! let mut octets = Vec::new();
//! dccp::emit(&ip::Header { addresses, hop_limit: 64 }, &packet, &mut octets)?;
//! octets[50] ^= 1;
//! let arrival = dccp::parse(&Bytes::from(octets))?;
//! assert_eq!((arrival.packet.seq, arrival.data), (packet.seq, dccp::Data::Damaged));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod features;
mod options;
mod vectors;

#[cfg(test)]
mod tests;

pub use features::{number, Feature, FeatureOption};
pub use options::{LossInterval, Opt};
pub use vectors::{Block, DropCode, Run, State};

use super::checksum::Sum;
use super::{ip, Error as IpError};
use crate::segment::{Dscp, Ecn, Payload};
use bytes::Bytes;
use crc::{Crc, Table, CRC_32_ISCSI};
use std::ops::Range;

/// The Castagnoli polynomial (RFC 4340, 9.3; RFC 3309).
static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// Octets of a header with its options, at most: the data offset has eight bits and counts words.
pub const MAX_HEADER: usize = 255 * 4;

/// A 48-bit sequence number as it stands in a header. Serial arithmetic modulo 2^48 (RFC 4340, 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq48(u64);

impl Seq48 {
    const MASK: u64 = (1 << 48) - 1;

    /// The number whose 48 bits are the low ones of `position`.
    pub const fn new(position: u64) -> Self {
        Self(position & Self::MASK)
    }

    /// The number, below 2^48.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The 64-bit position nearest to `reference` whose low 48 bits are this number.
    pub const fn near(self, reference: u64) -> u64 {
        let distance = ((self.0.wrapping_sub(reference) << 16) as i64) >> 16;
        reference.wrapping_add(distance as u64)
    }

    fn octets(self) -> [u8; 6] {
        let [_, _, octets @ ..] = self.0.to_be_bytes();
        octets
    }

    fn read(octets: &[u8]) -> Self {
        Self(octets.iter().take(6).fold(0, |value, octet| value << 8 | u64::from(*octet)))
    }
}

/// A DCCP packet with what the IP header says of it (its ECN codepoint). Addresses belong to the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Port of the endpoint that sent it.
    pub src_port: u16,
    /// Port of the endpoint that it is for.
    pub dst_port: u16,
    /// Sequence number: every packet has its own.
    pub seq: Seq48,
    /// The type with the fields that it brings.
    pub kind: Kind,
    /// `CCVal`, 4 bits for the sender's congestion control.
    pub ccval: u8,
    /// `CsCov`, 4 bits: 0 the header checksum covers all data, `n` the first `(n - 1) * 4` octets.
    pub coverage: u8,
    /// ECN codepoint of the IP header.
    pub ecn: Ecn,
    /// Options in the order of the header.
    pub options: Vec<Opt>,
    /// Application data, which may be synthetic.
    pub payload: Payload,
}

impl Packet {
    /// A packet with nothing but a type.
    pub fn new(src_port: u16, dst_port: u16, kind: Kind) -> Self {
        Self {
            src_port,
            dst_port,
            seq: Seq48::default(),
            kind,
            ccval: 0,
            coverage: 0,
            ecn: Ecn::default(),
            options: Vec::new(),
            payload: Payload::Empty,
        }
    }

    /// Length of the header with options and padding, in octets.
    pub fn header_len(&self) -> usize {
        let options: usize = self.options.iter().map(Opt::len).sum();
        self.kind.header_len() + options.next_multiple_of(4)
    }

    /// Length of header and data, in octets, without the IP header.
    pub fn len(&self) -> usize {
        self.header_len() + self.payload.len()
    }

    /// Whether there is no application data.
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Whether the option is there.
    pub fn has(&self, option: &Opt) -> bool {
        self.options.contains(option)
    }
}

/// The types of RFC 4340, 5.1, each with the fields that it brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    /// Opens a connection.
    Request { service: u32 },
    /// Answers a Request.
    Response { ack: Seq48, service: u32 },
    /// Data without an acknowledgement.
    Data,
    /// An acknowledgement without data.
    Ack { ack: Seq48 },
    /// Application data with an acknowledgement.
    DataAck { ack: Seq48 },
    /// The server asks the client to close.
    CloseReq { ack: Seq48 },
    /// Asks for a Reset that ends the connection.
    Close { ack: Seq48 },
    /// Ends the connection.
    Reset { ack: Seq48, code: u8, data: [u8; 3] },
    /// Asks where the other side stands.
    Sync { ack: Seq48 },
    /// Answers a Sync.
    SyncAck { ack: Seq48 },
}

impl Kind {
    /// The acknowledgement number, if the type has one: all but Request and Data do.
    pub const fn ack(&self) -> Option<Seq48> {
        match *self {
            Self::Request { .. } | Self::Data => None,
            Self::Response { ack, .. }
            | Self::Ack { ack }
            | Self::DataAck { ack }
            | Self::CloseReq { ack }
            | Self::Close { ack }
            | Self::Reset { ack, .. }
            | Self::Sync { ack }
            | Self::SyncAck { ack } => Some(ack),
        }
    }

    /// Whether the application data area counts: not on Acks and on what ends or repairs a connection (RFC 4340, 5.1 and 7.5.4).
    pub const fn carries_data(&self) -> bool {
        matches!(self, Self::Request { .. } | Self::Response { .. } | Self::Data | Self::DataAck { .. })
    }

    const fn number(&self) -> u8 {
        match self {
            Self::Request { .. } => 0,
            Self::Response { .. } => 1,
            Self::Data => 2,
            Self::Ack { .. } => 3,
            Self::DataAck { .. } => 4,
            Self::CloseReq { .. } => 5,
            Self::Close { .. } => 6,
            Self::Reset { .. } => 7,
            Self::Sync { .. } => 8,
            Self::SyncAck { .. } => 9,
        }
    }

    /// Octets of the header without options (RFC 4340, 5.1 to 5.7), with 48-bit sequence numbers.
    pub const fn header_len(&self) -> usize {
        header_len(self.number())
    }
}

const fn header_len(kind: u8) -> usize {
    match kind {
        2 => 16,
        0 => 20,
        1 | 7 => 28,
        _ => 24,
    }
}

/// What the Data Checksum option says of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Data {
    /// It holds, or there is none.
    #[default]
    Intact,
    /// The data is not what was sent.
    Damaged,
}

/// A packet whose header checksum holds, with the addresses of its IP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// What the IP header says. Its ECN field stands in the packet.
    pub header: ip::Header,
    /// The packet. Its options are read up to the first whose length makes no sense.
    pub packet: Packet,
    /// Whether the data is as it was sent.
    pub data: Data,
    /// Whether reading the options had to stop early.
    pub malformed: bool,
}

/// Why octets are not a DCCP packet to look at. RFC 4340, 8.5, step 1 drops all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No IP packet with DCCP in it.
    #[error(transparent)]
    Ip(#[from] IpError),
    /// Fewer octets than the header of its type.
    #[error("a DCCP packet of {0} octets; the header of its type has more")]
    Truncated(usize),
    /// A packet type that is reserved.
    #[error("DCCP packet type {0}; known are 0 to 9")]
    Type(u8),
    /// Short sequence numbers, which the engine does not allow (RFC 4340, 7.6.1).
    #[error("short sequence numbers (X=0), which were not allowed")]
    ShortSequenceNumber,
    /// A data offset inside the fixed header or beyond the end.
    #[error("a DCCP data offset of {offset} octets in a packet of {len}")]
    DataOffset {
        /// The offset in octets.
        offset: usize,
        /// The length of the packet in octets.
        len: usize,
    },
    /// Checksum coverage beyond the end of the data.
    #[error("checksum coverage {coverage} with {data} octets of data")]
    Coverage {
        /// Checksum coverage, `CsCov`.
        coverage: u8,
        /// Octets of application data.
        data: usize,
    },
    /// The header checksum does not hold.
    #[error("the DCCP header checksum does not hold")]
    Checksum,
}

/// Why a packet has no form on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// More options than a header has room for.
    #[error("a DCCP header of {0} octets; at most 1020 have a form")]
    Header(usize),
    /// An option with more data than its length field can say, or an unknown option of a kind that is known.
    #[error("an option of kind {0} has no form")]
    Option(u8),
    /// A field with more than its four bits, or coverage of more data than there is.
    #[error("checksum coverage {coverage} and CCVal {ccval} with {data} octets of data have no form")]
    Field {
        /// Checksum coverage, `CsCov`.
        coverage: u8,
        /// Value for the congestion control, `CCVal`.
        ccval: u8,
        /// Octets of application data.
        data: usize,
    },
    /// More than an IP packet can hold.
    #[error("a DCCP packet of {0} octets does not fit into an IP packet")]
    TooLong(usize),
}

/// Octets of data that the header checksum covers (RFC 4340, 9.2).
fn covered(coverage: u8, data: usize) -> Option<usize> {
    match usize::from(coverage) {
        0 => Some(data),
        coverage => Some((coverage - 1) * 4).filter(|covered| *covered <= data),
    }
}

/// Appends the IP packet that carries `packet` to `out`, with all checksums. On an error `out` is unchanged.
pub fn emit(header: &ip::Header, packet: &Packet, out: &mut Vec<u8>) -> Result<(), EmitError> {
    let Packet { coverage, ccval, .. } = *packet;
    let (header_len, len, data) = (packet.header_len(), packet.len(), packet.payload.len());
    if header_len > MAX_HEADER {
        return Err(EmitError::Header(header_len));
    }
    packet.options.iter().try_for_each(Opt::check)?;
    let covered = covered(coverage, data).filter(|_| coverage < 16 && ccval < 16);
    let Some(covered) = covered else { return Err(EmitError::Field { coverage, ccval, data }) };
    if len + header.addresses.header_len() > usize::from(u16::MAX) {
        return Err(EmitError::TooLong(len));
    }
    header.write(ip::DCCP, Dscp::DEFAULT, packet.ecn, len as u16, out);
    let start = out.len();
    out.extend_from_slice(&packet.src_port.to_be_bytes());
    out.extend_from_slice(&packet.dst_port.to_be_bytes());
    // Type with X=1: 48-bit sequence numbers.
    out.extend_from_slice(&[(header_len / 4) as u8, ccval << 4 | coverage, 0, 0, packet.kind.number() << 1 | 1, 0]);
    out.extend_from_slice(&packet.seq.octets());
    if let Some(ack) = packet.kind.ack() {
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&ack.octets());
    }
    match packet.kind {
        Kind::Request { service } | Kind::Response { service, .. } => out.extend_from_slice(&service.to_be_bytes()),
        Kind::Reset { code, data, .. } => {
            out.push(code);
            out.extend_from_slice(&data);
        }
        _ => {}
    }
    let payload = packet.payload.to_bytes();
    for option in &packet.options {
        option.write(data_checksum(&payload), out);
    }
    out.resize(start + header_len, 0);
    let checksum = checksum(&header.addresses, len, &out[start..], &payload[..covered]);
    out[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(&payload);
    Ok(())
}

/// The header checksum; 0 over a header that holds a right one (RFC 4340, 9.1). The covered data is padded to an even length.
fn checksum(addresses: &ip::Addresses, len: usize, header: &[u8], covered: &[u8]) -> u16 {
    let data = Sum::default().with(covered).finish();
    addresses.pseudo_header_of(ip::DCCP, len).with(header).with_u16(!data).finish()
}

/// The CRC-32c of the data; 0 for no data (RFC 4340, 9.3).
pub fn data_checksum(data: &[u8]) -> u32 {
    if data.is_empty() {
        0
    } else {
        CRC32C.checksum(data)
    }
}

/// Reads an IP packet that carries DCCP. The payload is a slice of `octets`, not a copy.
pub fn parse(octets: &Bytes) -> Result<Arrival, Error> {
    examine(octets).1
}

/// Like [`parse`], and tells the IP header of a packet that is to be dropped for what follows it.
pub fn examine(octets: &Bytes) -> (Option<ip::Header>, Result<Arrival, Error>) {
    match ip::read(octets, ip::DCCP) {
        Ok(datagram) => (Some(datagram.header), read(octets, datagram.header, ip::ecn(datagram.traffic_class), datagram.body)),
        Err(error) => (None, Err(error.into())),
    }
}

fn read(octets: &Bytes, header: ip::Header, ecn: Ecn, body: Range<usize>) -> Result<Arrival, Error> {
    let packet = &octets[body.clone()];
    let len = packet.len();
    let generic: &[u8; 16] = packet.first_chunk().ok_or(Error::Truncated(len))?;
    let kind = generic[8] >> 1 & 0x0F;
    if kind > 9 {
        return Err(Error::Type(kind));
    }
    if generic[8] & 1 == 0 {
        return Err(Error::ShortSequenceNumber);
    }
    let fixed = packet.get(..header_len(kind)).ok_or(Error::Truncated(len))?;
    let offset = usize::from(generic[4]) * 4;
    if offset < fixed.len() || offset > len {
        return Err(Error::DataOffset { offset, len });
    }
    let (whole_header, data) = packet.split_at(offset);
    let coverage = generic[5] & 0x0F;
    let covered = covered(coverage, data.len()).ok_or(Error::Coverage { coverage, data: data.len() })?;
    if checksum(&header.addresses, len, whole_header, &data[..covered]) != 0 {
        return Err(Error::Checksum);
    }
    let (options, crc, malformed) = options::read(octets, body.start + fixed.len()..body.start + offset);
    let damaged = crc.is_some_and(|crc| crc != data_checksum(data));
    Ok(Arrival {
        header,
        packet: Packet {
            src_port: u16::from_be_bytes([generic[0], generic[1]]),
            dst_port: u16::from_be_bytes([generic[2], generic[3]]),
            seq: Seq48::read(&generic[10..]),
            kind: read_kind(kind, fixed),
            ccval: generic[5] >> 4,
            coverage,
            ecn,
            options,
            payload: if data.is_empty() { Payload::Empty } else { Payload::Bytes(octets.slice(body.start + offset..body.end)) },
        },
        data: if damaged { Data::Damaged } else { Data::Intact },
        malformed,
    })
}

/// The type and its fields; `fixed` has the length of the type's header.
fn read_kind(kind: u8, fixed: &[u8]) -> Kind {
    let ack = || Seq48::read(&fixed[18..]);
    let service = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    match kind {
        0 => Kind::Request { service: service(16) },
        1 => Kind::Response { ack: ack(), service: service(24) },
        2 => Kind::Data,
        3 => Kind::Ack { ack: ack() },
        4 => Kind::DataAck { ack: ack() },
        5 => Kind::CloseReq { ack: ack() },
        6 => Kind::Close { ack: ack() },
        7 => Kind::Reset { ack: ack(), code: fixed[24], data: [fixed[25], fixed[26], fixed[27]] },
        8 => Kind::Sync { ack: ack() },
        _ => Kind::SyncAck { ack: ack() },
    }
}
