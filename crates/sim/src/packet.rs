//! Packets under way.

use whyloss_transport::{Instant, Segment};

/// A packet: written once when it is sent, read once when it arrives. In between, links carry its number.
#[derive(Debug)]
pub(crate) struct Packet {
    pub body: Body,
    /// The outlet that it left.
    pub origin: u32,
    /// Length with the IP header, in octets.
    pub octets: u32,
    pub sent_at: Instant,
}

#[derive(Debug)]
pub(crate) enum Body {
    Tcp(Segment),
    /// A datagram: the number of those that its source sent before.
    Datagram(u64),
    /// The octets of a damaged packet.
    Raw(Box<Raw>),
}

/// A packet that a channel has damaged.
#[derive(Debug)]
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
    pub const fn is_damaged(self) -> bool {
        self.0 & DAMAGED != 0
    }

    pub const fn damaged(self) -> Self {
        Self(self.0 | DAMAGED)
    }

    const fn index(self) -> usize {
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
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        if let Some(index) = self.free.pop() {
            self.places[index as usize] = packet;
            return PacketId(index);
        }
        self.places.push(packet);
        PacketId(self.places.len() as u32 - 1)
    }

    pub fn get(&self, id: PacketId) -> &Packet {
        &self.places[id.index()]
    }

    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.places[id.index()]
    }

    /// The packet has gone. What it holds stays in place until the place is used again.
    pub fn remove(&mut self, id: PacketId) {
        self.free.push(id.index() as u32);
    }

    /// Number of packets under way.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
