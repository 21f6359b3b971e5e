//! The agent of an emulated link: a middlebox of the simulator on packets of hosts that know nothing of it.
//!
//! Both directions of the link share it. It sees intact, whole TCP segments in packets without IP options; all else passes unseen. A
//! segment that it forwards as it came leaves in the octets in which it came; one that it changes or makes is encoded anew.
//!
//! Of a connection that the agent has split it gets every intact segment, and nothing passes unseen: the ends would hear two voices.

mod flows;

use super::audit::MiddleboxAudit;
use super::{lock, Header};
use bytes::Bytes;
use flows::{key, way, Flows, Key};
use std::collections::VecDeque;
use std::sync::Mutex;
use whyloss_sim::middlebox::{Agent, Handling, Middlebox, Outbox, Outgoing, Side, Transit};
use whyloss_sim::{EndpointId, Turns, Way};
use whyloss_transport::kit::ArgumentError;
use whyloss_transport::wire::icmp::{self, TooBig};
use whyloss_transport::wire::{self, ip};
use whyloss_transport::{Instant, Segment};

/// Octets of a TCP segment's beginning up to the reserved bits, and those bits (RFC 9293, 3.1).
const RESERVED: (usize, u8) = (12, 0x0f);

/// What has become of a packet at an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentOutcome {
    /// It goes on in the octets in which it came.
    Untouched,
    /// It goes on, encoded anew.
    Changed,
    /// It ends here.
    Ended,
}

/// A packet that an agent has made.
#[derive(Debug)]
pub(super) struct Made {
    pub octets: Vec<u8>,
    /// It goes to the head of the queue.
    pub urgent: bool,
}

/// What an agent wants.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Packets for the direction away from it, and for that back to it, behind the agent.
    pub made: [Vec<Made>; 2],
    /// Its timer is due before the direction away wakes up.
    pub wake: bool,
}

/// An agent, for both directions of its link.
#[derive(Debug)]
pub(super) struct Station {
    state: Mutex<State>,
    pub kind: &'static str,
}

#[derive(Debug)]
struct State {
    agent: Box<dyn Agent>,
    flows: Flows,
    restarts: VecDeque<Instant>,
    turns: Turns,
    /// The latest time that it has been told: the two directions are two threads.
    now: Instant,
    /// When the direction away wakes up by itself.
    armed: Option<Instant>,
    audit: MiddleboxAudit,
}

impl Station {
    /// An agent at a link whose direction away goes down and comes up so.
    pub fn new(middlebox: &Middlebox<usize, usize>, turns: Turns) -> Result<Self, ArgumentError> {
        let mut restarts = middlebox.restart.clone();
        restarts.sort_unstable();
        let kind = middlebox.kind.name();
        let state = State {
            agent: middlebox.agent()?,
            flows: Flows::default(),
            restarts: restarts.into(),
            turns,
            now: Instant::ZERO,
            armed: None,
            audit: MiddleboxAudit { kind, ..MiddleboxAudit::default() },
        };
        Ok(Self { state: Mutex::new(state), kind })
    }

    /// A packet crosses the link. `crowded`: the queue of the link has no room for another one behind it.
    pub fn pass(&self, side: Side, at: Instant, crowded: bool, octets: &mut Vec<u8>) -> (AgentOutcome, Work) {
        let seen = read(octets);
        match &seen {
            Seen::Segment { packet, plain } => lock(&self.state).pass(side, at, crowded, packet, *plain, octets),
            Seen::TooBig(message) => lock(&self.state).too_big(side, at, message),
            Seen::Nothing(header) if header.protocol == ip::TCP => (lock(&self.state).unread(side, header), Work::default()),
            Seen::Nothing(_) => (AgentOutcome::Untouched, Work::default()),
        }
    }

    /// The queue of the link has dropped a packet on its way away.
    pub fn dropped(&self, octets: &[u8]) {
        let Seen::Segment { packet, plain: true } = read(octets) else { return };
        let mut state = lock(&self.state);
        let key = key_of(&packet, Side::Fixed);
        let Some(flow) = state.flows.id(&key) else { return };
        let before = state.agent.held().segments;
        state.agent.dropped(EndpointId::of(flow, Way::Forward), &packet.segment);
        state.note_held(&key, before);
    }

    /// Does what is due by `now`.
    pub fn advance(&self, now: Instant) -> Work {
        lock(&self.state).advance(now)
    }

    /// When something is due, which its caller promises to wait for.
    pub fn arm(&self) -> Option<Instant> {
        let mut state = lock(&self.state);
        state.armed = state.next();
        state.armed
    }

    pub fn audit(&self) -> MiddleboxAudit {
        lock(&self.state).audit.clone()
    }
}

impl State {
    fn pass(
        &mut self,
        side: Side,
        at: Instant,
        crowded: bool,
        packet: &wire::Packet,
        plain: bool,
        octets: &mut Vec<u8>,
    ) -> (AgentOutcome, Work) {
        self.now = self.now.max(at);
        let wire::Packet { header, segment: came, .. } = packet;
        let (way, key) = (way(side), key_of(packet, side));
        if !plain && !self.receives(&key) {
            return (AgentOutcome::Untouched, Work::default());
        }
        let mut work = Work::default();
        let Some(gone) = self.flows.in_the_way(&key, |flow| !self.agent.answers_for(flow)) else {
            self.audit.unremembered += 1;
            return (AgentOutcome::Untouched, work);
        };
        for flow in gone {
            let mut out = Outbox::default();
            self.agent.dismiss(self.now, flow, &mut out);
            self.encode(out, &mut work);
            self.flows.remove(flow);
            self.agent.forget(flow);
            self.audit.evicted += 1;
        }
        let flow = self.flows.meet(key, way, header.hop_limit);
        let (mut segment, before) = (came.clone(), self.agent.held().segments);
        let transit = Transit { now: self.now, from: EndpointId::of(flow, way), side, crowded, corruption: 0.0 };
        let mut out = Outbox::default();
        let handling = self.agent.pass(&transit, &mut segment, &mut out);
        self.audit.seen += 1;
        self.note_held(&key, before);
        let outcome = match handling {
            Handling::Suppress => {
                self.audit.suppressed += 1;
                AgentOutcome::Ended
            }
            Handling::Accept => {
                self.audit.accepted += 1;
                AgentOutcome::Ended
            }
            Handling::Forward if segment == *came => AgentOutcome::Untouched,
            Handling::Forward => self.encode_again(header, &segment, octets),
        };
        self.encode(out, &mut work);
        (outcome, self.alarmed(work))
    }

    /// Whether the agent is the receiver of what comes on a connection.
    fn receives(&self, key: &Key) -> bool {
        self.flows.id(key).is_some_and(|flow| self.agent.receives(flow))
    }

    /// A packet with TCP has come of which the agent cannot be shown a segment.
    fn unread(&mut self, side: Side, header: &Header) -> AgentOutcome {
        if self.receives(&key((header.src, header.src_port), (header.dst, header.dst_port), side)) {
            self.audit.suppressed += 1;
            AgentOutcome::Ended
        } else {
            AgentOutcome::Untouched
        }
    }

    /// A router says that a packet was too big. If the agent has sent it, the host in whose name it did knows nothing of it.
    fn too_big(&mut self, side: Side, at: Instant, message: &TooBig) -> (AgentOutcome, Work) {
        self.now = self.now.max(at);
        let TooBig { addresses, src_port, dst_port, seq, mtu } = *message;
        // The message goes to the source of the packet that it quotes, on the other side.
        let key = key((addresses.dst(), dst_port), (addresses.src(), src_port), side);
        let mut work = Work::default();
        let Some(flow) = self.flows.id(&key) else { return (AgentOutcome::Untouched, work) };
        let (from, mut out) = (EndpointId::of(flow, way(side)).peer(), Outbox::default());
        let room = mtu.map(|mtu| mtu.saturating_sub(addresses.header_len() as u16));
        let its_own = self.agent.too_big(self.now, from, seq, room, &mut out);
        self.encode(out, &mut work);
        self.audit.suppressed += u64::from(its_own);
        (if its_own { AgentOutcome::Ended } else { AgentOutcome::Untouched }, self.alarmed(work))
    }

    fn encode_again(&mut self, header: &ip::Header, segment: &Segment, octets: &mut Vec<u8>) -> AgentOutcome {
        let mut anew = Vec::with_capacity(octets.len());
        if wire::emit(header, segment, &mut anew).is_err() {
            return AgentOutcome::Untouched;
        }
        self.audit.changed += 1;
        *octets = anew;
        AgentOutcome::Changed
    }

    fn next(&self) -> Option<Instant> {
        self.restarts.front().copied().into_iter().chain(self.turns.next()).chain(self.agent.next_timer()).min()
    }

    fn advance(&mut self, now: Instant) -> Work {
        self.now = self.now.max(now);
        while self.restarts.front().is_some_and(|at| *at <= self.now) {
            self.restarts.pop_front();
            self.agent.restart();
            self.flows.clear();
        }
        let mut out = Outbox::default();
        if let Some(up) = self.turns.turn(self.now) {
            self.agent.on_link(self.now, up, &mut out);
        }
        if self.agent.next_timer().is_some_and(|at| at <= self.now) {
            self.agent.on_timer(self.now, &mut out);
        }
        let mut work = Work::default();
        self.encode(out, &mut work);
        self.alarmed(work)
    }

    /// Adds what is in `out` as packets.
    fn encode(&mut self, mut out: Outbox, work: &mut Work) {
        for Outgoing { from, segment, urgent, .. } in out.take() {
            let mut octets = Vec::new();
            let header = self.flows.header(from);
            if header.is_some_and(|header| wire::emit(&header, &segment, &mut octets).is_ok()) {
                self.audit.sent += 1;
                work.made[usize::from(from.way() == Way::Reverse)].push(Made { octets, urgent });
            } else {
                self.audit.unsent += 1;
            }
        }
    }

    /// `work`, and whether somebody has to wake up earlier than planned.
    fn alarmed(&self, work: Work) -> Work {
        Work { wake: self.next().is_some_and(|at| self.armed.is_none_or(|armed| at < armed)), ..work }
    }

    /// The agent has looked at a flow; it held so many segments before.
    fn note_held(&mut self, key: &Key, before: u64) {
        let held = self.agent.held();
        if let Some(known) = self.flows.known.get_mut(key) {
            known.segments = (known.segments + held.segments).saturating_sub(before);
            self.audit.connection_segments = self.audit.connection_segments.max(known.segments);
        }
        let audit = &mut self.audit;
        audit.flows = audit.flows.max(held.flows);
        audit.segments = audit.segments.max(held.segments);
        audit.octets = audit.octets.max(held.octets);
        audit.connection_octets = audit.connection_octets.max(held.flow_octets);
    }
}

/// What a packet is to an agent.
enum Seen {
    /// An intact TCP segment. `plain`: encoded anew it would say the same.
    Segment {
        packet: wire::Packet,
        plain: bool,
    },
    TooBig(TooBig),
    Nothing(Header),
}

fn read(octets: &[u8]) -> Seen {
    let header = Header::read(octets);
    match header.protocol {
        ip::TCP => {}
        icmp::V4 | icmp::V6 => return icmp::too_big(octets).map_or(Seen::Nothing(header), Seen::TooBig),
        _ => return Seen::Nothing(header),
    }
    let without_options = if header.src.is_ipv4() { 20 } else { 40 };
    let reserved = octets.get(usize::from(header.ip_octets) + RESERVED.0).is_none_or(|octet| octet & RESERVED.1 != 0);
    match wire::parse(&Bytes::copy_from_slice(octets)) {
        Ok(packet) => {
            let plain = header.ip_octets == without_options && !reserved && packet.malformed.is_none();
            Seen::Segment { packet, plain }
        }
        Err(_) => Seen::Nothing(header),
    }
}

fn key_of(packet: &wire::Packet, side: Side) -> Key {
    let (addresses, segment) = (packet.header.addresses, &packet.segment);
    key((addresses.src(), segment.src_port), (addresses.dst(), segment.dst_port), side)
}

#[cfg(test)]
mod tests;
