//! Where a fetched file goes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use whyloss_sim::WholeFile;

/// Octets that are gathered before they are written.
const BUFFER: usize = 256 << 10;

/// A file that gets its name once it is complete; one that is never completed is removed.
#[derive(Debug)]
pub enum Output {
    /// A file of its own.
    File {
        /// What is written to.
        writer: BufWriter<File>,
        /// What gives it its name; taken when it does.
        whole: Option<WholeFile>,
    },
    /// Something that is no ordinary file (`/dev/null`, a pipe).
    Stream(BufWriter<File>),
    /// To standard output.
    Standard(BufWriter<io::Stdout>),
}

impl Output {
    /// An output to `path`; `-` is standard output. An ordinary file that is there already will be replaced.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Standard(BufWriter::with_capacity(BUFFER, io::stdout())));
        }
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(path)?;
            return Ok(Self::Stream(BufWriter::with_capacity(BUFFER, file)));
        }
        let (whole, file) = WholeFile::create(path)?;
        Ok(Self::File { writer: BufWriter::with_capacity(BUFFER, file), whole: Some(whole) })
    }

    /// The output is complete.
    pub fn keep(&mut self) -> io::Result<()> {
        self.flush()?;
        match self {
            Self::File { whole, .. } => whole.take().map_or(Ok(()), WholeFile::keep),
            _ => Ok(()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { writer, .. } | Self::Stream(writer) => writer.write(octets),
            Self::Standard(writer) => writer.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File { writer, .. } | Self::Stream(writer) => writer.flush(),
            Self::Standard(writer) => writer.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_file_replaces_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let mut output = Output::create(&path).unwrap();
        output.write_all(b"new").unwrap();
        drop(output);
        assert_eq!((fs::read(&path).unwrap(), names()), (b"old".to_vec(), 1));
        let mut output = Output::create(&path).unwrap();
        output.write_all(b"new").unwrap();
        output.keep().unwrap();
        drop(output);
        assert_eq!((fs::read(&path).unwrap(), names()), (b"new".to_vec(), 1));
        let mut null = Output::create(Path::new("/dev/null")).unwrap();
        null.write_all(b"x").unwrap();
        null.keep().unwrap();
    }
}
