//! Middleboxes: agents at routers that look at the TCP segments that cross them, and help. One file an agent.
//!
//! An agent belongs to a router and to one of its links, as a base station has a wireless one. It sees every undamaged TCP segment that
//! crosses the router, may change its options, and may send a control segment back to the segment's sender. A damaged packet passes
//! untouched: its checksum tells a router as much as an end.

mod explicit_loss;
mod forward_count;
mod hop_notices;
mod strip;
mod survival;

pub(crate) use explicit_loss::ExplicitLosses;
pub(crate) use forward_count::ForwardCount;
pub(crate) use hop_notices::HopNotices;
pub(crate) use strip::Strip;
pub(crate) use survival::{Meter, Survival};

use crate::direction::Direction;
use crate::link::Load;
use crate::network::{Network, Place, Protocol};
use crate::packet::PacketId;
use crate::routes::NOWHERE;
use crate::truth::Cause;
use std::fmt;
use whyloss_transport::segment::{Notices, RareOptions};
use whyloss_transport::wire::options::MAX_LEN;
use whyloss_transport::{Instant, Segment};

/// What an agent at a router does for the flows that cross its link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Middlebox {
    /// Marks acknowledgements that ask for data which the link has lost (Balakrishnan & Katz 1998).
    ExplicitLoss,
    /// Numbers the data segments that leave over the link, for the receiver (Chen et al. 2002).
    ForwardCount,
    /// Acknowledges to the sender what came over the link and what is about to leave over it (Cobb & Agrawal 1995).
    HopNotices,
    /// Multiplies the probability to survive the link into data that crosses it (Krishnan et al. 2004). It is what the link layer measured
    /// over the last `window` packets in the direction of the data: one less the share of those that were damaged or erased.
    Survival {
        /// Packets.
        window: u32,
    },
    /// Takes all experimental options (kind 253) out of what crosses the link, as firewalls do.
    StripOptions,
}

impl Middlebox {
    /// One of each kind, with the usual values.
    pub const ALL: &'static [Self] =
        &[Self::ExplicitLoss, Self::ForwardCount, Self::HopNotices, Self::Survival { window: 1000 }, Self::StripOptions];

    pub(crate) fn agent(self) -> Box<dyn Agent> {
        match self {
            Self::ExplicitLoss => Box::<ExplicitLosses>::default(),
            Self::ForwardCount => Box::<ForwardCount>::default(),
            Self::HopNotices => Box::new(HopNotices),
            Self::Survival { .. } => Box::new(Survival),
            Self::StripOptions => Box::new(Strip),
        }
    }
}

/// How a segment crosses a router, seen from one of its links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    /// The outlet that the segment left; that of the answers is `from ^ 1`.
    pub from: u32,
    /// It has come over the link.
    pub arrived: bool,
    /// It leaves over the link.
    pub leaves: bool,
    /// Share of packets that the link damages or erases in the direction of this one, if it is measured.
    pub corruption: f64,
}

/// What works at a router. It sees segments in the order in which they cross.
pub(crate) trait Agent: fmt::Debug + Send {
    /// A segment is about to enter the queue of its next link. Only its options may be changed.
    fn pass(&mut self, crossing: &Crossing, segment: &mut Segment);

    /// It has been taken by that queue, or not. Returns a control segment for the sender of this one.
    fn passed(&mut self, _crossing: &Crossing, _segment: &Segment, _taken: bool) -> Option<Segment> {
        None
    }

    /// The queue of the link has dropped a segment, at once or later in favour of another.
    fn dropped(&mut self, _from: u32, _segment: &Segment) {}
}

/// A router with agents.
#[derive(Debug)]
pub(crate) struct Assisted {
    pub node: u32,
    pub agents: Vec<Attached>,
}

/// An agent and its link.
#[derive(Debug)]
pub(crate) struct Attached {
    /// The link's direction away from the router; the other one is `outgoing ^ 1`.
    pub outgoing: u32,
    pub agent: Box<dyn Agent>,
}

impl Attached {
    fn crossing(&self, from: u32, came_by: u32, next: u32, directions: &[Direction]) -> Crossing {
        let (arrived, leaves) = (came_by == self.outgoing ^ 1, next == self.outgoing);
        let over = if arrived { came_by } else { self.outgoing };
        let meter = directions[over as usize].meter.as_ref().filter(|_| arrived || leaves);
        Crossing { from, arrived, leaves, corruption: meter.map_or(0.0, |meter| meter.share()) }
    }
}

impl Network {
    /// A packet comes to a router with agents over `came_by`.
    pub(crate) fn visit(&mut self, router: u32, came_by: u32, load: Load) {
        let Load { packet: id, host, .. } = load;
        let Assisted { node, agents } = &mut self.assisted[router as usize];
        let node = *node;
        let next = self.routes.next(node, host);
        if next == NOWHERE {
            return self.discard(id, Cause::NoRoute, came_by);
        }
        let packet = self.packets.get_mut(id);
        let from = packet.origin;
        let outlet = &self.outlets[from as usize];
        if id.is_damaged() || outlet.protocol != Protocol::Tcp {
            self.enqueue(next, load);
            return;
        }
        for attached in agents {
            attached.agent.pass(&attached.crossing(from, came_by, next, &self.directions), &mut packet.segment);
        }
        packet.octets = outlet.ip_header + packet.segment.len() as u32;
        let octets = packet.octets;
        let taken = self.enqueue(next, Load { octets, ..load });
        let mut answers = Vec::new();
        // If the packet has gone, its segment is still in its place.
        let segment = &self.packets.get(id).segment;
        for attached in &mut self.assisted[router as usize].agents {
            let crossing = attached.crossing(from, came_by, next, &self.directions);
            answers.extend(attached.agent.passed(&crossing, segment, taken));
        }
        for answer in answers {
            self.insert((node, came_by), from ^ 1, answer);
        }
    }

    /// A router sends a segment of its own in the name of the owner of an outlet, in answer to one that came by `came_by`.
    fn insert(&mut self, (node, came_by): (u32, u32), outlet: u32, segment: Segment) {
        let from = &mut self.outlets[outlet as usize];
        from.counts.sent += 1;
        from.counts.inserted += 1;
        let (host, octets) = (from.route.hosts[1], from.ip_header + segment.len() as u32);
        let id = self.packets.insert(segment, Instant::from_nanos(self.now), outlet, octets);
        match self.routes.next(node, host) {
            NOWHERE => self.discard(id, Cause::NoRoute, came_by),
            next => {
                self.enqueue(next, Load { packet: id, host, octets });
            }
        }
    }

    /// Lets agents know that the queue of `direction` drops a packet.
    pub(crate) fn tell_agents(&mut self, direction: u32, id: PacketId) {
        let Place::Assisted(router) = self.places[direction as usize ^ 1] else { return };
        let packet = self.packets.get(id);
        if id.is_damaged() || self.outlets[packet.origin as usize].protocol != Protocol::Tcp {
            return;
        }
        for attached in self.assisted[router as usize].agents.iter_mut().filter(|attached| attached.outgoing == direction) {
            attached.agent.dropped(packet.origin, &packet.segment);
        }
    }
}

/// Puts a notice into a segment if its header has room for it. Returns whether it had.
fn notify(segment: &mut Segment, set: impl FnOnce(&mut Notices)) -> bool {
    let before = segment.options.rare.clone();
    set(&mut segment.options.rare.get_or_insert_default().notices);
    let fits = segment.options.packed_len() <= MAX_LEN;
    if !fits {
        segment.options.rare = before;
    }
    fits
}

/// Takes the experimental options out of a segment.
fn strip(segment: &mut Segment) {
    segment.options.nonce = None;
    if let Some(mut rare) = segment.options.rare.take() {
        rare.reports_permitted = false;
        rare.report = None;
        rare.notices = Notices::default();
        segment.options.rare = (*rare != RareOptions::default()).then_some(rare);
    }
}
