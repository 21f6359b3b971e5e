//! Everything between the hosts: links, routers, and the truth about every packet.

use crate::build::{LinkId, Way};
use crate::capture::{Capture, Tap};
use crate::channel::{Channel, Fate};
use crate::direction::{Direction, Line};
use crate::events::{Event, Events, Target};
use crate::link::{Load, QueueFull};
use crate::middlebox::Assisted;
use crate::octets::{self, Content, Reading, Route};
use crate::packet::{PacketId, Packets, Raw};
use crate::passing::Copies;
use crate::radio::{Outcome, Radio, Surroundings};
use crate::random::Stream;
use crate::record::{DropRecord, PacketCounts};
use crate::routes::{Routes, NOWHERE};
use crate::truth::Cause;
use std::collections::{HashMap, VecDeque};
use whyloss_transport::path;
use whyloss_transport::wire::damage::flip_bits;
use whyloss_transport::wire::dccp;
use whyloss_transport::{Instant, Payload, Segment};

/// Where a link direction leads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// The host of this number.
    Host(u32),
    /// The router that is this node.
    Router(u32),
    /// A router with agents: this entry of [`Network::assisted`].
    Assisted(u32),
}

/// What travels in the packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Dccp,
    /// Plain datagrams of a source.
    Udp,
}

/// Where the packets of one endpoint or source enter the network.
#[derive(Debug)]
pub(crate) struct Outlet {
    /// The flow that it belongs to, and whether it is its sender or its receiver.
    pub flow: u32,
    pub way: Way,
    pub protocol: Protocol,
    pub route: Route,
    /// The first link.
    pub exit: u32,
    /// Octets of the IP header.
    pub ip_header: u32,
    /// Sequence number of the first octet of data.
    pub first: u64,
    /// Position of the segment sent last: sequence numbers are near it.
    pub position: u64,
    pub overhead: Option<Box<Overhead>>,
    /// Its endpoint wants to hear what really became of its packets.
    pub wants_truth: bool,
    pub counts: PacketCounts,
}

/// Random delays of a host's packets before they enter its link, in order.
#[derive(Debug)]
pub(crate) struct Overhead {
    max: u64,
    stream: Stream,
    last: u64,
    waiting: VecDeque<(Event, PacketId, u32)>,
}

impl Overhead {
    pub fn new(max: u64, stream: Stream) -> Self {
        Self { max, stream, last: 0, waiting: VecDeque::new() }
    }
}

impl Outlet {
    /// An outlet of a flow that leads nowhere yet; `initial_seq` is the endpoint's first sequence number.
    pub fn new(flow: u32, way: Way, route: Route, initial_seq: u32) -> Self {
        Self {
            flow,
            way,
            protocol: Protocol::Tcp,
            route,
            exit: NOWHERE,
            ip_header: if route.v6 { 40 } else { 20 },
            first: u64::from(initial_seq) + 1,
            position: u64::from(initial_seq),
            overhead: None,
            wants_truth: false,
            counts: PacketCounts::default(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Network {
    pub now: u64,
    pub events: Events,
    pub directions: Vec<Direction>,
    pub radio: Radio,
    pub places: Vec<Place>,
    pub assisted: Vec<Assisted>,
    pub packets: Packets,
    pub routes: Routes,
    pub outlets: Vec<Outlet>,
    pub drops: Vec<DropRecord>,
    pub hosts: u32,
    /// Losses that senders want to hear of, with their outlets.
    pub fates: Vec<(u32, path::Fate)>,
    /// The channels in front of each host's transport, by the direction of its flows; empty if no host has any.
    pub inputs: Vec<[Option<Channel>; 2]>,
    /// Who captures each direction.
    pub taps: Vec<Vec<Tap>>,
    pub captures: Vec<Capture>,
    /// Transmissions of data of which links have made copies, by flow, offset and time of sending.
    pub copies: HashMap<(usize, u64, Instant), Copies>,
    /// Scratch space for packets that had to make room.
    displaced: VecDeque<PacketId>,
    /// Scratch space for the positions of flipped bits.
    flips: Vec<u32>,
}

impl Network {
    /// An empty network with this many hosts.
    pub fn new(hosts: u32) -> Self {
        Self { hosts, ..Self::default() }
    }

    /// An endpoint sends a segment.
    #[inline]
    pub fn send(&mut self, outlet: u32, segment: Segment) {
        let from = &mut self.outlets[outlet as usize];
        from.position = segment.seq.near(from.position);
        let octets = from.ip_header + segment.len() as u32;
        self.emerge(outlet, segment, octets);
    }

    /// A DCCP endpoint sends a packet.
    pub fn send_dccp(&mut self, outlet: u32, packet: dccp::Packet) {
        let octets = self.outlets[outlet as usize].ip_header + packet.len() as u32;
        let id = self.keep(outlet, Segment::default(), octets);
        self.packets.get_mut(id).dccp = Some(Box::new(packet));
        self.enter(outlet, id, octets);
    }

    /// A source sends its datagram number `number`.
    pub fn send_datagram(&mut self, outlet: u32, number: u64, octets: u32) {
        let len = octets - octets::DATAGRAM_HEADERS;
        let payload = Payload::Synthetic { offset: number * u64::from(len), len };
        self.emerge(outlet, Segment { payload, ..Segment::default() }, octets);
    }

    /// A packet leaves an endpoint or a source.
    #[inline]
    fn emerge(&mut self, outlet: u32, segment: Segment, octets: u32) {
        let packet = self.keep(outlet, segment, octets);
        self.enter(outlet, packet, octets);
    }

    /// From now on the network answers for this packet.
    #[inline]
    fn keep(&mut self, outlet: u32, segment: Segment, octets: u32) -> PacketId {
        self.outlets[outlet as usize].counts.sent += 1;
        self.packets.insert(segment, Instant::from_nanos(self.now), outlet, octets)
    }

    /// A packet goes to its first link, after the host's overhead.
    #[inline]
    fn enter(&mut self, outlet: u32, packet: PacketId, octets: u32) {
        let from = &mut self.outlets[outlet as usize];
        if let Some(overhead) = &mut from.overhead {
            overhead.last = overhead.last.max(self.now + overhead.stream.below(overhead.max));
            let event = Event::new(overhead.last, self.events.next_order(), Target::Outlet(outlet));
            if overhead.waiting.is_empty() {
                self.events.push(event);
            }
            overhead.waiting.push_back((event, packet, octets));
        } else {
            let (exit, host) = (from.exit, from.route.hosts[1]);
            self.enqueue(exit, Load { packet, host, octets });
        }
    }

    /// A packet has spent its send overhead.
    pub fn release(&mut self, outlet: u32) {
        let from = &mut self.outlets[outlet as usize];
        let (exit, host) = (from.exit, from.route.hosts[1]);
        let Some(overhead) = &mut from.overhead else { return };
        let Some((_, packet, octets)) = overhead.waiting.pop_front() else { return };
        if let Some(&(event, ..)) = overhead.waiting.front() {
            self.events.push(event);
        }
        self.enqueue(exit, Load { packet, host, octets });
    }

    /// A packet comes to the queue of a link direction. Returns whether the queue takes it.
    pub fn enqueue(&mut self, direction: u32, load: Load) -> bool {
        let mut link = &mut self.directions[direction as usize];
        link.note_offer(load.octets);
        if link.manager.is_some() {
            if !self.manage(direction, load) {
                return false;
            }
            link = &mut self.directions[direction as usize];
        }
        let Direction { traffic, line, .. } = link;
        let taken = match line {
            Line::Wire(wire) => {
                let order = self.events.next_order();
                wire.offer(traffic, self.now, order, load).map(|arrival| {
                    if let Some(arrival) = arrival {
                        self.events.push(Event::new(arrival, order, Target::Direction(direction)));
                    }
                })
            }
            Line::Varying(_) => self.enqueue_varying(direction, load),
            Line::Air(_) => {
                let Self { now, events, directions, radio, .. } = self;
                radio.offer(&mut Surroundings { now: *now, events, directions }, direction, load)
            }
        };
        if taken == Err(QueueFull) {
            self.drop_from_queue(direction, load.packet, Cause::QueueFull);
        }
        taken.is_ok()
    }

    /// Lets the manager of a queue decide on a packet that comes to it. Returns whether the packet goes on to the queue.
    fn manage(&mut self, direction: u32, load: Load) -> bool {
        let Self { now, directions, packets, displaced, .. } = self;
        let admitted = directions[direction as usize].admit(*now, load, packets, displaced);
        while let Some(id) = self.displaced.pop_front() {
            self.drop_from_queue(direction, id, Cause::QueueFull);
        }
        if !admitted {
            self.drop_from_queue(direction, load.packet, Cause::Aqm);
        }
        admitted
    }

    /// A queue drops a packet.
    pub fn drop_from_queue(&mut self, direction: u32, packet: PacketId, cause: Cause) {
        self.tell_agents(direction, packet);
        let comment = if cause == Cause::Aqm { "dropped: the queue is managed" } else { "dropped: the queue is full" };
        self.lose(direction, packet, cause, comment);
    }

    /// The first packet of a wire arrives at its end. Returns it if that is a host.
    pub fn arrive(&mut self, direction: u32) -> Option<PacketId> {
        let link = &mut self.directions[direction as usize];
        let Line::Wire(wire) = &mut link.line else { return self.happen(direction) };
        let (entry, next) = wire.arrive()?;
        if let Some(next) = next {
            self.events.push(Event::new(next.arrival, next.order(), Target::Direction(direction)));
        }
        let mut load = Load { packet: entry.packet, host: entry.host(), octets: entry.octets };
        if !link.channel.is_perfect() || !self.taps[direction as usize].is_empty() {
            let transmitted = wire.transmitted_at(entry.arrival);
            load.packet = self.cross(direction, load, transmitted)?;
        }
        self.land(direction, load)
    }

    /// Something happens on the air. Returns the packet that arrives at a host by that.
    pub fn on_air(&mut self, target: Target) -> Option<PacketId> {
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
                Outcome::Arrived { direction, load } => {
                    self.tap(direction, load.packet, None);
                    // A frame has one receiver, so that at most one packet comes to a host at a time.
                    arrived = arrived.or(self.land(direction, load));
                }
                Outcome::GivenUp { direction, packet, cause } => {
                    self.lose(direction, packet, cause, "lost: given up after the retry limit");
                }
            }
        }
        arrived
    }

    /// A packet has reached the end of a link direction. Returns it if that is a host.
    #[inline]
    pub fn land(&mut self, direction: u32, load: Load) -> Option<PacketId> {
        let Load { packet, octets, .. } = load;
        let traffic = &mut self.directions[direction as usize].traffic;
        traffic.delivered += 1;
        traffic.delivered_octets += u64::from(octets);
        let host = if packet.is_damaged() { self.inspect(direction, packet)? } else { load.host };
        match self.places[direction as usize] {
            Place::Host(_) if self.inputs.is_empty() => Some(packet),
            Place::Host(host) => self.come_in(direction, host, packet),
            Place::Router(node) => {
                let next = self.routes.next(node, host);
                if next == NOWHERE {
                    self.discard(packet, Cause::NoRoute, direction);
                } else {
                    self.enqueue(next, Load { packet, host, octets });
                }
                None
            }
            Place::Assisted(router) => {
                self.visit(router, direction, Load { packet, host, octets });
                None
            }
        }
    }

    /// The channel in front of a host's transport has its way with a packet.
    fn come_in(&mut self, direction: u32, host: u32, id: PacketId) -> Option<PacketId> {
        let packet = self.packets.get(id);
        let way = self.outlets[packet.origin as usize].way;
        if way == Way::Forward && self.data(id).1 == 0 {
            return Some(id);
        }
        let Some(channel) = &mut self.inputs[host as usize][usize::from(way == Way::Reverse)] else { return Some(id) };
        let octets = packet.octets;
        let mut flips = std::mem::take(&mut self.flips);
        let fate = channel.pass(octets, Instant::from_nanos(self.now), &mut flips);
        let packet = match fate {
            Fate::Intact => Some(id),
            Fate::Erased => {
                self.discard(id, Cause::Erased, direction);
                None
            }
            Fate::Damaged => {
                self.damage(direction, id, &flips);
                Some(id.damaged())
            }
        };
        self.flips = flips;
        let packet = packet?;
        if packet.is_damaged() {
            self.inspect(direction, packet)?;
        }
        Some(packet)
    }

    /// A packet is lost on a link direction.
    pub fn lose(&mut self, direction: u32, packet: PacketId, cause: Cause, comment: &str) {
        self.directions[direction as usize].traffic.dropped.add(cause);
        self.tap(direction, packet, Some(comment));
        self.discard(packet, cause, direction);
    }

    /// The channel has its way with a packet whose transmission ended at `transmitted`, and whoever captures sees it.
    fn cross(&mut self, direction: u32, load: Load, transmitted: u64) -> Option<PacketId> {
        let link = &mut self.directions[direction as usize];
        let mut flips = std::mem::take(&mut self.flips);
        let fate = link.channel.pass(load.octets, Instant::from_nanos(transmitted), &mut flips);
        let packet = self.settle(direction, load.packet, fate, &flips);
        self.flips = flips;
        packet
    }

    /// Lets a packet have its fate, and whoever captures sees it. Returns it as it is then, if it arrives.
    #[inline]
    pub fn settle(&mut self, direction: u32, id: PacketId, fate: Fate, flips: &[u32]) -> Option<PacketId> {
        let link = &mut self.directions[direction as usize];
        if let Some(meter) = &mut link.meter {
            meter.note(fate != Fate::Intact);
        }
        match fate {
            Fate::Intact => {
                self.tap(direction, id, None);
                Some(id)
            }
            Fate::Erased => {
                self.lose(direction, id, Cause::Erased, "lost: erased by the channel");
                None
            }
            Fate::Damaged => {
                link.traffic.damaged += 1;
                self.damage(direction, id, flips);
                if !self.taps[direction as usize].is_empty() {
                    let bits: Vec<_> = flips.iter().map(u32::to_string).collect();
                    let comment = format!("damaged by the channel: {} of the IP packet flipped", plural(&bits));
                    self.tap(direction, id, Some(&comment));
                }
                Some(id.damaged())
            }
        }
    }

    /// Flips bits of a packet.
    fn damage(&mut self, direction: u32, id: PacketId, flips: &[u32]) {
        let data = self.data(id);
        let original = self.octets(id);
        let raw = &mut self.packets.get_mut(id).raw;
        let raw = raw.get_or_insert_with(|| Box::new(Raw { octets: original.clone(), original, data, direction }));
        raw.direction = direction;
        flip_bits(&mut raw.octets, flips.iter().map(|&bit| u64::from(bit)));
    }

    /// The octets of a packet as it is now.
    fn octets(&self, id: PacketId) -> Vec<u8> {
        let packet = self.packets.get(id);
        if let Some(raw) = &packet.raw {
            return raw.octets.clone();
        }
        let from = &self.outlets[packet.origin as usize];
        match &packet.dccp {
            Some(dccp) => octets::emit_dccp(dccp, from.route),
            None => octets::emit(&packet.segment, from.route, from.protocol == Protocol::Udp),
        }
    }

    /// A node looks at a damaged packet; returns the host that it goes to. Discards it if the IP header shows its damage.
    fn inspect(&mut self, direction: u32, id: PacketId) -> Option<u32> {
        let raw = self.packets.get(id).raw.as_ref()?;
        match octets::read(&raw.octets) {
            Reading::Unreadable => {
                self.discard(id, Cause::IpHeaderDamaged, direction);
                None
            }
            Reading::To(host, _) if host >= self.hosts => {
                self.discard(id, Cause::NoRoute, direction);
                None
            }
            Reading::To(host, _) => Some(host),
        }
    }

    /// What the host finds in a damaged packet, and where the damage is; `None` if it is as it was sent.
    pub fn content(&self, id: PacketId) -> (Content, Option<Cause>) {
        let Some(raw) = &self.packets.get(id).raw else { return (Content::Garbage, None) };
        let content = match octets::read(&raw.octets) {
            Reading::Unreadable => Content::Garbage,
            Reading::To(_, content) => content,
        };
        (content, octets::place(&raw.original, &raw.octets))
    }

    /// Ends a packet's journey with its true cause. `direction` is where it was lost or which brought it here.
    pub fn discard(&mut self, id: PacketId, cause: Cause, direction: u32) {
        let (offset, len) = self.data(id);
        let lost = self.is_last_copy(id);
        let packet = self.packets.get(id);
        let from = &mut self.outlets[packet.origin as usize];
        from.counts.dropped.add(cause);
        if from.wants_truth && len > 0 && lost {
            self.fates
                .push((packet.origin, path::Fate { start: offset, len, sent_at: packet.sent_at, cause: cause.true_cause() }));
        }
        self.drops.push(DropRecord {
            at: Instant::from_nanos(self.now),
            flow: from.flow as usize,
            way: from.way,
            link: LinkId(direction / 2),
            link_way: way(direction),
            cause,
            sent_at: packet.sent_at,
            offset,
            len,
            octets: packet.octets,
        });
        self.packets.remove(id);
    }

    /// A host has no use for a damaged packet.
    pub fn discard_damaged(&mut self, id: PacketId, cause: Cause) {
        let Some(raw) = &self.packets.get(id).raw else { return };
        let direction = raw.direction;
        self.discard(id, cause, direction);
    }

    /// Position in the data stream and length of the data that a packet was sent with.
    pub fn data(&self, id: PacketId) -> (u64, u32) {
        let packet = self.packets.get(id);
        let from = &self.outlets[packet.origin as usize];
        if let Some(dccp) = packet.dccp.as_ref().filter(|_| packet.raw.is_none()) {
            return match dccp.payload {
                Payload::Synthetic { offset, len } => (offset, len),
                ref payload => (0, payload.len() as u32),
            };
        }
        match (&packet.raw, &packet.segment.payload) {
            (Some(raw), _) => raw.data,
            (None, Payload::Empty) => (0, 0),
            (None, Payload::Synthetic { offset, len }) if from.protocol == Protocol::Udp => (*offset, *len),
            (None, payload) => (packet.segment.seq.near(from.position) - from.first, payload.len() as u32),
        }
    }

    fn tap(&mut self, direction: u32, id: PacketId, comment: Option<&str>) {
        let taps = &self.taps[direction as usize];
        if taps.is_empty() {
            return;
        }
        let octets = self.octets(id);
        for tap in taps {
            self.captures[tap.capture].write(tap.interface, self.now, &octets, comment);
        }
    }

    /// All packets that have left an endpoint and not ended.
    pub fn under_way(&self) -> impl Iterator<Item = PacketId> + '_ {
        let on_links = self.on_links().map(|(_, packet)| packet);
        let at_hosts = self.outlets.iter().filter_map(|outlet| outlet.overhead.as_ref());
        on_links.chain(at_hosts.flat_map(|overhead| &overhead.waiting).map(|(_, packet, _)| *packet))
    }

    /// All packets in queues and on links, with their directions.
    fn on_links(&self) -> impl Iterator<Item = (u32, PacketId)> + '_ {
        let on_wires = self.directions.iter().enumerate().flat_map(|(number, direction)| {
            let (wire, varying) = match &direction.line {
                Line::Wire(wire) => (Some(wire), None),
                Line::Varying(varying) => (None, Some(varying)),
                Line::Air(_) => (None, None),
            };
            let on_wire = wire.into_iter().flat_map(|wire| wire.under_way().map(|entry| entry.packet));
            let packets = on_wire.chain(varying.into_iter().flat_map(|varying| varying.under_way()));
            packets.map(move |packet| (number as u32, packet))
        });
        on_wires.chain(self.radio.under_way())
    }

    /// For each link direction, the number of its packets that are under way.
    pub fn in_flight(&self) -> Vec<u64> {
        let mut counts = vec![0; self.directions.len()];
        self.on_links().for_each(|(direction, _)| counts[direction as usize] += 1);
        counts
    }
}

/// The direction of a link that a direction number means.
pub(crate) const fn way(direction: u32) -> Way {
    if direction % 2 == 0 {
        Way::Forward
    } else {
        Way::Reverse
    }
}

fn plural(bits: &[String]) -> String {
    format!("bit{} {}", if bits.len() == 1 { "" } else { "s" }, bits.join(", "))
}
