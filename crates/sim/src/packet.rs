//! Packets under way, and the tokens by which queues and links hold them.

use crate::address::{EndpointId, FlowId};
use whyloss_transport::datagram;
use whyloss_transport::segment::Ecn;
use whyloss_transport::{Instant, Payload, Segment};

/// A packet: written once when it is sent, read once when it is delivered. In between, links carry its token.
#[derive(Debug)]
pub(crate) struct Packet {
    /// A TCP segment; of a datagram only the payload counts.
    pub segment: Segment,
    /// A packet of a transport of datagrams; the segment says nothing then.
    pub datagram: Option<Box<datagram::Packet>>,
    /// The octets, once it is damaged.
    pub raw: Option<Box<Raw>>,
    pub sent_at: Instant,
    /// The endpoint that sent it, or in whose name a middlebox did.
    pub origin: EndpointId,
    /// Length with the IP header, in octets.
    pub octets: u32,
    /// Its row in the log; says nothing where nobody keeps one.
    pub log_row: u32,
    /// The number of its journey; says nothing where nobody captures.
    pub journey: u32,
}

impl Packet {
    /// Reads here and there in it; what, makes no sense.
    #[inline]
    pub fn touch(&self) -> u64 {
        let Self { segment, sent_at, origin, octets, .. } = self;
        let options = &segment.options;
        let word = |is: bool| u64::from(is);
        sent_at.as_nanos()
            ^ origin.index() as u64
            ^ u64::from(*octets)
            ^ u64::from(segment.window)
            ^ word(options.mss.is_some())
            ^ word(options.rare.is_some())
            ^ word(options.timestamps.is_some())
            ^ word(options.sack.is_empty())
            ^ word(matches!(segment.payload, Payload::Empty))
    }
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
    pub direction: crate::address::DirectionId,
}

/// A transmission of data: what losses and timeouts of a sender are found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SentData {
    pub flow: FlowId,
    /// Position of the first octet in the flow's data stream.
    pub offset: u64,
    pub sent_at: Instant,
}

/// Marks the tokens of damaged packets, which every node has to look at.
const DAMAGED: u32 = 1 << 31;

/// The token of a packet in its [`Slots`].
///
/// There is one token for each packet: it can be neither copied nor cloned, and giving it to [`Slots::release`] ends it. So nobody can
/// read a slot whose packet has gone, nor one that holds another packet by now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PacketId(u32);

impl PacketId {
    /// Whether a channel has flipped bits of the packet.
    #[inline]
    pub const fn is_damaged(&self) -> bool {
        self.0 & DAMAGED != 0
    }

    /// The token of the same packet, now damaged.
    pub const fn damaged(self) -> Self {
        Self(self.0 | DAMAGED)
    }

    const fn index(&self) -> usize {
        (self.0 & !DAMAGED) as usize
    }
}

/// Slots for packets. One is used again when its packet has gone, the most recent first: it is still in the cache.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// The token of a free slot, whose value is what the last packet left; `None` if there is no free one.
    #[inline]
    fn reuse(&mut self) -> Option<PacketId> {
        self.free.pop().map(PacketId)
    }

    /// The token of a new slot.
    fn add(&mut self, value: T) -> PacketId {
        self.values.push(value);
        PacketId(self.values.len() as u32 - 1)
    }

    /// Puts a value into a slot.
    pub fn insert(&mut self, value: T) -> PacketId {
        match self.reuse() {
            Some(id) => {
                *self.get_mut(&id) = value;
                id
            }
            None => self.add(value),
        }
    }

    #[inline]
    pub fn get(&self, id: &PacketId) -> &T {
        &self.values[id.index()]
    }

    #[inline]
    pub fn get_mut(&mut self, id: &PacketId) -> &mut T {
        &mut self.values[id.index()]
    }

    /// The packet has gone. Its value stays in the slot until that is used again, where nobody can read it.
    #[inline]
    #[allow(clippy::needless_pass_by_value, reason = "this ends the token")]
    pub fn release(&mut self, id: PacketId) -> &mut T {
        let index = id.index();
        self.free.push(index as u32);
        &mut self.values[index]
    }

    /// Number of packets under way.
    pub fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }
}

/// What a queue sees of packets, and what it does to them.
pub(crate) trait PacketStore {
    /// Sets "congestion experienced" on a packet that is ECN-capable; whether it is. A router does not look into a packet that is
    /// damaged.
    fn mark(&mut self, id: &PacketId) -> bool;

    /// Whether a packet has high drop precedence (AF12).
    fn is_out(&self, id: &PacketId) -> bool;

    /// What it shares with the packets of its flow alone.
    fn flow(&self, id: &PacketId) -> u64;

    /// Makes a second packet of this one.
    fn duplicate(&mut self, id: &PacketId) -> PacketId;
}

/// All packets under way in a network.
#[derive(Debug, Default)]
pub(crate) struct Packets(Slots<Packet>);

impl Packets {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "each packet comes here, and a call would copy its segment once more")]
    pub fn insert(&mut self, segment: Segment, sent_at: Instant, origin: EndpointId, octets: u32) -> PacketId {
        if let Some(id) = self.0.reuse() {
            // Field by field, so that the segment is copied once.
            let slot = self.0.get_mut(&id);
            slot.segment = segment;
            slot.sent_at = sent_at;
            slot.origin = origin;
            slot.octets = octets;
            return id;
        }
        self.0.add(Packet { segment, datagram: None, raw: None, sent_at, origin, octets, log_row: 0, journey: 0 })
    }

    #[inline]
    pub fn get(&self, id: &PacketId) -> &Packet {
        self.0.get(id)
    }

    #[inline]
    pub fn get_mut(&mut self, id: &PacketId) -> &mut Packet {
        self.0.get_mut(id)
    }

    /// The packet has gone.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "each packet that arrives comes here, and there is little to do")]
    pub fn remove(&mut self, id: PacketId) {
        let damaged = id.is_damaged();
        let slot = self.0.release(id);
        slot.datagram = None;
        if damaged {
            slot.raw = None;
        }
    }

    /// Number of packets under way.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl PacketStore for Packets {
    fn mark(&mut self, id: &PacketId) -> bool {
        let packet = self.get_mut(id);
        let ecn = packet.datagram.as_mut().map_or(&mut packet.segment.ecn, |datagram| datagram.ecn_mut());
        let capable = *ecn != Ecn::NotCapable && !id.is_damaged();
        if capable {
            *ecn = Ecn::CongestionExperienced;
        }
        capable
    }

    fn is_out(&self, id: &PacketId) -> bool {
        self.get(id).segment.dscp.is_out()
    }

    fn flow(&self, id: &PacketId) -> u64 {
        self.get(id).origin.index() as u64
    }

    fn duplicate(&mut self, id: &PacketId) -> PacketId {
        let Packet { segment, datagram, raw, sent_at, origin, octets, log_row, journey } = self.get(id);
        let (segment, datagram, raw, sent_at, origin, octets, log_row, journey) =
            (segment.clone(), datagram.clone(), raw.clone(), *sent_at, *origin, *octets, *log_row, *journey);
        let copy = self.insert(segment, sent_at, origin, octets);
        let slot = self.get_mut(&copy);
        (slot.datagram, slot.raw, slot.log_row, slot.journey) = (datagram, raw, log_row, journey);
        if id.is_damaged() {
            copy.damaged()
        } else {
            copy
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::FlowId;

    /// Whether a type can be cloned, decided when this is compiled: the method of the type itself comes before that of the trait.
    struct Probe<T>(std::marker::PhantomData<T>);

    impl<T: Clone> Probe<T> {
        #[allow(clippy::unused_self, reason = "stands in for the method of the trait")]
        fn can_be_cloned(&self) -> bool {
            true
        }
    }

    trait Otherwise {
        fn can_be_cloned(&self) -> bool;
    }

    impl<T> Otherwise for Probe<T> {
        fn can_be_cloned(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_packet_has_one_token() {
        assert!(Probe::<u32>(std::marker::PhantomData).can_be_cloned(), "the probe works");
        assert!(!Probe::<PacketId>(std::marker::PhantomData).can_be_cloned());
    }

    #[test]
    fn a_slot_is_used_again_by_a_token_of_its_own() {
        let origin = EndpointId::of(FlowId::new(0), crate::address::Way::Forward);
        let mut packets = Packets::default();
        let first = packets.insert(Segment::default(), Instant::ZERO, origin, 40);
        let second = packets.insert(Segment::default(), Instant::ZERO, origin, 41);
        packets.remove(first);
        let third = packets.insert(Segment::default(), Instant::ZERO, origin, 42);
        assert_eq!((packets.get(&second).octets, packets.get(&third).octets, packets.len()), (41, 42, 2));
        let copy = packets.duplicate(&second);
        packets.remove(second);
        assert_eq!((packets.get(&copy).octets, packets.len()), (41, 2));
    }

    #[test]
    fn damage_stays_with_the_packet_and_its_copies() {
        let origin = EndpointId::of(FlowId::new(0), crate::address::Way::Forward);
        let mut packets = Packets::default();
        let id = packets.insert(Segment::default(), Instant::ZERO, origin, 40).damaged();
        assert!(packets.duplicate(&id).is_damaged());
        packets.remove(id);
        assert!(!packets.insert(Segment::default(), Instant::ZERO, origin, 40).is_damaged());
    }
}
