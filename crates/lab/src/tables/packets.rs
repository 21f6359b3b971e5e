//! What became of each packet on an emulated link.

use crate::error::Error;
use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use whyloss_sim::{Cause, Truth, WholeFile};
use whyloss_tables::{table, Column};

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFate {
    /// The word for it in the table, such as `lost`.
    pub name: &'static str,
    /// Why it was lost, or will be discarded by whoever gets it.
    pub cause: Option<Cause>,
}

/// A packet that came to an emulated link, or a copy of it.
#[derive(Clone, Copy, Debug)]
pub struct PacketRow<'a> {
    /// From where to where the emulator carries.
    pub direction: &'a str,
    /// The stretch of it on which the packet was lost or damaged, else the last.
    pub link: &'a str,
    /// Number among the packets that came, from 0.
    pub number: u64,
    /// It is a further copy.
    pub copy: bool,
    /// When it came, was to be handed on, and was. Nanoseconds.
    pub times: [u64; 3],
    /// Octets of the IP packet.
    pub octets: u32,
    /// Packets and octets that it found waiting.
    pub found: (u32, u64),
    /// What became of it.
    pub fate: PacketFate,
    /// The agent that made, changed or suppressed it, and whether it made it.
    pub agent: Option<(&'static str, bool)>,
    /// A queue set "congestion experienced".
    pub marked: bool,
    /// Number of bits flipped, and the first of them.
    pub flipped: (u32, u32),
    /// Where it comes from and goes to.
    pub addresses: [IpAddr; 2],
    /// Protocol number of what it carries (RFC 791, 3.1): 6 is TCP.
    pub protocol: u8,
    /// Ports of sender and receiver; 0 where there are none.
    pub ports: [u16; 2],
    /// Sequence and acknowledgement number and flags, of TCP.
    pub tcp: Option<(u32, u32, u8)>,
    /// The identification field of IPv4 (RFC 791, 3.1).
    pub id: u16,
    /// Octets of data behind the transport header.
    pub data_octets: u32,
}

table! {
    /// One row a packet.
    PacketTable |r: PacketRow<'a>| {
        direction: always text = r.direction, "From where to where the emulator carries, `from>to`.";
        link: always text = r.link, "The link on which it was lost or damaged; if it was not, the last one of the direction.";
        number: always u64 = r.number, "Its number among the packets that came to this direction or were made by its middlebox, from 0.";
        copy: always flag = r.copy, "This is a further copy of the packet of that number, made by the link.";
        came_ns: always u64 = r.times[0], "When it came.";
        due_ns: always u64 = r.times[1], "When it was to be handed on, or was lost.";
        left_ns: maybe u64 = r.left(), "When it was handed on; null if it was not. The difference to `due_ns` is the error of the emulator.";
        octets: always u32 = r.octets, "Octets of the IP packet.";
        queue_packets: always u32 = r.found.0, "Packets that it found waiting for the first link of the direction.";
        queue_octets: always u64 = r.found.1, "Their octets.";
        fate: always text = r.fate.name, "`delivered`, `damaged` (handed on with bits flipped), `lost`, `refused` (handed on, but not taken by the kernel), `suppressed` (a middlebox ended its journey: no loss) or `under-way` at the end.";
        cause: maybe text = r.fate.cause.map(Cause::name), "Why it was lost, or where it is damaged: `queue-full`, `aqm`, `policer`, `erased`, `ip-header-damaged`, `transport-header-damaged`, `payload-damaged`, …";
        true_cause: maybe text = r.fate.cause.and_then(|cause| Truth::Lost(cause).class()), "The cause in the terms of differentiation: `congestion` or `corruption`.";
        middlebox: maybe text = r.agent.map(|agent| agent.0), "The middlebox that made, changed or suppressed it.";
        inserted: always flag = r.agent.is_some_and(|agent| agent.1), "The middlebox made it, in the name of its source address.";
        marked: always flag = r.marked, "A queue set \"congestion experienced\" and mended the IP checksum.";
        flipped_bits: always u32 = r.flipped.0, "Number of bits flipped.";
        first_flipped_bit: maybe u32 = Some(r.flipped.1).filter(|_| r.flipped.0 > 0), "The first of them; bit 0 is the most significant bit of the first octet of the IP packet.";
        src: always text = r.addresses[0].to_string(), "Source address.";
        dst: always text = r.addresses[1].to_string(), "Destination address.";
        protocol: always u32 = u32::from(r.protocol), "Protocol number: 6 TCP, 17 UDP, 1 ICMP, 58 ICMPv6.";
        src_port: always u32 = u32::from(r.ports[0]), "Source port; 0 where there is none.";
        dst_port: always u32 = u32::from(r.ports[1]), "Destination port; 0 where there is none.";
        seq: maybe u32 = r.tcp.map(|tcp| tcp.0), "TCP sequence number.";
        ack: maybe u32 = r.tcp.map(|tcp| tcp.1), "TCP acknowledgement number.";
        flags: maybe u32 = r.tcp.map(|tcp| u32::from(tcp.2)), "TCP flags as one number: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK, 32 URG, 64 ECE, 128 CWR.";
        ip_id: always u32 = u32::from(r.id), "Identification of an IPv4 packet.";
        data_octets: always u32 = r.data_octets, "Octets of data behind the transport header.";
    }
}

impl PacketRow<'_> {
    fn left(&self) -> Option<u64> {
        matches!(self.fate.name, "delivered" | "damaged").then_some(self.times[2])
    }
}

/// The columns of `packets.parquet`, for the documentation.
pub(super) fn columns() -> Vec<Column> {
    PacketTable::columns()
}

/// The table of `rows`.
pub fn batch<'a>(rows: impl ExactSizeIterator<Item = PacketRow<'a>>) -> RecordBatch {
    whyloss_tables::batch(PacketTable::batch(rows))
}

/// Writes the table to a Parquet file while it grows. The file has its name only when it is whole.
#[derive(Debug)]
pub struct PacketWriter {
    whole: WholeFile,
    writer: ArrowWriter<File>,
}

impl PacketWriter {
    /// A file at `path`; times count from `start_unix_ns`.
    pub fn create(path: impl AsRef<Path>, start_unix_ns: u64) -> Result<Self, Error> {
        let failed = |source| Error::Write { path: path.as_ref().to_owned(), source };
        if let Some(folder) = path.as_ref().parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let (whole, file) = WholeFile::create(path.as_ref()).map_err(failed)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("whyloss {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(vec![KeyValue::new("start_unix_ns".to_owned(), start_unix_ns.to_string())]))
            .build();
        let schema = batch(std::iter::empty()).schema();
        let writer = ArrowWriter::try_new(file, schema, Some(properties)).map_err(|error| failed(error.into()))?;
        Ok(Self { whole, writer })
    }

    /// Appends rows, which are of the schema of the table.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        let failed = |error: ParquetError| Error::Write { path: self.whole.path().to_owned(), source: error.into() };
        self.writer.write(rows).map_err(failed)
    }

    /// Writes the end of the file and gives it its name.
    pub fn finish(self) -> Result<(), Error> {
        let path = self.whole.path().to_owned();
        let written = self.writer.close().map_err(io::Error::from).and_then(|_| self.whole.keep());
        written.map_err(|source| Error::Write { path, source })
    }
}
