//! The truth about each packet.

use super::packet::Header;
use whyloss_sim::Cause;

/// What became of a packet on its way through the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was handed on as it came, marked at most.
    Delivered,
    /// It was handed on with bits flipped; the cause says where the first one is.
    Damaged(Cause),
    /// It was not handed on.
    Lost(Cause),
    /// The emulator handed it on, and the kernel did not take it: the device was down, or it was no IP packet.
    Refused,
    /// It was under way when the emulator stopped.
    UnderWay,
}

impl Fate {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Damaged(_) => "damaged",
            Self::Lost(_) => "lost",
            Self::Refused => "refused",
            Self::UnderWay => "under-way",
        }
    }

    /// Why it was lost or will be discarded.
    pub const fn cause(self) -> Option<Cause> {
        match self {
            Self::Damaged(cause) | Self::Lost(cause) => Some(cause),
            _ => None,
        }
    }
}

/// A packet that came to an emulated link, or a copy of it. Times are nanoseconds of the emulator's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number among the packets that came to this direction, from 0.
    pub number: u64,
    /// Number of the direction: the emulator's first is 0.
    pub direction: u16,
    /// Number of the link in its chain on which it was lost or damaged last; else of the last link.
    pub hop: u8,
    /// Whether this is a further copy of a packet that the link has duplicated.
    pub copy: bool,
    /// When it came.
    pub came: u64,
    /// When it was to be handed on, or was lost.
    pub due: u64,
    /// When it was handed on; `due` if it was not.
    pub left: u64,
    /// Octets of the IP packet.
    pub octets: u32,
    /// Packets that it found waiting in the first queue.
    pub found_packets: u32,
    /// Their octets.
    pub found_octets: u64,
    /// Whether a queue set "congestion experienced".
    pub marked: bool,
    /// Number of bits flipped.
    pub flipped: u32,
    /// The first of them, from the most significant bit of the first octet.
    pub first_flip: u32,
    /// What became of it.
    pub fate: Fate,
    /// What its headers said when it came.
    pub header: Header,
}
