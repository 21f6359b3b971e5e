//! The octets of a capture: a file or a pipe, as it is or compressed.

use crate::error::{CaptureError, Kind};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

/// Octets from which the kind of compression follows.
const MAGIC: usize = 4;
const GZIP: [u8; 2] = [0x1F, 0x8B];
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
const LZ4: [u8; 4] = [0x04, 0x22, 0x4D, 0x18];

/// An open capture.
pub struct Source {
    /// What messages call it.
    pub name: String,
    pub(crate) octets: Box<dyn Read + Send>,
}

impl Source {
    /// Opens the file at `path`; `-` is the standard input.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        if path.as_os_str() == "-" {
            return Self::new("standard input".to_owned(), Box::new(io::stdin()));
        }
        Self::open_as(path, path.display().to_string())
    }

    /// Opens the file at `path`, which messages call `name`.
    pub fn open_as(path: &Path, name: String) -> Result<Self, CaptureError> {
        match File::open(path) {
            Ok(file) => Self::new(name, Box::new(file)),
            Err(error) => Err(CaptureError { file: name, kind: error.into() }),
        }
    }

    /// A capture that comes from anywhere else.
    pub fn new(name: String, mut raw: Box<dyn Read + Send>) -> Result<Self, CaptureError> {
        let fail = |kind: Kind| CaptureError { file: name.clone(), kind };
        let mut first = Vec::new();
        raw.by_ref().take(MAGIC as u64).read_to_end(&mut first).map_err(|error| fail(error.into()))?;
        if first.is_empty() {
            return Err(fail(Kind::Empty));
        }
        let magic = first.clone();
        let whole = Cursor::new(first).chain(raw);
        let octets: Box<dyn Read + Send> = if magic.starts_with(&GZIP) {
            Box::new(flate2::read::MultiGzDecoder::new(whole))
        } else if magic.starts_with(&ZSTD) {
            Box::new(zstd::Decoder::new(whole).map_err(|error| fail(error.into()))?)
        } else if magic.starts_with(&LZ4) {
            Box::new(lz4_flex::frame::FrameDecoder::new(whole))
        } else {
            Box::new(whole)
        };
        Ok(Self { name, octets })
    }
}
