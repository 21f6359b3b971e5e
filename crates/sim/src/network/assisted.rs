//! Routers with agents: what crosses their links, and what the agents send themselves.

use super::{Network, Protocol};
use crate::address::{AssistedId, DirectionId};
use crate::capture::Ended;
use crate::direction::Line;
use crate::events::{Event, Target};
use crate::link::Load;
use crate::meter::Meter;
use crate::middlebox::{Assisted, Handling, Outbox, Outgoing, Side, Transit};
use crate::packet::{PacketId, SentData};
use crate::truth::{Cause, Truth};
use std::collections::VecDeque;
use whyloss_transport::Instant;

/// How a packet passes a router.
#[derive(Clone, Copy)]
struct Way {
    router: AssistedId,
    came_by: DirectionId,
    next: DirectionId,
    /// The agent that sent it, if one did: it passes those behind that one.
    sender: Option<usize>,
    /// It goes to the head of the queue.
    urgent: bool,
}

/// What agents want sent, each with the number of the agent.
pub(super) type Work = VecDeque<(usize, Outgoing)>;

impl Network {
    /// A packet comes to a router with agents over `came_by`.
    #[inline(never)]
    pub(super) fn forward_assisted(&mut self, router: AssistedId, came_by: DirectionId, load: Load) {
        let node = self.assisted[router.index()].node;
        let Some(next) = self.routes.next(node, load.host) else { return self.discard(load.packet, Cause::NoRoute, came_by) };
        let from = self.packets.get(&load.packet).origin;
        if load.packet.is_damaged() || self.egress[from.index()].protocol != Protocol::Tcp {
            self.enqueue(next, load);
            return;
        }
        let mut work = Work::new();
        self.pass(Way { router, came_by, next, sender: None, urgent: false }, load, &mut work);
        self.send_all(router, work);
    }

    /// The event of a router with agents.
    pub fn handle_router(&mut self, router: AssistedId) {
        let Assisted { agents, armed, .. } = &mut self.assisted[router.index()];
        if *armed != self.now {
            return;
        }
        *armed = u64::MAX;
        let mut work = Work::new();
        for (number, attached) in agents.iter_mut().enumerate() {
            let mut out = Outbox::default();
            attached.advance(self.now, &mut out);
            work.extend(out.take().into_iter().map(|outgoing| (number, outgoing)));
        }
        self.send_all(router, work);
    }

    /// Sees to it that the event of a router comes in time. One that comes too early is found out when it comes.
    pub(crate) fn arm_agents(&mut self, router: AssistedId) {
        let assisted = &mut self.assisted[router.index()];
        let at = assisted.next_at().max(self.now);
        if at < assisted.armed {
            assisted.armed = at;
            let event = Event::new(at, self.events.next_order(), Target::Router(router));
            self.events.push(event);
        }
    }

    /// A packet passes the agents on its way: those of the link that it has come over, the nearest to the link first, then those of the
    /// link that it leaves over, the nearest last.
    fn pass(&mut self, way: Way, mut load: Load, work: &mut Work) {
        let Way { router, came_by, next, sender, urgent } = way;
        let before = work.len();
        let Self { now, assisted, directions, meters, packets, egress, radio, .. } = self;
        let agents = &mut assisted[router.index()].agents;
        let packet = packets.get_mut(&load.packet);
        let from = packet.origin;
        let mut handling = Handling::Forward;
        let mut reached = sender.is_none();
        for (side, number) in
            (0..agents.len()).rev().map(|n| (Side::Mobile, n)).chain((0..agents.len()).map(|n| (Side::Fixed, n)))
        {
            let attached = &mut agents[number];
            if attached.side(came_by, next) != Some(side) {
                continue;
            }
            if !reached {
                reached = sender == Some(number);
                continue;
            }
            let over = if side == Side::Fixed { next } else { came_by };
            let corruption = meters.get(&over).map_or(0.0, Meter::share);
            let crowded = !match &mut directions[next.index()].line {
                Line::Wire(wire) => wire.has_room_for_two(*now, packet.octets),
                Line::Varying(varying) => varying.has_room_for_two(*now, packet.octets),
                Line::Air(hop) => radio.has_room_for_two(hop.station, packet.octets),
            };
            let transit = Transit { now: Instant::from_nanos(*now), from, side, crowded, corruption };
            let mut out = Outbox::default();
            handling = attached.agent.pass(&transit, &mut packet.segment, &mut out);
            attached.counts.seen += 1;
            attached.note_held();
            work.extend(out.take().into_iter().map(|outgoing| (number, outgoing)));
            if handling != Handling::Forward {
                attached.counts.suppressed += 1;
                break;
            }
        }
        packet.octets = egress[from.index()].ip_header + packet.segment.len() as u32;
        load.octets = packet.octets;
        let taken = match handling {
            Handling::Forward if urgent => self.enqueue_urgent(next, load),
            Handling::Forward => self.enqueue(next, load),
            Handling::Suppress | Handling::Accept => {
                self.suppress(load.packet, handling);
                false
            }
        };
        if !taken {
            let mut number = 0;
            work.retain(|(_, outgoing)| {
                number += 1;
                number <= before || !outgoing.if_taken
            });
        }
    }

    /// Sends what agents want sent, and what others then want.
    pub(super) fn send_all(&mut self, router: AssistedId, mut work: Work) {
        while let Some((agent, outgoing)) = work.pop_front() {
            self.send_for(router, agent, outgoing, &mut work);
        }
        self.arm_agents(router);
    }

    /// Sends a segment for an agent of a router. It passes the agents behind that one.
    fn send_for(&mut self, router: AssistedId, agent: usize, outgoing: Outgoing, work: &mut Work) {
        let Outgoing { from, segment, urgent, .. } = outgoing;
        let Assisted { node, agents, .. } = &mut self.assisted[router.index()];
        agents[agent].counts.sent += 1;
        let (node, outgoing) = (*node, agents[agent].outgoing);
        let egress = &mut self.egress[from.index()];
        egress.counts.inserted += 1;
        let (hosts, octets) = (egress.route.hosts, egress.ip_header + segment.len() as u32);
        let packet = self.admit_packet(from, segment, octets);
        if self.log.is_some() {
            self.log_sent(&packet, true);
        }
        // As if it had come from the one in whose name it is sent.
        let came_by = self.routes.next(node, hosts[0]).map_or(outgoing, DirectionId::peer);
        let load = Load { packet, host: hosts[1], octets };
        match self.routes.next(node, hosts[1]) {
            None => self.discard(load.packet, Cause::NoRoute, came_by),
            Some(next) => self.pass(Way { router, came_by, next, sender: Some(agent), urgent }, load, work),
        }
    }

    /// A middlebox ends the journey of a packet and answers for it: that is no loss.
    fn suppress(&mut self, id: PacketId, handling: Handling) {
        let (offset, len) = self.data(&id);
        let packet = self.packets.get(&id);
        let (origin, sent_at) = (packet.origin, packet.sent_at);
        if handling == Handling::Suppress && len > 0 {
            self.suppressed.insert(SentData { flow: origin.flow(), offset, sent_at });
        }
        if let Some(log) = &mut self.log {
            log.ended(packet.log_row, Instant::from_nanos(self.now), Truth::Suppressed, None);
        }
        self.egress[origin.index()].counts.suppressed += 1;
        if self.watch.is_some() {
            self.watch_end(&id, Ended::Suppressed);
        }
        self.packets.remove(id);
    }

    /// Lets agents know that the queue of `direction` drops a packet.
    pub(super) fn tell_agents(&mut self, router: AssistedId, direction: DirectionId, id: &PacketId) {
        let packet = self.packets.get(id);
        if id.is_damaged() || self.egress[packet.origin.index()].protocol != Protocol::Tcp {
            return;
        }
        for attached in self.assisted[router.index()].agents.iter_mut().filter(|attached| attached.outgoing == direction) {
            attached.agent.dropped(packet.origin, &packet.segment);
            attached.note_held();
        }
    }
}
