//! The packets of an emulator as captures, one at each end, with what became of them as comments.

use super::collect::{Sink, SinkError};
use super::record::{Chunk, PacketFate, Record};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::path::Path;
use whyloss_sim::{Capture, Captured, WholeFile};

/// Octets of packets that wait for those before them.
const MAX_WAITING: usize = 64 << 20;

/// Captures that grow, one at each end of the emulated directions: a packet is seen where it comes from when it comes, and where it goes to when
/// and as it gets there. A file has its name only when it is whole.
#[derive(Debug)]
pub struct PacketCapture {
    start_unix_ns: u64,
    directions: Vec<String>,
    ends: Vec<End>,
}

/// One end, and what passes there.
#[derive(Debug)]
struct End {
    name: String,
    whole: WholeFile,
    capture: Capture,
    /// In the order of time, then of coming here.
    waiting: BinaryHeap<Reverse<Passing>>,
    /// Octets in them.
    octets: usize,
    passed: u64,
}

/// A packet that passes an end.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Passing {
    at: u64,
    number: u64,
    inbound: bool,
    octets: Vec<u8>,
    original_len: u32,
    comment: String,
}

impl PacketCapture {
    /// Files beside `path`, whose names end in those of the ends, for `directions` such as `a>b`; the clock of the records began at
    /// `start_unix_ns`.
    pub fn create(path: &Path, start_unix_ns: u64, directions: &[&str]) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut ends: Vec<End> = Vec::new();
        for name in directions.iter().flat_map(|direction| ends_of(direction)) {
            if !ends.iter().any(|end| end.name == name) {
                ends.push(End::create(path, name)?);
            }
        }
        Ok(Self { start_unix_ns, directions: directions.iter().map(|&name| name.to_owned()).collect(), ends })
    }

    fn see(&mut self, record: &Record, [came, left]: [&[u8]; 2]) {
        let direction = &self.directions[usize::from(record.direction)];
        let note = record.note(self.start_unix_ns, direction);
        let [from, to] = ends_of(direction);
        // A copy was made on the way, and so was what an agent has made.
        let made = record.copy || record.agent.is_some_and(|agent| agent.made);
        let arrives = matches!(record.fate, PacketFate::Delivered | PacketFate::Damaged(_));
        for end in &mut self.ends {
            if end.name == from && !made {
                let comment = whyloss_sim::Note { damage: None, marked: false, ..note }.to_string();
                // An agent may have changed its length since.
                let len = if record.agent.is_some() { came.len() as u32 } else { record.octets };
                end.pass(self.start_unix_ns + record.came, false, came, len, comment);
            }
            if end.name == to && arrives {
                end.pass(self.start_unix_ns + record.left, true, left, record.octets, note.to_string());
            }
        }
    }
}

/// Where a direction comes from, and where it goes.
fn ends_of(direction: &str) -> [&str; 2] {
    direction.split_once('>').map_or([direction; 2], |(from, to)| [from, to])
}

impl End {
    fn create(path: &Path, name: &str) -> io::Result<Self> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let own = path.with_file_name(format!("{stem}-{name}.pcapng"));
        let (whole, file) = WholeFile::create(&own)?;
        let capture = Capture::new(own.display().to_string(), &[name], 0, 9, Box::new(file))?;
        Ok(Self { name: name.to_owned(), whole, capture, waiting: BinaryHeap::new(), octets: 0, passed: 0 })
    }

    fn pass(&mut self, at: u64, inbound: bool, octets: &[u8], original_len: u32, comment: String) {
        self.passed += 1;
        self.octets += octets.len();
        let (number, octets) = (self.passed, octets.to_vec());
        self.waiting.push(Reverse(Passing { at, number, inbound, octets, original_len, comment }));
        while self.octets > MAX_WAITING {
            self.write_first();
        }
    }

    fn write_first(&mut self) {
        let Some(Reverse(Passing { at, inbound, octets, original_len, comment, .. })) = self.waiting.pop() else { return };
        self.octets -= octets.len();
        let (inbound, comment) = (Some(inbound), Some(comment.as_str()));
        self.capture.write(&Captured { interface: 0, at, octets: &octets, original_len, inbound, comment });
    }
}

impl Sink for PacketCapture {
    fn take(&mut self, chunk: &Chunk) -> Result<(), SinkError> {
        for (record, octets) in chunk.packets() {
            self.see(record, octets);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        for mut end in self.ends {
            while !end.waiting.is_empty() {
                end.write_first();
            }
            end.capture.finish()?;
            end.whole.keep()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;
    use whyloss_sim::Cause;

    #[test]
    fn each_end_has_what_passes_there_in_the_order_of_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out").join("packets.pcapng");
        let begin = || {
            let mut capture = Box::new(PacketCapture::create(&path, 1_000, &["a>b", "b>a"]).unwrap());
            let mut chunk = Chunk::new(u32::MAX);
            let base = Record { octets: 4, ..record(0) };
            chunk.push(Record { came: 5, left: 90, ..base }, b"late", None);
            chunk.push(Record { came: 7, left: 8, fate: PacketFate::Lost(Cause::Erased), ..base }, b"lost", None);
            chunk.push(
                Record { came: 9, left: 70, fate: PacketFate::Damaged(Cause::PayloadDamaged), flipped: 1, ..base },
                b"harm",
                Some(b"hurt"),
            );
            chunk.push(Record { came: 60, left: 80, direction: 1, ..base }, b"back", None);
            capture.take(&chunk).unwrap();
            capture
        };
        drop(begin());
        assert!(std::fs::read_dir(path.parent().unwrap()).unwrap().next().is_none());
        begin().finish().unwrap();
        let order = |name: &str| {
            let octets = std::fs::read(path.with_file_name(name)).unwrap();
            let at = |wanted: &&str| octets.windows(4).position(|window| window == wanted.as_bytes());
            let mut found: Vec<_> =
                ["late", "lost", "harm", "hurt", "back"].into_iter().filter_map(|word| Some((at(&word)?, word))).collect();
            // The words are those of packets: comments say "lost at".
            found.retain(|(at, word)| *word != "lost" || !octets[*at..].starts_with(b"lost at"));
            found.sort_unstable();
            found.into_iter().map(|(_, word)| word).collect::<Vec<_>>()
        };
        assert_eq!(order("packets-a.pcapng"), ["late", "lost", "hurt", "back"]);
        assert_eq!(order("packets-b.pcapng"), ["back", "harm", "late"]);
        let at_a = std::fs::read(path.with_file_name("packets-a.pcapng")).unwrap();
        let says = |wanted: &[u8]| at_a.windows(wanted.len()).any(|window| window == wanted);
        assert!(says(b"lost at 0.000001008 s on a>b: erased") && !says(b"damaged by"), "it was not damaged yet");
    }
}
