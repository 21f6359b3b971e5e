//! The same packets again, as pcapng, with what was found out about them as comments.
//!
//! A comment begins with [`MARK`], so that a display filter finds it and nobody takes it for what others wrote.

use crate::error::{CaptureError, Kind};
use crate::half::Unneeded;
use crate::records;
use crate::report::{Analysis, Loss};
use crate::source::Source;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

/// What our comments begin with.
pub const MARK: &str = "whyloss: ";
/// The exponent of the unit of time: nanoseconds.
const NANOSECONDS: u8 = 9;
/// Records after which the work reports and can be stopped.
const STEP: u64 = 1 << 14;

/// What to write at packets, by their numbers.
#[derive(Debug, Default)]
pub struct Comments(HashMap<u64, String>);

/// What an analysis says of packets.
pub fn comments(analysis: &Analysis) -> Comments {
    let mut comments: HashMap<u64, String> = HashMap::new();
    let mut say = |packet: u64, text: String| {
        comments
            .entry(packet)
            .and_modify(|known| *known = format!("{known}\n{MARK}{text}"))
            .or_insert_with(|| format!("{MARK}{text}"));
    };
    let mut of_repair: HashMap<u64, &Loss> = HashMap::new();
    for loss in &analysis.losses {
        if let Some((repair, _)) = loss.repair {
            of_repair.insert(repair, loss);
        }
        if let Some(packet) = loss.packet {
            let repaired = loss.repair.map_or_else(String::new, |(repair, _)| format!("; sent again as packet {repair}"));
            say(packet, format!("{}{repaired}{}", verdict(loss), evidence(loss)));
        }
    }
    for again in &analysis.retransmissions {
        let what = &again.what;
        let unneeded = what.unneeded.map_or_else(String::new, |shown| format!(", not needed ({})", Unneeded::name(shown)));
        let original = what.before.map_or_else(|| "the first copy".to_owned(), |packet| format!("packet {packet}"));
        let (why, shown) = of_repair
            .get(&what.number)
            .map_or_else(Default::default, |loss| (format!(": {original} {}", verdict(loss)), evidence(loss)));
        say(what.number, format!("sent again ({}){unneeded}{why}{shown}", what.trigger.name()));
    }
    Comments(comments)
}

/// `lost to corruption (93 %)` or `not lost: reordering (99 %)`.
fn verdict(loss: &Loss) -> String {
    let cause = loss.probabilities.likeliest();
    let sure = 100.0 * loss.probabilities.of(cause);
    if cause.arrived() {
        format!("not lost: {} ({sure:.0} %)", cause.name())
    } else {
        format!("lost to {} ({sure:.0} %)", cause.name())
    }
}

fn evidence(loss: &Loss) -> String {
    loss.evidence.iter().fold(String::new(), |text, words| text + "; " + words)
}

/// Writes the packets of captures to `out`, with their own comments and those of `comments`; `summary` becomes a comment of the file.
///
/// Returns how many packets were written. Errors of `out` bear the name `name`.
pub fn annotate(
    sources: Vec<Source>,
    comments: &Comments,
    summary: &str,
    (name, out): (&str, Box<dyn Write + Send>),
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<u64, CaptureError> {
    let fail = |error: PcapError| CaptureError { file: name.to_owned(), kind: Kind::Io(io_error(error)) };
    let mut writer = Annotator::new(out, summary).map_err(fail)?;
    let mut written = 0;
    for (file, source) in sources.into_iter().enumerate() {
        let before = written;
        let mut failure = None;
        records::read(source, &mut |record| {
            let interface = (file, record.interface, record.link.0);
            let comment = comments.0.get(&(before + record.number)).map(String::as_str);
            let result = writer.interface(interface).and_then(|id| writer.packet(id, record, comment));
            failure = result.err();
            written = before + record.number;
            if failure.is_some() || record.number % STEP == 0 && watch(written).is_break() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        if let Some(error) = failure {
            return Err(fail(error));
        }
    }
    writer.writer.get_mut().flush().map_err(|error| fail(PcapError::IoError(error)))?;
    Ok(written)
}

/// An interface of the input: file, number in it, link type.
type From = (usize, u32, i32);

struct Annotator {
    writer: PcapNgWriter<BufWriter<Box<dyn Write + Send>>>,
    interfaces: HashMap<From, u32>,
}

impl Annotator {
    fn new(out: Box<dyn Write + Send>, summary: &str) -> Result<Self, PcapError> {
        let options = vec![SectionHeaderOption::Comment(Cow::Owned(format!("{MARK}{summary}")))];
        let section = SectionHeaderBlock { endianness: Endianness::Little, options, ..SectionHeaderBlock::default() };
        let writer = PcapNgWriter::with_section_header(BufWriter::new(out), section)?;
        Ok(Self { writer, interfaces: HashMap::new() })
    }

    /// The number of an interface in the output, where it is described when it is met.
    fn interface(&mut self, from: From) -> Result<u32, PcapError> {
        if let Some(known) = self.interfaces.get(&from) {
            return Ok(*known);
        }
        let linktype = DataLink::from(from.2 as u32);
        let options = vec![InterfaceDescriptionOption::IfTsResol(NANOSECONDS)];
        self.writer.write_block(&InterfaceDescriptionBlock { linktype, snaplen: 0, options }.into_block())?;
        let id = self.interfaces.len() as u32;
        self.interfaces.insert(from, id);
        Ok(id)
    }

    fn packet(&mut self, interface_id: u32, record: &records::Record, comment: Option<&str>) -> Result<(), PcapError> {
        let said = record.comments().chain(comment.into_iter().flat_map(str::lines).map(clipped));
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: std::time::Duration::from_nanos(record.at.as_nanos()),
            original_len: record.original_len,
            data: Cow::Borrowed(record.octets),
            options: said.map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text))).collect(),
        };
        self.writer.write_block(&block.into_block())?;
        Ok(())
    }
}

/// The first part of a text that is longer than anybody reads.
fn clipped(text: &str) -> &str {
    const MOST: usize = 4000;
    &text[..text.char_indices().map(|(at, _)| at).find(|at| *at >= MOST).unwrap_or(text.len())]
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
