//! A file in the pcapng format.

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

/// A pcapng file of raw IP packets that is being written.
pub struct Capture {
    /// What is captured, for messages.
    pub(crate) name: String,
    writer: PcapNgWriter<BufWriter<Box<dyn Write + Send>>>,
    /// Nanoseconds in a unit of its time.
    unit: u64,
    /// The first thing that went wrong. Nothing is written after it.
    error: Option<io::Error>,
}

/// A packet as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The number of the interface at which it was.
    pub interface: u32,
    /// When: nanoseconds of the capture's clock.
    pub at: u64,
    /// What was kept of it, from its IP header on.
    pub octets: &'a [u8],
    /// Octets that it had.
    pub original_len: u32,
    /// Whether it came in there, or went out; `None` if that has no meaning there.
    pub inbound: Option<bool>,
    /// What is known of it.
    pub comment: Option<&'a str>,
}

impl Capture {
    /// Begins a file with one interface for each of `interfaces`. Of each packet the first `snaplen` octets are kept (0: all of it), and times in
    /// units of 10^-`digits` s, with at most nine digits.
    pub fn new(name: String, interfaces: &[&str], snaplen: u32, digits: u8, out: Box<dyn Write + Send>) -> io::Result<Self> {
        let out = BufWriter::new(out);
        let digits = digits.min(9);
        let mut writer = PcapNgWriter::with_endianness(out, Endianness::Little).map_err(io_error)?;
        for &interface in interfaces {
            let interface = InterfaceDescriptionOption::IfName(Cow::Borrowed(interface));
            let options = vec![interface, InterfaceDescriptionOption::IfTsResol(digits)];
            let block = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen, options };
            writer.write_block(&block.into_block()).map_err(io_error)?;
        }
        Ok(Self { name, writer, unit: 10_u64.pow(u32::from(9 - digits)), error: None })
    }

    /// Writes a packet.
    pub fn write(&mut self, packet: &Captured<'_>) {
        let comment = packet.comment.map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text)));
        let flags = packet.inbound.map(|inbound| EnhancedPacketOption::Flags(if inbound { 1 } else { 2 }));
        let block = EnhancedPacketBlock {
            interface_id: packet.interface,
            // The writer takes its nanoseconds for units.
            timestamp: Duration::from_nanos(packet.at / self.unit),
            original_len: packet.original_len,
            data: Cow::Borrowed(packet.octets),
            options: flags.into_iter().chain(comment).collect(),
        };
        self.put(block);
    }

    /// Writes how many packets passed an interface until `at`, and how many of them the capture missed.
    pub fn write_statistics(&mut self, interface: u32, at: u64, passed: u64, missed: u64) {
        let units = at / self.unit;
        self.put(InterfaceStatisticsBlock {
            interface_id: interface,
            // The high half comes first, in either byte order; the writer takes it for one number.
            timestamp: units.rotate_left(32),
            options: vec![InterfaceStatisticsOption::IsbIfRecv(passed), InterfaceStatisticsOption::IsbIfDrop(missed)],
        });
    }

    fn put<'a>(&mut self, block: impl PcapNgBlock<'a>) {
        if self.error.is_none() {
            self.error = self.writer.write_block(&block.into_block()).map_err(io_error).err();
        }
    }

    /// Brings everything to its destination.
    pub fn finish(&mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.writer.get_mut().flush(),
        }
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("name", &self.name).finish_non_exhaustive()
    }
}
