//! The records of a capture: packets as they were captured, each with its time.

use crate::cut::{Cut, Layout, Order};
use crate::error::{CaptureError, Kind, Remark};
use crate::link::is_known;
use crate::source::Source;
use pcap_parser::pcapng::{Block, OptionCode, PcapNGOption};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{create_reader, LegacyPcapBlock, Linktype, PcapBlockOwned, PcapError, PcapHeader};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use whyloss_transport::time::Instant;

/// Octets that are read at once.
const BUFFER: usize = 1 << 20;
/// Octets of the header of a pcap file.
const PCAP_HEADER: usize = 24;
/// A first block that claims to be longer is damage.
const MAX_FIRST_BLOCK: usize = 1 << 16;
/// A block that claims to be longer than this is damage.
const MAX_BLOCK: usize = 64 << 20;
/// Interfaces of a pcapng file that are told apart; what is captured on further ones is not read.
pub const MAX_INTERFACES: usize = 4096;
/// Remarks that are kept of one capture; further ones are counted.
const MAX_REMARKS: usize = 100;

/// A captured packet.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its number in the capture, from 1, as Wireshark counts.
    pub number: u64,
    /// When it was captured: time since the epoch of the file's clock, that of Unix as a rule.
    pub at: Instant,
    /// The interface on which it was captured, by its number in the file.
    pub interface: u32,
    /// What its first header is.
    pub link: Linktype,
    /// What was captured of it.
    pub octets: &'a [u8],
    /// Octets that it had.
    pub original_len: u32,
    /// What somebody wrote at it; the first of several.
    pub comment: Option<&'a str>,
    /// All that pcapng says of it, unless that is one comment at most.
    options: &'a [PcapNGOption<'a>],
}

impl<'a> Record<'a> {
    /// One of an IP packet that was captured whole.
    #[cfg(test)]
    pub(crate) fn of(number: u64, at: Instant, octets: &'a [u8]) -> Self {
        let original_len = octets.len() as u32;
        Self { number, at, interface: 0, link: Linktype::RAW, octets, original_len, comment: None, options: &[] }
    }

    /// All that somebody wrote at it.
    pub fn comments(&self) -> impl Iterator<Item = &'a str> {
        let several = self.options.iter().filter(|option| option.code == OptionCode::Comment);
        let alone = self.comment.filter(|_| self.options.is_empty());
        several.filter_map(|option| option.as_str().ok()).chain(alone)
    }
}

/// What a capture says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Records in it.
    pub packets: u64,
    /// Packets that the capture's own counters say it missed: dropped by interface, operating system or capturing program.
    pub missed: Option<u64>,
    /// Times at which the clock went back.
    pub backward: u64,
    /// Packets of which a part was cut off.
    pub cut: u64,
    /// Link types of its packets that are not known here.
    pub unknown_links: Vec<i32>,
    /// What was noticed.
    pub remarks: Vec<Remark>,
    /// Further remarks that are not kept.
    pub more_remarks: u64,
}

impl About {
    pub(crate) fn remark(&mut self, text: String) {
        if self.remarks.len() == MAX_REMARKS {
            self.more_remarks += 1;
            return;
        }
        self.remarks.push(Remark { packet: self.packets, text });
    }
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Linktype,
    /// Units of its clock in a second.
    units: u64,
    /// Seconds to add.
    offset: i64,
    missed: u64,
    /// The length to which packets are cut, if it is not 0.
    snaplen: u32,
    /// Nanoseconds in a unit, if that is a whole number.
    unit: Option<u64>,
}

impl Interface {
    fn new(link: Linktype, units: u64, offset: i64, snaplen: u32) -> Self {
        let unit = Some(1_000_000_000 / units).filter(|unit| unit * units == 1_000_000_000);
        Self { link, units, offset, missed: 0, snaplen, unit }
    }

    fn time(&self, units: u64) -> Instant {
        if let Some(unit) = self.unit.filter(|_| self.offset == 0) {
            return Instant::from_nanos(units.saturating_mul(unit));
        }
        let seconds = (units / self.units).saturating_add_signed(self.offset);
        let nanos = u128::from(units % self.units) * 1_000_000_000 / u128::from(self.units);
        Instant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos as u64))
    }
}

/// Units of time in a second: a power of 2 if the first bit is set, of 10 otherwise.
fn resolution(exponent: u8) -> Option<u64> {
    let (base, exponent) = if exponent & 0x80 == 0 { (10u64, exponent) } else { (2, exponent & 0x7F) };
    base.checked_pow(u32::from(exponent))
}

/// The header of a pcap file, or the first block of a pcapng file: the parser wants it whole at once, which a pipe may not give.
///
/// No more than that is waited for, as the first packets of a live capture are wanted at once.
fn first_block(mut octets: Watched) -> io::Result<(Vec<u8>, Watched)> {
    const SECTION: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];
    const BIG_ENDIAN: [u8; 4] = [0x1A, 0x2B, 0x3C, 0x4D];
    let mut first = Vec::new();
    octets.by_ref().take(PCAP_HEADER as u64).read_to_end(&mut first)?;
    if let [a, b, c, d, len @ ..] = first.as_slice() {
        if [*a, *b, *c, *d] == SECTION && len.len() == PCAP_HEADER - SECTION.len() {
            let order = Order::of(len[4..8] == BIG_ENDIAN);
            let len = order.u32(len, 0).unwrap_or_default() as usize;
            let rest = len.min(MAX_FIRST_BLOCK).saturating_sub(PCAP_HEADER);
            octets.by_ref().take(rest as u64).read_to_end(&mut first)?;
        }
    }
    Ok((first, octets))
}

/// Why a read failed, which the parser does not pass on.
type Failure = Arc<Mutex<Option<io::Error>>>;

struct Watched {
    octets: Box<dyn Read + Send>,
    failure: Failure,
}

impl Read for Watched {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.octets.read(out) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What was read before the failure stays readable: to the parser the capture ends here.
                Err(error) => {
                    *self.failure.lock().expect("no panic while held") = Some(error);
                    return Ok(0);
                }
                read => return read,
            }
        }
    }
}

/// Reads a capture and hands each packet to `visit`, until that says to stop.
///
/// A capture that is damaged or cut is read as far as possible; what was wrong stands in the remarks.
pub fn read(source: Source, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> Result<About, CaptureError> {
    let Source { name, octets } = source;
    let failure = Failure::default();
    let watched = Watched { octets, failure: failure.clone() };
    let failed = || failure.lock().expect("no panic while held").take();
    let (first, watched) = first_block(watched).map_err(|error| CaptureError { file: name.clone(), kind: error.into() })?;
    let begins: Vec<_> = first.iter().take(8).map(|octet| format!("{octet:02x}")).collect();
    let error = |kind: Kind| CaptureError { file: name.clone(), kind };
    let whole = io::Cursor::new(first).chain(watched);
    let reader = match create_reader(BUFFER, whole) {
        Ok(reader) => reader,
        Err(why) => {
            return Err(error(match (failed(), why) {
                (Some(cause), _) => cause.into(),
                (None, PcapError::Eof) => Kind::Empty,
                (None, _) => Kind::NoCapture { found: begins.join(" ") },
            }));
        }
    };
    let mut reading = Reading {
        about: About::default(),
        interfaces: Vec::new(),
        nanoseconds: false,
        layout: Layout::Other,
        big_endian: false,
        latest: Instant::ZERO,
    };
    reading.run(reader, visit);
    if let Some(cause) = failed() {
        reading.about.remark(format!("reading failed here: {cause}"));
    }
    reading.end_section();
    Ok(reading.about)
}

/// The files of a set in the order of their first packets, which that of their names need not be.
///
/// Where the standard input is among them, they stay as they are. One that is no capture is an error, and so is one that is there twice; one
/// without packets comes first.
pub fn in_time_order(files: Vec<PathBuf>) -> Result<Vec<PathBuf>, CaptureError> {
    if files.len() < 2 || files.iter().any(|file| file.as_os_str() == "-") {
        return Ok(files);
    }
    let mut timed = Vec::new();
    for file in files {
        let mut began = None;
        read(Source::open(&file)?, &mut |record| {
            began = Some((record.at, record.octets.to_vec()));
            ControlFlow::Break(())
        })?;
        timed.push((began, file));
    }
    timed.sort_by(|(one, _), (other, _)| one.cmp(other));
    if let Some(pair) = timed.windows(2).find(|pair| pair[0].0.is_some() && pair[0].0 == pair[1].0) {
        let [other, file] = [0, 1].map(|number| pair[number].1.display().to_string());
        return Err(CaptureError { file, kind: Kind::Twice { other } });
    }
    Ok(timed.into_iter().map(|(_, file)| file).collect())
}

/// What comes next in the file.
enum Step {
    /// A block of so many octets, and what the visitor said of it.
    Block(usize, ControlFlow<()>),
    More,
    End,
    Cut,
    Damaged,
}

struct Reading {
    about: About,
    interfaces: Vec<Interface>,
    nanoseconds: bool,
    layout: Layout,
    /// The section of a pcapng file is written so.
    big_endian: bool,
    latest: Instant,
}

impl Reading {
    fn run(&mut self, mut reader: Box<dyn PcapReaderIterator + Send + '_>, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) {
        let mut capacity = BUFFER;
        loop {
            let (plain, flow) = self.plain(reader.data(), visit);
            reader.consume(plain);
            if flow.is_break() {
                return;
            }
            let step = match reader.next() {
                Ok((len, block)) => Step::Block(len, self.block(block, visit)),
                Err(PcapError::Eof) => Step::End,
                Err(PcapError::Incomplete(_) | PcapError::BufferTooSmall) => Step::More,
                Err(PcapError::UnexpectedEof) => Step::Cut,
                Err(_) => Step::Damaged,
            };
            match step {
                Step::Block(len, flow) => {
                    reader.consume(len);
                    if flow.is_break() {
                        return;
                    }
                }
                Step::End => return,
                Step::More if !reader.reader_exhausted() => {
                    if reader.data().len() >= capacity {
                        capacity *= 2;
                        if capacity > MAX_BLOCK || !reader.grow(capacity) {
                            let limit = MAX_BLOCK >> 20;
                            return self.about.remark(format!(
                                "the next record claims to be longer than {limit} MiB; nothing after it is read"
                            ));
                        }
                    }
                    if reader.refill().is_err() {
                        return;
                    }
                }
                Step::More | Step::Cut => {
                    let there = reader.data().len();
                    return self.about.remark(format!(
                        "the capture is cut in the middle of the next record, of which {there} octets are there"
                    ));
                }
                Step::Damaged => return self.about.remark("the next record is damaged; nothing after it is read".to_owned()),
            }
        }
    }

    /// Takes the plain records at the beginning of what was read; says how many octets they are.
    fn plain(&mut self, octets: &[u8], visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> (usize, ControlFlow<()>) {
        let mut at = 0;
        while let Some(cut) = self.layout.cut(&octets[at..]) {
            let Some(interface) = self.interfaces.get(cut.interface as usize).copied() else { break };
            let Cut { size, interface: number, time: (upper, lower), octets, original_len, comment } = cut;
            let time = match self.layout {
                Layout::Classic(_) => self.classic_time(upper, lower),
                _ => interface.time(u64::from(upper) << 32 | u64::from(lower)),
            };
            at += size;
            let record = Record {
                number: 0,
                at: time,
                interface: number,
                link: interface.link,
                octets,
                original_len,
                comment,
                options: &[],
            };
            if self.packet(record, visit).is_break() {
                return (at, ControlFlow::Break(()));
            }
        }
        (at, ControlFlow::Continue(()))
    }

    fn classic_time(&self, seconds: u32, fraction: u32) -> Instant {
        let fraction = u64::from(fraction) * if self.nanoseconds { 1 } else { 1000 };
        Instant::from_nanos(u64::from(seconds) * 1_000_000_000 + fraction)
    }

    fn block(&mut self, block: PcapBlockOwned, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> ControlFlow<()> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => self.begin(&header),
            PcapBlockOwned::Legacy(block) => return self.legacy(&block, visit),
            PcapBlockOwned::NG(Block::SectionHeader(header)) => {
                self.end_section();
                self.big_endian = header.big_endian();
                self.layout = Layout::Blocks(Order::of(self.big_endian));
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
                if self.interfaces.len() == MAX_INTERFACES {
                    self.about.remark(format!("more than {MAX_INTERFACES} interfaces; packets of further ones are not read"));
                }
                let units = resolution(described.if_tsresol);
                if units.is_none() {
                    self.about.remark("an interface whose time has no possible resolution; microseconds are taken".to_owned());
                }
                let offset = if self.big_endian { described.ts_offset().swap_bytes() } else { described.ts_offset() };
                self.interfaces.push(Interface::new(described.linktype, units.unwrap_or(1_000_000), offset, described.snaplen));
                self.interfaces.truncate(MAX_INTERFACES);
            }
            PcapBlockOwned::NG(Block::InterfaceStatistics(statistics)) => {
                let dropped = [statistics.isb_ifdrop(), statistics.isb_osdrop()];
                // The parser takes the counters for little-endian whatever the file is.
                let swap = |count: u64| if self.big_endian { count.swap_bytes() } else { count };
                let missed = dropped.into_iter().flatten().flatten().map(swap).fold(0, u64::saturating_add);
                self.about.missed.get_or_insert(0);
                if let Some(interface) = self.interfaces.get_mut(statistics.if_id as usize) {
                    interface.missed = missed;
                }
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let Some(interface) = self.interface(packet.if_id) else { return ControlFlow::Continue(()) };
                let at = interface.time(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low));
                let comment = packet.options.iter().find(|option| option.code == OptionCode::Comment);
                let record = Record {
                    number: 0,
                    at,
                    interface: packet.if_id,
                    link: interface.link,
                    octets: packet.packet_data(),
                    original_len: packet.origlen,
                    comment: comment.and_then(|option| option.as_str().ok()),
                    options: &packet.options,
                };
                return self.packet(record, visit);
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                // A simple packet has no time: that of the one before is the best guess.
                let Some(interface) = self.interface(0) else { return ControlFlow::Continue(()) };
                let limit = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
                let octets = packet.packet_data();
                let octets = &octets[..octets.len().min(limit as usize)];
                let (at, link, original_len) = (self.latest, interface.link, packet.origlen);
                return self.packet(
                    Record { number: 0, at, interface: 0, link, octets, original_len, comment: None, options: &[] },
                    visit,
                );
            }
            PcapBlockOwned::NG(_) => {}
        }
        ControlFlow::Continue(())
    }

    /// Its interfaces are not those of the next one; what their counters say adds up.
    fn end_section(&mut self) {
        let missed = self.interfaces.drain(..).map(|interface| interface.missed);
        self.about.missed = self.about.missed.map(|before| missed.fold(before, u64::saturating_add));
    }

    fn begin(&mut self, header: &PcapHeader) {
        self.nanoseconds = header.is_nanosecond_precision();
        // The upper bits say how long a frame check sequence is.
        let link = Linktype(header.network.0 & 0xFFFF);
        self.interfaces = vec![Interface::new(link, 1_000_000_000, 0, header.snaplen)];
        if !header.is_modified_format() {
            self.layout = Layout::Classic(Order::of(header.is_bigendian()));
        }
    }

    fn legacy(&mut self, block: &LegacyPcapBlock, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> ControlFlow<()> {
        let at = self.classic_time(block.ts_sec, block.ts_usec);
        let link = self.interfaces[0].link;
        self.packet(
            Record {
                number: 0,
                at,
                interface: 0,
                link,
                octets: block.data,
                original_len: block.origlen,
                comment: None,
                options: &[],
            },
            visit,
        )
    }

    /// The interface of that number.
    fn interface(&mut self, number: u32) -> Option<Interface> {
        let found = self.interfaces.get(number as usize).copied();
        if found.is_none() {
            self.about.packets += 1;
            self.about.remark(format!("of interface {number}, which is not described; the packet is not read"));
        }
        found
    }

    /// Counts a packet, and hands it on.
    fn packet(&mut self, mut record: Record, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> ControlFlow<()> {
        self.about.packets += 1;
        self.about.cut += u64::from((record.octets.len() as u64) < u64::from(record.original_len));
        self.about.backward += u64::from(record.at < self.latest);
        self.latest = record.at;
        record.number = self.about.packets;
        record.original_len = record.original_len.max(record.octets.len() as u32);
        let link = record.link;
        if !is_known(link) && !self.about.unknown_links.contains(&link.0) {
            self.about.unknown_links.push(link.0);
            self.about.remark(format!("link type {} is not known here; packets of it are not read", link.0));
        }
        visit(&record)
    }
}
