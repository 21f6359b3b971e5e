//! Everything between the hosts: links, routers, and the truth about every packet.

use crate::build::{LinkId, Way};
use crate::capture::{Capture, Tap};
use crate::channel::Fate;
use crate::events::{Event, Events, Target};
use crate::link::{Direction, Entry, QueueFull};
use crate::octets::{self, Content, Reading, Route};
use crate::packet::{PacketId, Packets, Raw};
use crate::random::Stream;
use crate::record::{DropRecord, PacketCounts};
use crate::routes::{Routes, NOWHERE};
use crate::truth::Cause;
use std::collections::VecDeque;
use whyloss_transport::path;
use whyloss_transport::wire::damage::flip_bits;
use whyloss_transport::{Instant, Payload, Segment};

/// Where a link direction leads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// The host of this number.
    Host(u32),
    /// The router that is this node.
    Router(u32),
}

/// Where the packets of one endpoint or source enter the network.
#[derive(Debug)]
pub(crate) struct Outlet {
    /// The flow that it belongs to, and whether it is its sender or its receiver.
    pub flow: u32,
    pub way: Way,
    pub datagrams: bool,
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
            datagrams: false,
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
    pub places: Vec<Place>,
    pub packets: Packets,
    pub routes: Routes,
    pub outlets: Vec<Outlet>,
    pub drops: Vec<DropRecord>,
    pub hosts: u32,
    /// Losses that senders want to hear of, with their outlets.
    pub fates: Vec<(u32, path::Fate)>,
    /// Who captures each direction.
    pub taps: Vec<Vec<Tap>>,
    pub captures: Vec<Capture>,
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

    /// A source sends its datagram number `number`.
    pub fn send_datagram(&mut self, outlet: u32, number: u64, octets: u32) {
        let len = octets - octets::DATAGRAM_HEADERS;
        let payload = Payload::Synthetic { offset: number * u64::from(len), len };
        self.emerge(outlet, Segment { payload, ..Segment::default() }, octets);
    }

    /// A packet leaves an endpoint or a source.
    #[inline]
    fn emerge(&mut self, outlet: u32, segment: Segment, octets: u32) {
        let from = &mut self.outlets[outlet as usize];
        from.counts.sent += 1;
        let sent_at = Instant::from_nanos(self.now);
        let packet = self.packets.insert(segment, sent_at, outlet, octets);
        if let Some(overhead) = &mut from.overhead {
            overhead.last = overhead.last.max(self.now + overhead.stream.below(overhead.max));
            let event = Event::new(overhead.last, self.events.next_order(), Target::Outlet(outlet));
            if overhead.waiting.is_empty() {
                self.events.push(event);
            }
            overhead.waiting.push_back((event, packet, octets));
        } else {
            let (exit, host) = (from.exit, from.route.hosts[1]);
            self.enqueue(exit, packet, host, octets);
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
        self.enqueue(exit, packet, host, octets);
    }

    /// A packet comes to the queue of a link direction.
    fn enqueue(&mut self, direction: u32, packet: PacketId, host: u32, octets: u32) {
        let order = self.events.next_order();
        match self.directions[direction as usize].offer(self.now, order, packet, host, octets) {
            Ok(None) => {}
            Ok(Some(arrival)) => self.events.push(Event::new(arrival, order, Target::Direction(direction))),
            Err(QueueFull) => {
                self.directions[direction as usize].dropped.add(Cause::QueueFull);
                self.tap(direction, packet, Some("dropped: the queue is full"));
                self.discard(packet, Cause::QueueFull, direction);
            }
        }
    }

    /// The first packet of a link direction arrives at its end. Returns it if that is a host.
    pub fn arrive(&mut self, direction: u32) -> Option<PacketId> {
        let link = &mut self.directions[direction as usize];
        let (entry, next) = link.arrive()?;
        if let Some(next) = next {
            self.events.push(Event::new(next.arrival, next.order(), Target::Direction(direction)));
        }
        let mut packet = entry.packet;
        if !link.channel.is_perfect() || !self.taps[direction as usize].is_empty() {
            packet = self.cross(direction, &entry)?;
        }
        let link = &mut self.directions[direction as usize];
        link.delivered += 1;
        link.delivered_octets += u64::from(entry.octets);
        let host = if packet.is_damaged() { self.inspect(direction, packet)? } else { entry.host() };
        match self.places[direction as usize] {
            Place::Host(_) => Some(packet),
            Place::Router(node) => {
                let next = self.routes.next(node, host);
                if next == NOWHERE {
                    self.discard(packet, Cause::NoRoute, direction);
                } else {
                    self.enqueue(next, packet, host, entry.octets);
                }
                None
            }
        }
    }

    /// The channel has its way with a packet, and whoever captures sees it.
    fn cross(&mut self, direction: u32, entry: &Entry) -> Option<PacketId> {
        let link = &mut self.directions[direction as usize];
        let transmitted = Instant::from_nanos(link.transmitted_at(entry.arrival));
        let mut flips = std::mem::take(&mut self.flips);
        let fate = link.channel.pass(entry.octets, transmitted, &mut flips);
        let packet = match fate {
            Fate::Intact => {
                self.tap(direction, entry.packet, None);
                Some(entry.packet)
            }
            Fate::Erased => {
                self.directions[direction as usize].dropped.add(Cause::Erased);
                self.tap(direction, entry.packet, Some("lost: erased by the channel"));
                self.discard(entry.packet, Cause::Erased, direction);
                None
            }
            Fate::Damaged => {
                self.directions[direction as usize].damaged += 1;
                self.damage(direction, entry.packet, &flips);
                if !self.taps[direction as usize].is_empty() {
                    let bits: Vec<_> = flips.iter().map(u32::to_string).collect();
                    let comment = format!("damaged by the channel: {} of the IP packet flipped", plural(&bits));
                    self.tap(direction, entry.packet, Some(&comment));
                }
                Some(entry.packet.damaged())
            }
        };
        self.flips = flips;
        packet
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
        octets::emit(&packet.segment, from.route, from.datagrams)
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
    fn discard(&mut self, id: PacketId, cause: Cause, direction: u32) {
        let (offset, len) = self.data(id);
        let packet = self.packets.get(id);
        let from = &mut self.outlets[packet.origin as usize];
        from.counts.dropped.add(cause);
        if from.wants_truth && len > 0 {
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
        match (&packet.raw, &packet.segment.payload) {
            (Some(raw), _) => raw.data,
            (None, Payload::Empty) => (0, 0),
            (None, Payload::Synthetic { offset, len }) if from.datagrams => (*offset, *len),
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
        let on_links = self.directions.iter().flat_map(Direction::under_way).map(|entry| entry.packet);
        let at_hosts = self.outlets.iter().filter_map(|outlet| outlet.overhead.as_ref());
        on_links.chain(at_hosts.flat_map(|overhead| &overhead.waiting).map(|(_, packet, _)| *packet))
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
