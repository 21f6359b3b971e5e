//! Packets under way.

use whyloss_transport::wire::dccp;
use whyloss_transport::{Instant, Segment};

/// A packet: written once when it is sent, read once when it arrives. In between, links carry its number.
#[derive(Debug)]
pub(crate) struct Packet {
    /// A TCP segment; of a datagram only the payload counts.
    pub segment: Segment,
    /// A DCCP packet; the segment says nothing then.
    pub dccp: Option<Box<dccp::Packet>>,
    /// The octets, once it is damaged.
    pub raw: Option<Box<Raw>>,
    pub sent_at: Instant,
    /// The outlet that it left.
    pub origin: u32,
    /// Length with the IP header, in octets.
    pub octets: u32,
}

/// A packet that a channel has damaged.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    /// The whole IP packet as it is now.
    pub octets: Vec<u8>,
    /// The whole IP packet as it was sent.
    pub original: Vec<u8>,
    /// Position and length of the data that the packet was sent with.
    pub data: (u64, u32),
    /// The link direction that damaged it last.
    pub direction: u32,
}

/// Marks the numbers of damaged packets, which every node has to look at.
const DAMAGED: u32 = 1 << 31;

/// The number of a packet in its [`Packets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketId(u32);

impl PacketId {
    /// The packet in this place.
    pub const fn at(index: u32) -> Self {
        Self(index)
    }

    pub const fn is_damaged(self) -> bool {
        self.0 & DAMAGED != 0
    }

    pub const fn damaged(self) -> Self {
        Self(self.0 | DAMAGED)
    }

    pub const fn index(self) -> usize {
        (self.0 & !DAMAGED) as usize
    }
}

/// All packets under way. The place of a packet is used again when it has gone, the most recent first: it is still in the cache.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    places: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    #[inline]
    pub fn insert(&mut self, segment: Segment, sent_at: Instant, origin: u32, octets: u32) -> PacketId {
        if let Some(index) = self.free.pop() {
            // Field by field, so that the segment is copied once.
            let place = &mut self.places[index as usize];
            place.segment = segment;
            place.sent_at = sent_at;
            place.origin = origin;
            place.octets = octets;
            return PacketId(index);
        }
        self.places.push(Packet { segment, dccp: None, raw: None, sent_at, origin, octets });
        PacketId(self.places.len() as u32 - 1)
    }

    /// Makes a second packet of this one.
    pub fn copy(&mut self, id: PacketId) -> PacketId {
        let Packet { segment, dccp, raw, sent_at, origin, octets } = self.get(id);
        let (segment, dccp, raw, sent_at, origin, octets) =
            (segment.clone(), dccp.clone(), raw.clone(), *sent_at, *origin, *octets);
        let copy = self.insert(segment, sent_at, origin, octets);
        let place = self.get_mut(copy);
        (place.dccp, place.raw) = (dccp, raw);
        if id.is_damaged() {
            copy.damaged()
        } else {
            copy
        }
    }

    pub fn get(&self, id: PacketId) -> &Packet {
        &self.places[id.index()]
    }

    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.places[id.index()]
    }

    /// The packet has gone. Its segment stays in place until the place is used again.
    #[inline]
    pub fn remove(&mut self, id: PacketId) {
        let place = &mut self.places[id.index()];
        place.dccp = None;
        if id.is_damaged() {
            place.raw = None;
        }
        self.free.push(id.index() as u32);
    }

    /// Number of packets under way.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
