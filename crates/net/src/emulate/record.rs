//! The truth about each packet.

use super::packet::Header;
use whyloss_sim::{Cause, Damage, Fate, Note};

/// Records handed over at once.
const MOST_RECORDS: usize = 4096;
/// Octets handed over at once.
const MOST_OCTETS: usize = 1 << 20;

/// What became of a packet on its way through the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    /// It was handed on as it came, marked at most.
    Delivered,
    /// It was handed on with bits flipped; the cause says where the first one is.
    Damaged(Cause),
    /// It was not handed on.
    Lost(Cause),
    /// The emulator handed it on, and the kernel did not take it: the device was down, or it was no IP packet.
    Refused,
    /// The agent at the link has ended its journey, because its receiver had no need of it.
    Suppressed,
    /// It was under way when the emulator stopped.
    UnderWay,
}

impl PacketFate {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Damaged(_) => "damaged",
            Self::Lost(_) => "lost",
            Self::Refused => "refused",
            Self::Suppressed => "suppressed",
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

/// What an agent at an emulated link did to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The agent's name in [`whyloss_sim::middlebox::TABLE`].
    pub kind: &'static str,
    /// It has made the packet, in the name of the source address.
    pub made: bool,
}

/// A packet that came to an emulated link, or a copy of it. Times are nanoseconds of the emulator's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number among the packets that came to this direction or were made here, from 0.
    pub number: u64,
    /// Number of the direction: the emulator's first is 0.
    pub direction: u16,
    /// Number of the link in its chain on which it was lost or damaged last; else of the last link.
    pub hop: u8,
    /// Whether this is a further copy of a packet that the link has duplicated.
    pub copy: bool,
    /// When it was read from the ingress device.
    pub came: u64,
    /// When it was to be handed on, or was lost.
    pub due: u64,
    /// When it was handed on; `due` if it was not.
    pub left: u64,
    /// Octets of the IP packet.
    pub octets: u32,
    /// Packets that it found waiting in the first queue.
    pub found_packets: u32,
    /// Octets of those packets.
    pub found_octets: u64,
    /// Whether a queue set "congestion experienced".
    pub marked: bool,
    /// Number of bits flipped.
    pub flipped: u32,
    /// The first of them, from the most significant bit of the first octet.
    pub first_flip: u32,
    /// What became of it.
    pub fate: PacketFate,
    /// What the agent at the link did, if it made, changed or suppressed this packet.
    pub agent: Option<Touch>,
    /// What its headers said when it came.
    pub header: Header,
}

impl Record {
    /// What a reader of a capture is told about the packet, which went in `direction`; the clock of the record began at `start_unix_ns`.
    pub fn note<'a>(&self, start_unix_ns: u64, direction: &'a str) -> Note<'a> {
        let at = start_unix_ns + self.left;
        let fate = match self.fate {
            PacketFate::Delivered => Fate::Delivered { at },
            // Its receiver will discard it.
            PacketFate::Lost(cause) | PacketFate::Damaged(cause) => Fate::Lost { at, link: direction, cause },
            PacketFate::Suppressed => Fate::Suppressed { at },
            PacketFate::Refused => Fate::Refused { at },
            PacketFate::UnderWay => Fate::UnderWay,
        };
        let damage = (self.flipped > 0).then_some(Damage { link: direction, bits: self.flipped, first: self.first_flip });
        let agent = self.agent.map(|Touch { kind, made }| (if made { "made" } else { "changed" }, kind));
        Note { fate: Some(fate), damage, copy: self.copy, marked: self.marked, agent, ..Note::default() }
    }
}

/// Some packets of one direction, in the order in which their fate was decided.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// What became of them.
    pub records: Vec<Record>,
    /// Their octets, one packet after the other, as they left: with their marks and their damage. Of each there are as many as
    /// [`Options::snap`](super::Options::snap) says, or all.
    octets: Vec<u8>,
    /// Of those that had changed by then, by their number here, the octets as they came.
    came: Vec<(usize, Box<[u8]>)>,
    snap: u32,
}

impl Chunk {
    /// An empty chunk with so many octets of each packet.
    pub(super) fn new(snap: u32) -> Self {
        Self { records: Vec::new(), octets: Vec::new(), came: Vec::new(), snap }
    }

    /// Whether octets of packets are kept.
    pub(super) const fn keeps_octets(&self) -> bool {
        self.snap > 0
    }

    /// Adds a packet with its octets as they left, and as they came if they have changed.
    pub(super) fn push(&mut self, record: Record, octets: &[u8], came: Option<&[u8]>) {
        let cut = |octets: &[u8]| octets.len().min(self.snap as usize);
        if let Some(came) = came.filter(|_| self.snap > 0) {
            self.came.push((self.records.len(), came[..cut(came)].into()));
        }
        self.octets.extend_from_slice(&octets[..cut(octets)]);
        self.records.push(record);
    }

    pub(super) fn is_full(&self) -> bool {
        self.records.len() >= MOST_RECORDS || self.octets.len() >= MOST_OCTETS
    }

    /// What is there, and an empty chunk in its place.
    pub(super) fn take(&mut self) -> Self {
        let records = Vec::with_capacity(self.records.len());
        let next = Self { records, octets: Vec::new(), came: Vec::new(), snap: self.snap };
        std::mem::replace(self, next)
    }

    /// The packets and what is kept of their octets: as they came, and as they left.
    pub fn packets(&self) -> impl Iterator<Item = (&Record, [&[u8]; 2])> {
        let mut rest = &self.octets[..];
        let mut changed = self.came.iter().peekable();
        self.records.iter().enumerate().map(move |(number, record)| {
            let (left, others) = rest.split_at(record.octets.min(self.snap) as usize);
            rest = others;
            let came = changed.next_if(|(changed, _)| *changed == number).map_or(left, |(_, came)| came);
            (record, [came, left])
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A record of an empty packet that was delivered.
    pub fn record(number: u64) -> Record {
        Record {
            number,
            direction: 0,
            hop: 0,
            copy: false,
            came: 0,
            due: 0,
            left: 0,
            octets: 0,
            found_packets: 0,
            found_octets: 0,
            marked: false,
            flipped: 0,
            first_flip: 0,
            fate: PacketFate::Delivered,
            agent: None,
            header: Header::read(&[]),
        }
    }

    #[test]
    fn a_note_says_what_happened_to_the_packet() {
        assert_eq!(record(0).note(7, "a>b").to_string(), "delivered at 0.000000007 s");
        let damaged =
            Record { marked: true, flipped: 1, first_flip: 9, fate: PacketFate::Damaged(Cause::PayloadDamaged), ..record(0) };
        let said = "lost at 0.000000007 s on a>b: payload-damaged; damaged by a>b: 1 bit, the first is bit 9; marked by a queue";
        assert_eq!(damaged.note(7, "a>b").to_string(), said);
    }
}
