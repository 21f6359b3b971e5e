//! From an endpoint over links and routers to a host.

use super::touch::TOGETHER;
use super::Network;
use crate::address::{DirectionId, EndpointId, HostId, Place, Way};
use crate::capture::Point;
use crate::channel::ChannelOutcome;
use crate::direction::{Direction, Line};
use crate::events::{Event, Target};
use crate::link::{Load, QueueFull};
use crate::octets;
use crate::packet::PacketId;
use crate::radio::{AirOutcome, Surroundings};
use crate::truth::Cause;
use crate::varying::{Crossed, Parts, Step};
use whyloss_transport::datagram;
use whyloss_transport::{Instant, Payload, Segment};

impl Network {
    /// A TCP endpoint sends a segment.
    #[inline(never)]
    pub fn send(&mut self, from: EndpointId, segment: Segment) {
        let egress = &mut self.egress[from.index()];
        egress.position = segment.seq.near(egress.position);
        let octets = egress.ip_header + segment.len() as u32;
        let packet = self.admit_packet(from, segment, octets);
        self.egress(from, packet, octets);
    }

    /// An endpoint of a transport of datagrams sends a packet.
    pub fn send_packet(&mut self, from: EndpointId, packet: datagram::Packet) {
        let octets = match &packet {
            datagram::Packet::Dccp(packet) => self.egress[from.index()].ip_header + packet.len() as u32,
            datagram::Packet::Tfrc(packet) => octets::DATAGRAM_HEADERS + packet.len() as u32,
        };
        let id = self.admit_packet(from, Segment::default(), octets);
        self.packets.get_mut(&id).datagram = Some(Box::new(packet));
        self.egress(from, id, octets);
    }

    /// A source sends its datagram number `number`.
    pub fn send_datagram(&mut self, from: EndpointId, number: u64, octets: u32) {
        let len = octets - octets::DATAGRAM_HEADERS;
        let payload = Payload::Synthetic { offset: number * u64::from(len), len };
        let packet = self.admit_packet(from, Segment { payload, ..Segment::default() }, octets);
        self.egress(from, packet, octets);
    }

    /// A packet goes to its first link, after the host's overhead.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "each packet comes here, and there is little to do")]
    fn egress(&mut self, from: EndpointId, packet: PacketId, octets: u32) {
        if self.log.is_some() {
            self.log_sent(&packet, false);
        }
        let egress = &mut self.egress[from.index()];
        if let Some(overhead) = &mut egress.overhead {
            overhead.last = overhead.last.max(self.now + overhead.stream.below(overhead.max));
            let event = Event::new(overhead.last, self.events.next_order(), Target::Egress(from));
            if overhead.waiting.is_empty() {
                self.events.push(event);
            }
            overhead.waiting.push_back((event, packet, octets));
        } else {
            let (exit, host) = (egress.exit, egress.route.hosts[1]);
            self.enqueue_inline(exit, Load { packet, host, octets });
        }
    }

    /// A packet has spent its send overhead.
    pub fn handle_egress(&mut self, from: EndpointId) {
        let egress = &mut self.egress[from.index()];
        let (exit, host) = (egress.exit, egress.route.hosts[1]);
        let Some(overhead) = &mut egress.overhead else { return };
        let Some((_, packet, octets)) = overhead.waiting.pop_front() else { return };
        if let Some(&(event, ..)) = overhead.waiting.front() {
            self.events.push(event);
        }
        self.enqueue(exit, Load { packet, host, octets });
    }

    /// A packet comes to the queue of a link direction. Returns whether the queue takes it.
    pub(super) fn enqueue(&mut self, direction: DirectionId, load: Load) -> bool {
        self.enqueue_inline(direction, load)
    }

    /// The same for one that goes before all that waits.
    pub(super) fn enqueue_urgent(&mut self, direction: DirectionId, load: Load) -> bool {
        self.enqueue_with_care(direction, load, true)
    }

    /// A packet comes to a queue, as nearly all do to one where nothing but its room decides.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "each packet comes here at each hop, and there is little to do")]
    fn enqueue_inline(&mut self, direction: DirectionId, load: Load) -> bool {
        let link = &mut self.directions[direction.index()];
        let Direction { simple: true, traffic, line: Line::Wire(wire), .. } = link else {
            return self.enqueue_with_care(direction, load, false);
        };
        traffic.note_offer(load.octets);
        let order = self.events.next_order();
        match wire.offer(traffic, self.now, order, load) {
            Ok(arrival) => {
                if let Some(arrival) = arrival {
                    self.events.push(Event::new(arrival, order, Target::Direction(direction)));
                }
                true
            }
            Err(QueueFull(load)) => {
                self.drop_from_queue(direction, load.packet, Cause::QueueFull);
                false
            }
        }
    }

    /// A packet comes to a queue that may be managed or watched, or stand before something else than a plain wire.
    #[inline(never)]
    fn enqueue_with_care(&mut self, direction: DirectionId, load: Load, urgent: bool) -> bool {
        if self.watch.is_some() {
            self.watch_pass(direction, Point::Queue, &load.packet);
        }
        let link = &mut self.directions[direction.index()];
        link.traffic.note_offer(load.octets);
        if link.is_guarded() {
            if let Err(cause) = self.admit(direction, &load) {
                self.drop_from_queue(direction, load.packet, cause);
                return false;
            }
        }
        let taken = match &self.directions[direction.index()].line {
            Line::Wire(_) => self.enqueue_wire(direction, load, urgent),
            Line::Varying(_) => self.enqueue_varying(direction, load, urgent),
            Line::Air(_) => self.enqueue_air(direction, load, urgent),
        };
        match taken {
            Ok(()) => {
                if self.watch.is_some() {
                    self.watch_transmission(direction);
                }
                true
            }
            Err(QueueFull(load)) => {
                self.drop_from_queue(direction, load.packet, Cause::QueueFull);
                false
            }
        }
    }

    /// A packet comes to a plain wire.
    fn enqueue_wire(&mut self, direction: DirectionId, load: Load, urgent: bool) -> Result<(), QueueFull> {
        let Direction { traffic, line, .. } = &mut self.directions[direction.index()];
        let Line::Wire(wire) = line else { return Ok(()) };
        let order = self.events.next_order();
        let arrival =
            if urgent { wire.offer_first(traffic, self.now, order, load)? } else { wire.offer(traffic, self.now, order, load)? };
        if let Some(arrival) = arrival {
            self.events.push(Event::new(arrival, order, Target::Direction(direction)));
        }
        Ok(())
    }

    /// What stands before a queue or manages it decides on a packet that comes, and on those that make room for it. The packet goes on,
    /// or is dropped by the cause that is returned.
    #[inline(never)]
    fn admit(&mut self, direction: DirectionId, load: &Load) -> Result<(), Cause> {
        let Self { now, directions, packets, displaced, .. } = self;
        let admitted = directions[direction.index()].admit(*now, load, packets, displaced);
        while let Some(id) = self.displaced.pop_front() {
            self.drop_from_queue(direction, id, Cause::QueueFull);
        }
        admitted
    }

    /// A packet comes to a radio station.
    #[inline(never)]
    fn enqueue_air(&mut self, direction: DirectionId, load: Load, urgent: bool) -> Result<(), QueueFull> {
        let Self { now, events, directions, radio, .. } = self;
        radio.offer(&mut Surroundings { now: *now, events, directions }, direction, load, urgent)
    }

    /// A packet comes to a wire that varies.
    #[inline(never)]
    fn enqueue_varying(&mut self, direction: DirectionId, load: Load, urgent: bool) -> Result<(), QueueFull> {
        let Direction { traffic, channel, manager, line, .. } = &mut self.directions[direction.index()];
        let Line::Varying(varying) = line else { return Ok(()) };
        let manager = manager.as_deref_mut();
        let taken = varying.offer(&mut Parts { traffic, channel, manager, packets: &mut self.packets }, self.now, load, urgent);
        self.arm(direction);
        taken
    }

    /// Sees to it that the event of a wire that varies comes in time. One that has become too late is found out when it comes.
    fn arm(&mut self, direction: DirectionId) {
        let Line::Varying(varying) = &mut self.directions[direction.index()].line else { return };
        if let Some(at) = varying.next_at().filter(|at| *at < varying.armed) {
            varying.armed = at;
            let event = Event::new(at, self.events.next_order(), Target::Direction(direction));
            self.events.push(event);
        }
    }

    /// A queue, or what stands before it, drops a packet.
    #[cold]
    fn drop_from_queue(&mut self, direction: DirectionId, packet: PacketId, cause: Cause) {
        if let Place::Assisted(router) = self.directions[direction.peer().index()].place {
            self.tell_agents(router, direction, &packet);
        }
        self.lose(direction, packet, cause);
    }

    /// The event of a link direction: on a wire its first packet arrives at the end. Returns the packet that is to be delivered.
    #[inline]
    pub fn handle_direction(&mut self, direction: DirectionId) -> Option<PacketId> {
        let link = &mut self.directions[direction.index()];
        let Line::Wire(wire) = &mut link.line else { return self.handle_varying(direction) };
        let (entry, next) = wire.arrive()?;
        if let Some(next) = next {
            self.events.push(Event::new(next.arrival, next.order(), Target::Direction(direction)));
        }
        let mut load = Load { host: entry.host(), octets: entry.octets, packet: entry.packet };
        if !link.channel.is_perfect() {
            let transmitted = wire.transmitted_at(entry.arrival);
            load.packet = self.cross(direction, load.packet, load.octets, transmitted)?;
        }
        self.forward(direction, load)
    }

    /// A packet whose transmission ended at `transmitted` passes the channel of a wire. Returns it as it is then, if it arrives.
    #[inline(never)]
    fn cross(&mut self, direction: DirectionId, packet: PacketId, octets: u32, transmitted: u64) -> Option<PacketId> {
        let mut flips = std::mem::take(&mut self.flips);
        let channel = &mut self.directions[direction.index()].channel;
        let outcome = channel.pass(octets, Instant::from_nanos(transmitted), &mut flips);
        let packet = self.apply(direction, packet, outcome, &flips);
        self.flips = flips;
        packet
    }

    /// The event of a wire that varies. Returns the packet that is to be delivered.
    #[inline(never)]
    fn handle_varying(&mut self, direction: DirectionId) -> Option<PacketId> {
        let link = &mut self.directions[direction.index()];
        let Line::Varying(varying) = &mut link.line else { return None };
        // A packet was enqueued in the meantime: its event stands where this one stood.
        if varying.armed != self.now {
            return None;
        }
        varying.armed = u64::MAX;
        let step = link.step(self.now, &mut self.packets);
        if self.watch.is_some() {
            self.watch_transmission(direction);
        }
        let arrived = match step {
            Some(Step::Crossed(crossed)) => self.arrive_varying(direction, crossed),
            Some(Step::Dropped { load, cause, .. }) => {
                self.drop_from_queue(direction, load.packet, cause);
                None
            }
            None => None,
        };
        self.arm(direction);
        arrived
    }

    /// A packet comes to the end of a wire that varies, or would.
    fn arrive_varying(&mut self, direction: DirectionId, crossed: Crossed) -> Option<PacketId> {
        let Crossed { mut load, flips, copy, .. } = crossed;
        let (outcome, flips) = match flips {
            Err(Cause::LinkDown) => {
                self.lose(direction, load.packet, Cause::LinkDown);
                return None;
            }
            Err(_) => (ChannelOutcome::Erased, Box::default()),
            Ok(flips) if flips.is_empty() => (ChannelOutcome::Intact, flips),
            Ok(flips) => (ChannelOutcome::Damaged, flips),
        };
        if copy {
            self.note_copy(direction, &load.packet);
        }
        load.packet = self.apply(direction, load.packet, outcome, &flips)?;
        self.forward(direction, load)
    }

    /// The event of a station or of a frame on the air. Returns the packet that is to be delivered.
    pub fn handle_air(&mut self, target: Target) -> Option<PacketId> {
        let Self { now, events, directions, radio, .. } = self;
        let mut around = Surroundings { now: *now, events, directions };
        match target {
            Target::Station(station) => radio.timer(&mut around, station),
            Target::Transmission(transmission) => radio.spread(&mut around, transmission),
            _ => return None,
        }
        let mut arrived = None;
        while let Some(outcome) = self.radio.outcome() {
            match outcome {
                AirOutcome::Arrived { direction, load } => {
                    // A frame has one receiver, so that at most one packet comes to a host at a time.
                    arrived = arrived.or(self.forward(direction, load));
                }
                AirOutcome::GivenUp { direction, packet, cause } => {
                    self.lose(direction, packet, cause);
                }
            }
        }
        arrived
    }

    /// A packet has reached the end of a link direction: a router sends it on. Returns it if the end is a host.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "each packet comes here at each hop, and there is little to do")]
    fn forward(&mut self, direction: DirectionId, load: Load) -> Option<PacketId> {
        let Load { mut packet, mut host, octets } = load;
        if self.watch.is_some() {
            self.watch_pass(direction, Point::Exit, &packet);
        }
        let Direction { traffic, place, .. } = &mut self.directions[direction.index()];
        let place = *place;
        traffic.delivered += 1;
        traffic.delivered_octets += u64::from(octets);
        let count = traffic.delivered;
        if packet.is_damaged() {
            (packet, host) = self.inspect(direction, packet)?;
        }
        match place {
            Place::Host(_) if self.ingress.is_empty() => Some(packet),
            Place::Host(host) => self.ingress(direction, host, packet),
            Place::Router(node) => {
                if count % TOGETHER == 0 && self.events.announces() {
                    self.look_along(direction, node);
                }
                match self.routes.next(node, host) {
                    Some(next) => {
                        self.enqueue_inline(next, Load { packet, host, octets });
                    }
                    None => self.discard(packet, Cause::NoRoute, direction),
                }
                None
            }
            Place::Assisted(router) => {
                self.forward_assisted(router, direction, Load { packet, host, octets });
                None
            }
        }
    }

    /// A packet passes the channel in front of a host's transport.
    #[inline(never)]
    fn ingress(&mut self, direction: DirectionId, host: HostId, id: PacketId) -> Option<PacketId> {
        let packet = self.packets.get(&id);
        let way = packet.origin.way();
        if way == Way::Forward && self.data(&id).1 == 0 {
            return Some(id);
        }
        let Some(channel) = &mut self.ingress[host.index()][way.index()] else { return Some(id) };
        let octets = packet.octets;
        let mut flips = std::mem::take(&mut self.flips);
        let outcome = channel.pass(octets, Instant::from_nanos(self.now), &mut flips);
        let packet = match outcome {
            ChannelOutcome::Intact => Some(id),
            ChannelOutcome::Erased => {
                self.discard(id, Cause::Erased, direction);
                None
            }
            ChannelOutcome::Damaged => Some(self.damage(direction, id, &flips)),
        };
        self.flips = flips;
        let packet = packet?;
        if packet.is_damaged() {
            return self.inspect(direction, packet).map(|(packet, _)| packet);
        }
        Some(packet)
    }
}
