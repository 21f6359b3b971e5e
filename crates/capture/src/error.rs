//! What can be wrong with a capture.

use std::fmt;
use std::io;
use thiserror::Error;

/// A capture cannot be read at all.
#[derive(Debug, Error)]
#[error("{file}: {kind}")]
pub struct CaptureError {
    /// The file, or `standard input`.
    pub file: String,
    /// What is wrong.
    #[source]
    pub kind: Kind,
}

/// Why a capture cannot be read.
#[derive(Debug, Error)]
pub enum Kind {
    /// The file cannot be opened, or a read fails before the first packet.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Nothing is in it.
    #[error("the file is empty; a capture begins with a header of pcap or pcapng")]
    Empty,
    /// It is something else.
    #[error("begins with {found}; allowed is pcap or pcapng, also in gzip, zstd or lz4")]
    NoCapture {
        /// Its first octets in hexadecimal.
        found: String,
    },
    /// It is another file of the set, perhaps compressed.
    #[error("begins with the same packet at the same time as {other}; allowed is each capture once")]
    Twice {
        /// That file.
        other: String,
    },
    /// It has packets of an earlier one: both were taken at the same time.
    #[error("up to packet {packet}, several packets stand at the same times in {other}; allowed is each packet once, as in once.pcapng after: {once}")]
    Repeats {
        /// The earlier file.
        other: String,
        /// The number of the packet at which that was clear.
        packet: u64,
        /// Commands that leave each packet once.
        once: String,
    },
}

/// Something that a reader of the results has to know of the capture: from here on it was cut, its clock went back, ….
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The number of the packet at which it was noticed, from 1.
    pub packet: u64,
    /// What was noticed.
    pub text: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet {}: {}", self.packet, self.text)
    }
}
