//! The books of every packet: what it was sent with, what it is now, and how its journey ended.

use super::log::Sent;
use super::{Copies, Network, Protocol};
use crate::address::{DirectionId, EndpointId, HostId, Way};
use crate::capture::Ended;
use crate::channel::ChannelOutcome;
use crate::direction::Line;
use crate::octets::{self, Content, Reading};
use crate::packet::{PacketId, Raw, SentData};
use crate::record::DropRecord;
use crate::truth::{Cause, Truth};
use whyloss_transport::path;
use whyloss_transport::wire::damage::flip_bits;
use whyloss_transport::{Instant, Payload, Segment};

impl Network {
    /// From now on the network answers for this packet.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "each packet comes here, and a call would copy its segment once more")]
    pub(super) fn admit_packet(&mut self, from: EndpointId, segment: Segment, octets: u32) -> PacketId {
        self.egress[from.index()].counts.sent += 1;
        let packet = self.packets.insert(segment, Instant::from_nanos(self.now), from, octets);
        if self.watch.is_some() {
            self.watch_sent(from, &packet);
        }
        packet
    }

    /// Writes down that a packet leaves, if anybody asked. `inserted`: a middlebox sends it in the endpoint's name.
    pub(super) fn log_sent(&mut self, id: &PacketId, inserted: bool) {
        let data = self.data(id);
        let Some(log) = &mut self.log else { return };
        let packet = self.packets.get_mut(id);
        let peer = &self.egress[packet.origin.peer().index()];
        let is_tcp = peer.protocol == Protocol::Tcp;
        let sent = Sent {
            from: packet.origin,
            octets: packet.octets,
            data,
            segment: is_tcp.then_some(&packet.segment),
            peer: (peer.position, peer.first),
            inserted,
        };
        packet.log_row = log.sent(packet.sent_at, &sent);
    }

    /// A packet has reached the endpoint that it was meant for. `unnoticed`: it is damaged, and no checksum noticed.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "each packet that arrives comes here, and there is little to do")]
    pub fn complete(&mut self, id: PacketId, unnoticed: bool) {
        let packet = self.packets.get(&id);
        let counts = &mut self.egress[packet.origin.index()].counts;
        counts.delivered += 1;
        counts.damaged_unnoticed += u64::from(unnoticed);
        if let Some(log) = &mut self.log {
            log.ended(packet.log_row, Instant::from_nanos(self.now), Truth::Arrived, None);
        }
        if self.watch.is_some() {
            self.watch_end(&id, Ended::Delivered);
        }
        self.packets.remove(id);
    }

    /// Ends a packet's journey with its true cause. `direction` is where it was lost or which brought it here.
    #[cold]
    pub fn discard(&mut self, id: PacketId, cause: Cause, direction: DirectionId) {
        let (offset, len) = self.data(&id);
        let packet = self.packets.get(&id);
        let (origin, sent_at, octets) = (packet.origin, packet.sent_at, packet.octets);
        if let Some(log) = &mut self.log {
            log.ended(packet.log_row, Instant::from_nanos(self.now), Truth::Lost(cause), Some(direction.link()));
        }
        let lost = self.is_last_copy(SentData { flow: origin.flow(), offset, sent_at });
        let from = &mut self.egress[origin.index()];
        from.counts.dropped.add(cause);
        if from.wants_truth && len > 0 && lost {
            self.fates.push((origin, path::TransmissionFate::new(offset, len, sent_at, cause.true_cause())));
        }
        self.drops.push(DropRecord {
            at: Instant::from_nanos(self.now),
            flow: origin.flow().index(),
            way: origin.way(),
            link: direction.link(),
            link_way: direction.way(),
            cause,
            sent_at,
            offset,
            len,
            octets,
        });
        if self.watch.is_some() {
            self.watch_end(&id, Ended::Lost(cause, direction));
        }
        self.packets.remove(id);
    }

    /// A host has no use for a damaged packet.
    pub fn discard_damaged(&mut self, id: PacketId, cause: Cause) {
        let Some(raw) = &self.packets.get(&id).raw else { return };
        let direction = raw.direction;
        self.discard(id, cause, direction);
    }

    /// A packet is lost on a link direction.
    pub fn lose(&mut self, direction: DirectionId, packet: PacketId, cause: Cause) {
        self.directions[direction.index()].traffic.mishap().dropped.add(cause);
        self.discard(packet, cause, direction);
    }

    /// Lets a packet have what a channel did to it. Returns it as it is then, if it arrives.
    #[inline]
    pub(super) fn apply(
        &mut self,
        direction: DirectionId,
        id: PacketId,
        outcome: ChannelOutcome,
        flips: &[u32],
    ) -> Option<PacketId> {
        if !self.meters.is_empty() {
            if let Some(meter) = self.meters.get_mut(&direction) {
                meter.note(outcome != ChannelOutcome::Intact);
            }
        }
        match outcome {
            ChannelOutcome::Intact => Some(id),
            ChannelOutcome::Erased => {
                self.lose(direction, id, Cause::Erased);
                None
            }
            ChannelOutcome::Damaged => {
                self.directions[direction.index()].traffic.mishap().damaged += 1;
                Some(self.damage(direction, id, flips))
            }
        }
    }

    /// Flips bits of a packet. Returns it as it is then.
    pub(super) fn damage(&mut self, direction: DirectionId, id: PacketId, flips: &[u32]) -> PacketId {
        let data = self.data(&id);
        let original = self.octets(&id);
        let raw = &mut self.packets.get_mut(&id).raw;
        let raw = raw.get_or_insert_with(|| Box::new(Raw { octets: original.clone(), original, data, direction }));
        raw.direction = direction;
        flip_bits(&mut raw.octets, flips.iter().map(|&bit| u64::from(bit)));
        id.damaged()
    }

    /// A link has made a copy of a packet.
    pub(super) fn note_copy(&mut self, direction: DirectionId, copy: &PacketId) {
        let (offset, len) = self.data(copy);
        let packet = self.packets.get(copy);
        self.egress[packet.origin.index()].counts.duplicated += 1;
        self.directions[direction.index()].traffic.mishap().duplicated += 1;
        if let Some(log) = &mut self.log {
            log.copied(packet.log_row);
        }
        if self.watch.is_some() {
            self.watch_copy(copy);
        }
        let packet = self.packets.get(copy);
        if packet.origin.way() == Way::Forward && len > 0 {
            let transmission = SentData { flow: packet.origin.flow(), offset, sent_at: packet.sent_at };
            self.copies.entry(transmission).or_insert(Copies { made: 1, lost: 0 }).made += 1;
        }
    }

    /// A packet of a transmission is lost. Returns whether the transmission is, with all copies that links have made.
    fn is_last_copy(&mut self, transmission: SentData) -> bool {
        if self.copies.is_empty() {
            return true;
        }
        self.copies.get_mut(&transmission).is_none_or(|copies| {
            copies.lost += 1;
            copies.lost == copies.made
        })
    }

    /// The octets of a packet as it is now.
    pub(super) fn octets(&self, id: &PacketId) -> Vec<u8> {
        let packet = self.packets.get(id);
        if let Some(raw) = &packet.raw {
            return raw.octets.clone();
        }
        let from = &self.egress[packet.origin.index()];
        match &packet.datagram {
            Some(datagram) => octets::emit_packet(datagram, from.route),
            None => octets::emit(&packet.segment, from.route, from.protocol == Protocol::Udp),
        }
    }

    /// A node looks at a damaged packet; returns it and the host that it goes to. Discards it if the IP header shows its damage.
    #[cold]
    pub(super) fn inspect(&mut self, direction: DirectionId, id: PacketId) -> Option<(PacketId, HostId)> {
        let raw = self.packets.get(&id).raw.as_ref()?;
        let cause = match octets::read(&raw.octets) {
            Reading::Unreadable => Cause::IpHeaderDamaged,
            Reading::To(host, _) if host.index() >= self.hosts => Cause::NoRoute,
            Reading::To(host, _) => return Some((id, host)),
        };
        self.discard(id, cause, direction);
        None
    }

    /// What the host finds in a damaged packet, and where the damage is; `None` if it is as it was sent.
    pub fn content(&self, id: &PacketId) -> (Content, Option<Cause>) {
        let Some(raw) = &self.packets.get(id).raw else { return (Content::Garbage, None) };
        let content = match octets::read(&raw.octets) {
            Reading::Unreadable => Content::Garbage,
            Reading::To(_, content) => content,
        };
        (content, octets::place(&raw.original, &raw.octets))
    }

    /// Position in the data stream and length of the data that a packet was sent with.
    pub fn data(&self, id: &PacketId) -> (u64, u32) {
        let packet = self.packets.get(id);
        let from = &self.egress[packet.origin.index()];
        if let Some(datagram) = packet.datagram.as_ref().filter(|_| packet.raw.is_none()) {
            return match datagram.payload() {
                Payload::Synthetic { offset, len } => (*offset, *len),
                payload => (0, payload.len() as u32),
            };
        }
        match (&packet.raw, &packet.segment.payload) {
            (Some(raw), _) => raw.data,
            (None, Payload::Empty) => (0, 0),
            (None, Payload::Synthetic { offset, len }) if from.protocol == Protocol::Udp => (*offset, *len),
            (None, payload) => (packet.segment.seq.near(from.position) - from.first, payload.len() as u32),
        }
    }

    /// All packets that have left an endpoint and not ended.
    pub fn under_way(&self) -> impl Iterator<Item = &PacketId> + '_ {
        let on_links = self.on_links().map(|(_, packet)| packet);
        let at_hosts = self.egress.iter().filter_map(|egress| egress.overhead.as_ref());
        on_links.chain(at_hosts.flat_map(|overhead| &overhead.waiting).map(|(_, packet, _)| packet))
    }

    /// All packets in queues and on links, with their directions.
    fn on_links(&self) -> impl Iterator<Item = (DirectionId, &PacketId)> + '_ {
        let on_wires = self.directions.iter().enumerate().flat_map(|(number, direction)| {
            let (wire, varying) = match &direction.line {
                Line::Wire(wire) => (Some(wire), None),
                Line::Varying(varying) => (None, Some(varying)),
                Line::Air(_) => (None, None),
            };
            let on_wire = wire.into_iter().flat_map(|wire| wire.under_way().map(|entry| &entry.packet));
            let packets = on_wire.chain(varying.into_iter().flat_map(|varying| varying.under_way()));
            packets.map(move |packet| (DirectionId::new(number), packet))
        });
        on_wires.chain(self.radio.under_way())
    }

    /// For each link direction, the number of its packets that are under way.
    pub fn in_flight(&self) -> Vec<u64> {
        let mut counts = vec![0; self.directions.len()];
        self.on_links().for_each(|(direction, _)| counts[direction.index()] += 1);
        counts
    }
}
