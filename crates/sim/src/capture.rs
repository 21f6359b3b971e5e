//! Packet captures in the pcapng format.
//!
//! Each captured direction of a link is an interface of raw IP packets. A packet is seen where it leaves the link, at the time of its
//! arrival and with its damage; one that does not arrive is seen as it was sent: at the moment at which a full queue refuses it, or at
//! the moment at which it would have arrived. Its comment says what happened.

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

/// The exponent of the unit of time: nanoseconds.
const NANOSECONDS: u8 = 9;

/// A pcapng file that is being written, with an interface for each direction that it shows.
pub struct Capture {
    /// What is captured, for messages.
    pub(crate) link: String,
    writer: PcapNgWriter<BufWriter<Box<dyn Write + Send>>>,
    /// The first thing that went wrong. Nothing is written after it.
    error: Option<io::Error>,
}

/// A direction of a link that is captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tap {
    /// Number of the capture file.
    pub capture: usize,
    /// Number of the interface in it.
    pub interface: u32,
}

impl Capture {
    /// Begins a file with one interface for each of `names`.
    pub fn new(link: String, names: &[&str], out: Box<dyn Write + Send>) -> io::Result<Self> {
        let out = BufWriter::new(out);
        let mut writer = PcapNgWriter::with_endianness(out, Endianness::Little).map_err(io_error)?;
        for &name in names {
            let name = InterfaceDescriptionOption::IfName(Cow::Borrowed(name));
            let options = vec![name, InterfaceDescriptionOption::IfTsResol(NANOSECONDS)];
            let block = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
            writer.write_block(&block.into_block()).map_err(io_error)?;
        }
        Ok(Self { link, writer, error: None })
    }

    /// Writes a packet seen at `now` nanoseconds.
    pub fn write(&mut self, interface: u32, now: u64, octets: &[u8], comment: Option<&str>) {
        if self.error.is_some() {
            return;
        }
        let block = EnhancedPacketBlock {
            interface_id: interface,
            timestamp: Duration::from_nanos(now),
            original_len: octets.len() as u32,
            data: Cow::Borrowed(octets),
            options: comment.into_iter().map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text))).collect(),
        };
        self.error = self.writer.write_block(&block.into_block()).map_err(io_error).err();
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
        f.debug_struct("Capture").field("link", &self.link).finish_non_exhaustive()
    }
}
