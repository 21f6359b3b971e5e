//! One direction of a wire by itself, without nodes and events: for a driver that has the packets and the clock.
//!
//! It is the direction of a link of a [`Simulation`](crate::Simulation): the same queue, transmitter and channel, the same random
//! streams, so that the same packets at the same times meet the same fate.

use crate::address::HostId;
use crate::channel::{Channel, ChannelOutcome};
use crate::direction::{Direction, Line};
use crate::error::BuildError;
use crate::link::{Load, QueueFull};
use crate::packet::{PacketId, PacketStore, Slots};
use crate::shape::{Change, LinkSpec};
use crate::truth::{Cause, CauseCounts};
use crate::varying::{Crossed, Parts, Step};
use std::collections::VecDeque;
use whyloss_transport::segment::{Dscp, Ecn};
use whyloss_transport::{BitRate, Instant};

/// What a link sees of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The driver's number for it.
    pub token: u64,
    /// Length with the IP header.
    pub octets: u32,
    /// The ECN field of its IP header (RFC 3168, 5).
    pub ecn: Ecn,
    /// Its differentiated services codepoint.
    pub dscp: Dscp,
    /// What it shares with the packets of its flow alone, such as a hash of addresses, protocol and ports: what queues for flows go by.
    pub flow: u64,
}

/// What has become of a packet, or of one copy of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage<'a> {
    /// The number that the driver gave to the packet.
    pub token: u64,
    /// When it arrives at the other end, or when it was lost.
    pub at: Instant,
    /// How it leaves the link.
    pub arrival: Arrival<'a>,
    /// Nothing more will be heard of this packet.
    pub last: bool,
}

/// How a packet leaves a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival<'a> {
    /// At the far end, damaged or not.
    Here {
        /// The queue has set "congestion experienced".
        marked: bool,
        /// Positions of the bits that the channel has flipped, ascending; bit 0 is the most significant of the first octet.
        flips: &'a [u32],
    },
    /// Nowhere, and why.
    Lost(Cause),
}

/// One direction of a wire.
///
/// The driver [offers](Self::offer) packets as they come and [polls](Self::poll) for what has become of them, at the latest at
/// [`next_event`](Self::next_event). Time does not go backwards.
#[derive(Debug)]
pub struct Crossing {
    direction: Direction,
    packets: Held,
    /// Drops that have not been told yet.
    dropped: VecDeque<(PacketId, Instant, Cause)>,
    displaced: VecDeque<PacketId>,
    /// When the next packet arrives at the end.
    next: Option<u64>,
    flips: Vec<u32>,
    origin: Origin,
}

/// What random streams follow from.
#[derive(Debug)]
struct Origin {
    seed: u64,
    run: u64,
    name: String,
    changes: u32,
}

impl Crossing {
    /// The direction called `name` (see [`LinkNames`](crate::LinkNames)) in run `run` of `seed`.
    pub fn new(spec: &LinkSpec, seed: u64, run: u64, name: &str) -> Result<Self, BuildError> {
        Ok(Self::over(Direction::of_wire(spec, seed, run, name)?, seed, run, name))
    }

    /// As [`new`](Self::new), and [`change`](Self::change) can be asked of it, which costs a little time for each packet.
    pub fn changeable(spec: &LinkSpec, seed: u64, run: u64, name: &str) -> Result<Self, BuildError> {
        Ok(Self::over(Direction::of_kind(spec, seed, run, name, true)?, seed, run, name))
    }

    fn over(direction: Direction, seed: u64, run: u64, name: &str) -> Self {
        let (packets, dropped, displaced) = (Held::default(), VecDeque::new(), VecDeque::new());
        let origin = Origin { seed, run, name: name.to_owned(), changes: 0 };
        Self { direction, packets, dropped, displaced, next: None, flips: Vec::new(), origin }
    }

    /// Something is different from `now` on; the time in `change` does not matter. A packet in transmission goes on at its old rate.
    /// The random numbers of a new channel follow from the number of the change. Only a [`changeable`](Self::changeable) crossing
    /// can, and a link with a trace has no rate to change.
    pub fn change(&mut self, now: Instant, change: &Change) -> Result<(), BuildError> {
        let Self { direction, packets, origin, .. } = self;
        let item = format!("link {}", origin.name);
        let unfit = |flaw| BuildError::unfit(&item, flaw);
        let Direction { traffic, channel, manager, line: Line::Varying(varying), .. } = direction else {
            return Err(unfit(("change", "a link of fixed properties".to_owned(), "one that was made to be changed")));
        };
        if change.rate.is_some() && !varying.has_rate() {
            return Err(unfit((
                "change.rate",
                "a rate on a link with a trace".to_owned(),
                "a change of delay, queue or channel",
            )));
        }
        // A specification that says nothing else has no other flaw.
        let spec: LinkSpec = LinkSpec { rate: BitRate::from_bps(1), change: vec![change.clone()], ..LinkSpec::default() };
        if let Some(flaw) = spec.flaw() {
            return Err(unfit(flaw));
        }
        origin.changes += 1;
        let component = format!("{item} live change {}", origin.changes);
        let new = change.channel.as_ref().map(|spec| Channel::new(spec, origin.seed, origin.run, &component)).transpose();
        let new = new.map_err(|error| unfit((error.field, error.found, error.allowed)))?;
        varying.change(&mut Parts { traffic, channel, manager: manager.as_deref_mut(), packets }, now.as_nanos(), change, new);
        Ok(())
    }

    /// A packet comes to the queue at `now`.
    pub fn offer(&mut self, now: Instant, packet: Packet) {
        self.admit(now, packet, false);
    }

    /// A packet comes to the head of the queue at `now`: it goes before all that wait.
    pub fn offer_first(&mut self, now: Instant, packet: Packet) {
        self.admit(now, packet, true);
    }

    /// Whether the queue has room for two packets of so many octets at `now`.
    pub fn has_room_for_two(&mut self, now: Instant, octets: u32) -> bool {
        match &mut self.direction.line {
            Line::Wire(wire) => wire.has_room_for_two(now.as_nanos(), octets),
            Line::Varying(varying) => varying.has_room_for_two(now.as_nanos(), octets),
            Line::Air(_) => false,
        }
    }

    fn admit(&mut self, now: Instant, packet: Packet, first: bool) {
        let Self { direction, packets, dropped, displaced, next, .. } = self;
        let at = now.as_nanos();
        let load = Load { packet: packets.insert(packet), host: HostId::new(0), octets: packet.octets };
        direction.traffic.note_offer(load.octets);
        let admitted = direction.admit(at, &load, packets, displaced);
        let mut lose = |id, cause| {
            direction.traffic.mishap().dropped.add(cause);
            dropped.push_back((id, now, cause));
        };
        displaced.drain(..).for_each(|id| lose(id, Cause::QueueFull));
        if let Err(cause) = admitted {
            lose(load.packet, cause);
            return;
        }
        let Direction { traffic, channel, manager, line, .. } = direction;
        let taken = match line {
            Line::Wire(wire) => {
                let offered = if first { wire.offer_first(traffic, at, 0, load) } else { wire.offer(traffic, at, 0, load) };
                offered.map(|arrival| *next = arrival.or(*next))
            }
            Line::Varying(varying) => {
                varying.offer(&mut Parts { traffic, channel, manager: manager.as_deref_mut(), packets }, at, load, first)
            }
            Line::Air(_) => return,
        };
        if let Err(QueueFull(load)) = taken {
            traffic.mishap().dropped.add(Cause::QueueFull);
            dropped.push_back((load.packet, now, Cause::QueueFull));
        }
    }

    /// What has become of a packet by `now`, if there is something to tell.
    pub fn poll(&mut self, now: Instant) -> Option<Passage<'_>> {
        if let Some((id, at, cause)) = self.dropped.pop_front() {
            return Some(Passage { token: self.packets.remove(id).token, at, arrival: Arrival::Lost(cause), last: true });
        }
        let Line::Wire(wire) = &mut self.direction.line else { return self.poll_varying(now) };
        if self.next.is_none_or(|next| next > now.as_nanos()) {
            return None;
        }
        let (entry, next) = wire.arrive()?;
        self.next = next.map(|next| next.arrival);
        let traffic = &mut self.direction.traffic;
        let at = Instant::from_nanos(entry.arrival);
        let transmitted = Instant::from_nanos(wire.transmitted_at(entry.arrival));
        let Item { token, marked, .. } = self.packets.remove(entry.packet);
        let passage = |arrival| Some(Passage { token, at, arrival, last: true });
        match self.direction.channel.pass(entry.octets, transmitted, &mut self.flips) {
            ChannelOutcome::Erased => {
                traffic.mishap().dropped.add(Cause::Erased);
                return passage(Arrival::Lost(Cause::Erased));
            }
            ChannelOutcome::Damaged => traffic.mishap().damaged += 1,
            ChannelOutcome::Intact => {}
        }
        traffic.delivered += 1;
        traffic.delivered_octets += u64::from(entry.octets);
        passage(Arrival::Here { marked, flips: &self.flips })
    }

    fn poll_varying(&mut self, now: Instant) -> Option<Passage<'_>> {
        let step = self.direction.step(now.as_nanos(), &mut self.packets)?;
        let traffic = &mut self.direction.traffic;
        let (at, load, flips, copy) = match step {
            Step::Dropped { at, load, cause } => (at, load, Err(cause), false),
            Step::Crossed(Crossed { at, load, flips, copy }) => (at, load, flips, copy),
        };
        let Item { token, marked, .. } = self.packets.remove(load.packet);
        if copy {
            traffic.mishap().duplicated += 1;
        }
        let arrival = match flips {
            Err(cause) => {
                traffic.mishap().dropped.add(cause);
                Arrival::Lost(cause)
            }
            Ok(flips) => {
                self.flips.clear();
                self.flips.extend_from_slice(&flips);
                if !flips.is_empty() {
                    traffic.mishap().damaged += 1;
                }
                traffic.delivered += 1;
                traffic.delivered_octets += u64::from(load.octets);
                Arrival::Here { marked, flips: &self.flips }
            }
        };
        Some(Passage { token, at: Instant::from_nanos(at), arrival, last: !copy })
    }

    /// When [`poll`](Self::poll) should be called again, if no further packet comes; a time that has passed means now. It may have
    /// nothing to tell then.
    pub fn next_event(&self) -> Option<Instant> {
        match (self.dropped.front(), &self.direction.line) {
            (Some(&(_, at, _)), _) => Some(at),
            (None, Line::Varying(varying)) => varying.next_at().map(Instant::from_nanos),
            (None, _) => self.next.map(Instant::from_nanos),
        }
    }

    /// Packets and octets that wait for the transmitter at `now`. The packet in transmission does not wait.
    pub fn waiting(&mut self, now: Instant) -> (u64, u64) {
        self.direction.advance(now.as_nanos(), &mut self.packets);
        self.direction.waiting(now.as_nanos())
    }

    /// Packets of which something is still to be told.
    pub fn under_way(&self) -> usize {
        self.packets.len()
    }

    /// What has crossed so far.
    pub fn counts(&self) -> CrossingCounts {
        let traffic = &self.direction.traffic;
        let mishaps = traffic.mishaps();
        CrossingCounts {
            offered: traffic.offered,
            offered_octets: traffic.offered_octets,
            delivered: traffic.delivered,
            delivered_octets: traffic.delivered_octets,
            damaged: mishaps.damaged,
            duplicated: mishaps.duplicated,
            marked: self.packets.marked,
            dropped: mishaps.dropped,
            max_packets: traffic.max_packets,
            max_octets: traffic.max_octets,
            waited: traffic.waited,
        }
    }
}

/// What a [`Crossing`] has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrossingCounts {
    /// Packets that came to the queue.
    pub offered: u64,
    /// Octets of these packets.
    pub offered_octets: u64,
    /// Packets that arrived at the end, damaged ones included.
    pub delivered: u64,
    /// Octets of these packets.
    pub delivered_octets: u64,
    /// Packets that arrived with bits flipped.
    pub damaged: u64,
    /// Packets that arrived twice.
    pub duplicated: u64,
    /// Packets on which the queue has set "congestion experienced".
    pub marked: u64,
    /// Packets that did not arrive.
    pub dropped: CauseCounts,
    /// Most packets that waited at once.
    pub max_packets: u64,
    /// Most octets that waited at once.
    pub max_octets: u64,
    /// Nanoseconds that packets waited in the queue, added up.
    pub waited: u128,
}

/// The packets on the link.
#[derive(Debug, Default)]
struct Held {
    slots: Slots<Item>,
    /// Packets that have been marked.
    marked: u64,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    token: u64,
    capable: bool,
    marked: bool,
    out: bool,
    flow: u64,
}

impl Held {
    fn insert(&mut self, packet: Packet) -> PacketId {
        let (capable, out) = (packet.ecn != Ecn::NotCapable, packet.dscp.is_out());
        self.slots.insert(Item { token: packet.token, capable, marked: false, out, flow: packet.flow })
    }

    fn remove(&mut self, id: PacketId) -> Item {
        *self.slots.release(id)
    }

    fn len(&self) -> usize {
        self.slots.len()
    }
}

impl PacketStore for Held {
    fn mark(&mut self, id: &PacketId) -> bool {
        let item = self.slots.get_mut(id);
        self.marked += u64::from(item.capable && !item.marked);
        item.marked = item.capable;
        item.capable
    }

    fn is_out(&self, id: &PacketId) -> bool {
        self.slots.get(id).out
    }

    fn flow(&self, id: &PacketId) -> u64 {
        self.slots.get(id).flow
    }

    fn duplicate(&mut self, id: &PacketId) -> PacketId {
        let item = *self.slots.get(id);
        self.slots.insert(item)
    }
}
