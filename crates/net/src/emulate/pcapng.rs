//! The packets of an emulator as a capture, with what became of them as comments.

use super::collect::{Sink, SinkError};
use super::record::Chunk;
use std::io;
use std::path::Path;
use whyloss_sim::{Capture, Captured, WholeFile};

/// A capture that grows. The file has its name only when it is whole.
#[derive(Debug)]
pub struct PacketCapture {
    whole: WholeFile,
    start_unix_ns: u64,
    directions: Vec<String>,
    capture: Capture,
}

impl PacketCapture {
    /// A file at `path` with an interface for each of `directions`; the clock of the records began at `start_unix_ns`.
    pub fn create(path: &Path, start_unix_ns: u64, directions: &[&str]) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let (whole, file) = WholeFile::create(path)?;
        let capture = Capture::new(path.display().to_string(), directions, 0, 9, Box::new(file))?;
        Ok(Self { whole, start_unix_ns, directions: directions.iter().map(|&name| name.to_owned()).collect(), capture })
    }
}

impl Sink for PacketCapture {
    fn take(&mut self, chunk: &Chunk) -> Result<(), SinkError> {
        for (record, octets) in chunk.packets() {
            let note = record.note(self.start_unix_ns, &self.directions[usize::from(record.direction)]).to_string();
            self.capture.write(&Captured {
                interface: u32::from(record.direction),
                at: self.start_unix_ns + record.left,
                octets,
                original_len: record.octets,
                inbound: None,
                comment: Some(&note),
            });
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), SinkError> {
        self.capture.finish()?;
        Ok(self.whole.keep()?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::super::PacketFate;
    use super::*;
    use whyloss_sim::Cause;

    #[test]
    fn the_capture_is_there_when_it_is_whole_and_says_what_became_of_packets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out").join("packets.pcapng");
        let begin = || {
            let mut capture = Box::new(PacketCapture::create(&path, 1_000, &["a>b", "b>a"]).unwrap());
            let mut chunk = Chunk::new(u32::MAX);
            let mut lost = record(0);
            (lost.octets, lost.fate) = (4, PacketFate::Lost(Cause::Erased));
            chunk.push(lost, b"data");
            capture.take(&chunk).unwrap();
            capture
        };
        drop(begin());
        assert!(std::fs::read_dir(path.parent().unwrap()).unwrap().next().is_none());
        begin().finish().unwrap();
        let octets = std::fs::read(&path).unwrap();
        let has = |wanted: &[u8]| octets.windows(wanted.len()).any(|window| window == wanted);
        assert!(has(b"a>b") && has(b"b>a") && has(b"data") && has(b"lost at 0.000001000 s on a>b: erased"));
    }
}
