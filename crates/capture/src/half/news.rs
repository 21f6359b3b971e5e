//! What becomes known of one direction of a connection's data.

use crate::limits::Stall;
use crate::trigger::Trigger;
use whyloss_transport::time::{Duration, Instant};

/// What shows that a retransmission was not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unneeded {
    /// The receiver says that it got it twice (RFC 2883).
    Dsack,
    /// The acknowledgement echoes the timestamp of the original (RFC 3522).
    Echo,
    /// The acknowledgement came sooner than a round trip after it.
    TooSoon,
    /// Its data had been acknowledged before it passed the capture.
    Acknowledged,
    /// The acknowledgement of a repair before it took its data in: the receiver had it already, and could not say so without SACK.
    Behind,
}

impl Unneeded {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dsack => "d-sack",
            Self::Echo => "timestamp",
            Self::TooSoon => "too-soon",
            Self::Acknowledged => "acknowledged",
            Self::Behind => "behind-gap",
        }
    }
}

/// What a data segment was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// New data, or nothing that takes sequence space.
    New,
    /// Sent again.
    Retransmission(Trigger),
    /// It was overtaken: sent once, and late.
    OutOfOrder,
    /// The same packet again: doubled by the network or by the capture.
    Duplicate,
    /// An octet before the window, that the peer may answer.
    KeepAlive,
    /// An octet beyond a closed window.
    WindowProbe,
}

impl Kind {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Retransmission(_) => "retransmission",
            Self::OutOfOrder => "out-of-order",
            Self::Duplicate => "duplicate",
            Self::KeepAlive => "keep-alive",
            Self::WindowProbe => "window-probe",
        }
    }
}

/// A segment that was sent again.
#[derive(Clone, Debug, PartialEq)]
pub struct Retransmission {
    /// The number of its record.
    pub number: u64,
    /// When it was captured.
    pub at: Instant,
    /// Position of its first octet.
    pub start: u64,
    /// Position at which the capture begins to know the stream.
    pub first: u64,
    /// Octets.
    pub len: u32,
    /// Why.
    pub trigger: Trigger,
    /// The record of the transmission before it; `None` if that never came to the capture.
    pub before: Option<u64>,
    /// Time since that, or since the gap showed.
    pub after: Duration,
    /// Duplicate acknowledgements that had come.
    pub duplicates: u32,
    /// Octets above it that were selectively acknowledged.
    pub sacked: u64,
    /// What shows that it was not needed; `None` if nothing does.
    pub unneeded: Option<Unneeded>,
    /// The transmission before it came to the capture, but damaged.
    pub damaged: bool,
    pub(super) timestamp: Option<u32>,
    pub(super) before_timestamp: Option<u32>,
    pub(super) acknowledged: bool,
}

/// A stretch of data that was acknowledged, though it never came to the capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hole {
    /// Position of its first octet.
    pub start: u64,
    /// Position at which the capture begins to know the stream.
    pub first: u64,
    /// Octets.
    pub len: u64,
    /// The record that acknowledged it.
    pub number: u64,
    /// When that was captured.
    pub at: Instant,
}

/// A segment that was neither acknowledged nor sent again, though there was time for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unanswered {
    /// Position of its first octet.
    pub start: u64,
    /// Position at which the capture begins to know the stream.
    pub first: u64,
    /// Octets.
    pub len: u64,
    /// The record of its latest transmission.
    pub number: u64,
    /// When that was captured.
    pub at: Instant,
    /// For how long nothing came.
    pub waited: Duration,
}

/// What becomes known of a direction.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// All that will be known of a retransmission.
    Retransmission(Retransmission),
    /// The capture has missed something.
    Hole(Hole),
    /// Something was left unanswered.
    Unanswered(Unanswered),
    /// Nothing went on for a while.
    Stall(Stall),
}

/// Counts of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Segments with data.
    pub segments: u64,
    /// Octets of data in them.
    pub octets: u64,
    /// Segments that were sent again.
    pub retransmissions: u64,
    /// Those for which something shows that they were not needed.
    pub unneeded: u64,
    /// Segments that were overtaken.
    pub out_of_order: u64,
    /// Packets that came twice.
    pub duplicates: u64,
    /// Segments that arrived damaged at the capture.
    pub damaged: u64,
    /// Octets that were acknowledged, though the capture did not see them.
    pub unseen_octets: u64,
    /// Stretches of such octets.
    pub holes: u64,
    /// Acknowledgements that the sender had and the capture has not, as timestamps tell; of several in a row one is counted.
    pub unseen_acks: u64,
    /// Segments that were neither acknowledged nor sent again, though there was time for it.
    pub unanswered: u64,
    /// Keep-alives and probes of a closed window.
    pub probes: u64,
    /// Segments marked "congestion experienced".
    pub marked: u64,
    /// Times at which the peer's window was closed.
    pub closed_windows: u64,
}
