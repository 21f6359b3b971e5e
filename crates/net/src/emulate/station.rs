//! The agent of an emulated link: a middlebox of the simulator on packets of hosts that know nothing of it.
//!
//! Both directions of the link share it. It sees intact, whole TCP segments in packets without IP options; all else passes unseen. A
//! segment that it forwards as it came leaves in the octets in which it came; one that it changes or makes is encoded anew.

use super::audit::MiddleboxAudit;
use super::{lock, Header};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Mutex;
use whyloss_sim::middlebox::{Agent, Handling, Middlebox, Outbox, Outgoing, Side, Transit};
use whyloss_sim::{EndpointId, FlowId, Way};
use whyloss_transport::kit::ArgumentError;
use whyloss_transport::wire::{self, ip};
use whyloss_transport::{Instant, Segment};

/// Flows that are known; the one that was quiet for longest makes room. As many as agents remember if nothing else is said.
const MOST_FLOWS: usize = 1024;
/// Flows of one address that are known, so that one host does not push out those of all others.
const MOST_BY_ADDRESS: usize = 256;
/// The hop limit of a packet that is made before any has come from the address in whose name it is made.
const HOP_LIMIT: u8 = 64;
/// Octets of a TCP segment's beginning up to the reserved bits, and those bits (RFC 9293, 3.1).
const RESERVED: (usize, u8) = (12, 0x0f);

/// An agent and its place at a link between two devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// What it does. Its router and link are named by whoever has a network; here they do not matter.
    pub middlebox: Middlebox<usize, usize>,
    /// The direction in which packets leave the agent over its link: 0 or 1.
    pub away: usize,
    /// Its link, by position in the chain of that direction.
    pub hop: usize,
}

/// What has become of a packet at an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It goes on in the octets in which it came.
    Untouched,
    /// It goes on, encoded anew.
    Changed,
    /// It ends here.
    Suppressed,
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
    /// The latest time that it has been told: the two directions are two threads.
    now: Instant,
    /// When the direction away wakes up by itself.
    armed: Option<Instant>,
    audit: MiddleboxAudit,
}

impl Station {
    pub fn new(middlebox: &Middlebox<usize, usize>) -> Result<Self, ArgumentError> {
        let mut restarts = middlebox.restart.clone();
        restarts.sort_unstable();
        let kind = middlebox.kind.name();
        let state = State {
            agent: middlebox.agent()?,
            flows: Flows::default(),
            restarts: restarts.into(),
            now: Instant::ZERO,
            armed: None,
            audit: MiddleboxAudit { kind, ..MiddleboxAudit::default() },
        };
        Ok(Self { state: Mutex::new(state), kind })
    }

    /// A packet crosses the link. `crowded`: the queue of the link has no room for another one behind it.
    pub fn pass(&self, side: Side, at: Instant, crowded: bool, octets: &mut Vec<u8>) -> (Outcome, Work) {
        match read(octets) {
            Some(packet) => lock(&self.state).pass(side, at, crowded, packet, octets),
            None => (Outcome::Untouched, Work::default()),
        }
    }

    /// The queue of the link has dropped a packet on its way away.
    pub fn dropped(&self, octets: &[u8]) {
        let Some(packet) = read(octets) else { return };
        let mut state = lock(&self.state);
        let key = key(&packet, Side::Fixed);
        let Some(flow) = state.flows.known.get(&key).map(|known| known.id) else { return };
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
    fn pass(&mut self, side: Side, at: Instant, crowded: bool, packet: wire::Packet, octets: &mut Vec<u8>) -> (Outcome, Work) {
        self.now = self.now.max(at);
        let way = if side == Side::Fixed { Way::Forward } else { Way::Reverse };
        let key = key(&packet, side);
        let wire::Packet { header, mut segment, .. } = packet;
        let (flow, gone) = self.flows.meet(key, way, header.hop_limit);
        for flow in gone {
            self.agent.forget(flow);
            self.audit.evicted += 1;
        }
        let before = (segment.clone(), self.agent.held().segments);
        let transit = Transit { now: self.now, from: EndpointId::of(flow, way), side, crowded, corruption: 0.0 };
        let mut out = Outbox::default();
        let handling = self.agent.pass(&transit, &mut segment, &mut out);
        self.audit.seen += 1;
        self.note_held(&key, before.1);
        let outcome = match handling {
            Handling::Suppress | Handling::Accept => {
                self.audit.suppressed += 1;
                Outcome::Suppressed
            }
            Handling::Forward if segment == before.0 => Outcome::Untouched,
            Handling::Forward => self.encode_again(&header, &segment, octets),
        };
        (outcome, self.work(out))
    }

    fn encode_again(&mut self, header: &ip::Header, segment: &Segment, octets: &mut Vec<u8>) -> Outcome {
        let mut anew = Vec::with_capacity(octets.len());
        if wire::emit(header, segment, &mut anew).is_err() {
            return Outcome::Untouched;
        }
        self.audit.changed += 1;
        *octets = anew;
        Outcome::Changed
    }

    fn next(&self) -> Option<Instant> {
        self.restarts.front().copied().into_iter().chain(self.agent.next_timer()).min()
    }

    fn advance(&mut self, now: Instant) -> Work {
        self.now = self.now.max(now);
        while self.restarts.front().is_some_and(|at| *at <= self.now) {
            self.restarts.pop_front();
            self.agent.restart();
            self.flows = Flows { next: self.flows.next, ..Flows::default() };
        }
        let mut out = Outbox::default();
        if self.agent.next_timer().is_some_and(|at| at <= self.now) {
            self.agent.on_timer(self.now, &mut out);
        }
        self.work(out)
    }

    /// What is in `out`, as packets.
    fn work(&mut self, mut out: Outbox) -> Work {
        let mut work = Work { wake: self.next().is_some_and(|at| self.armed.is_none_or(|armed| at < armed)), ..Work::default() };
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
        work
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

/// Addresses and ports of a connection: of the host on the agent's side, and of that behind its link.
type Key = [(IpAddr, u16); 2];

fn key(packet: &wire::Packet, side: Side) -> Key {
    let (addresses, segment) = (packet.header.addresses, &packet.segment);
    let [from, to] = [(addresses.src(), segment.src_port), (addresses.dst(), segment.dst_port)];
    if side == Side::Fixed {
        [from, to]
    } else {
        [to, from]
    }
}

/// The segment in a packet, if an agent may see it: encoded anew it would say the same.
fn read(octets: &[u8]) -> Option<wire::Packet> {
    let header = Header::read(octets);
    let plain = if header.src.is_ipv4() { 20 } else { 40 };
    let reserved = octets.get(usize::from(header.ip_octets) + RESERVED.0)? & RESERVED.1;
    if header.protocol != ip::TCP || header.ip_octets != plain || reserved != 0 {
        return None;
    }
    wire::parse(&Bytes::copy_from_slice(octets)).ok().filter(|packet| packet.malformed.is_none())
}

/// A connection that crosses the link.
#[derive(Debug)]
struct Known {
    id: FlowId,
    used: u64,
    /// Hop limits with which packets of both hosts came last.
    hop_limits: [u8; 2],
    /// What the agent remembers of it.
    segments: u64,
}

/// Connections by their ends.
#[derive(Debug, Default)]
struct Flows {
    known: BTreeMap<Key, Known>,
    ends: BTreeMap<FlowId, Key>,
    /// The number of the next flow.
    next: usize,
    uses: u64,
}

impl Flows {
    /// The number of a flow of which a packet has come, and the flows that had to go for it.
    fn meet(&mut self, key: Key, way: Way, hop_limit: u8) -> (FlowId, Vec<FlowId>) {
        self.uses += 1;
        let mut gone = Vec::new();
        if !self.known.contains_key(&key) {
            for (side, (address, _)) in key.iter().enumerate() {
                gone.extend(self.make_room(MOST_BY_ADDRESS, |other| other[side].0 == *address));
            }
            gone.extend(self.make_room(MOST_FLOWS, |_| true));
            let id = FlowId::new(self.next);
            // An endpoint's number has one bit more than that of its flow, and 32 in all.
            self.next = (self.next + 1) % (1 << 31);
            self.ends.insert(id, key);
            self.known.insert(key, Known { id, used: 0, hop_limits: [HOP_LIMIT; 2], segments: 0 });
        }
        let known = self.known.get_mut(&key).expect("it is there");
        known.used = self.uses;
        known.hop_limits[usize::from(way == Way::Reverse)] = hop_limit;
        (known.id, gone)
    }

    /// Forgets the one that was quiet for longest of those that `counts` picks, if there are `most` of them.
    fn make_room(&mut self, most: usize, counts: impl Fn(&Key) -> bool) -> Option<FlowId> {
        if self.known.len() < most {
            return None;
        }
        let of_these = || self.known.iter().filter(|(key, _)| counts(key));
        if of_these().count() < most {
            return None;
        }
        let (&oldest, known) = of_these().min_by_key(|(_, known)| known.used)?;
        let id = known.id;
        self.known.remove(&oldest);
        self.ends.remove(&id);
        Some(id)
    }

    /// The IP header of a packet in the name of `from`.
    fn header(&self, from: EndpointId) -> Option<ip::Header> {
        let key = self.ends.get(&from.flow())?;
        let own = usize::from(from.way() == Way::Reverse);
        let addresses = ip::Addresses::new(key[own].0, key[1 - own].0)?;
        Some(ip::Header { addresses, hop_limit: self.known.get(key)?.hop_limits[own] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use whyloss_sim::MiddleboxKind;
    use whyloss_transport::segment::{Flags, RareOptions};
    use whyloss_transport::{Duration, Payload, Seq};

    const FIXED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn station(kind: &str) -> Station {
        Station::new(&Middlebox::new(0, 0, MiddleboxKind::named(kind).unwrap())).unwrap()
    }

    fn packet([src, dst]: [Ipv4Addr; 2], hop_limit: u8, segment: &Segment) -> Vec<u8> {
        let mut octets = Vec::new();
        let addresses = ip::Addresses::V4 { src, dst };
        wire::emit(&ip::Header { addresses, hop_limit }, segment, &mut octets).unwrap();
        octets
    }

    fn data(port: u16, n: u32) -> Segment {
        let payload = Payload::Bytes(Bytes::from(vec![n as u8; 100]));
        let (src_port, dst_port) = (80, port);
        Segment { src_port, dst_port, seq: Seq(n * 100), flags: Flags::ACK, window: 500, payload, ..Segment::default() }
    }

    fn ack(port: u16, n: u32) -> Segment {
        let (src_port, dst_port) = (port, 80);
        Segment { src_port, dst_port, ack: Seq(n * 100), flags: Flags::ACK, window: 900, ..Segment::default() }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn down(station: &Station, ms: u64, octets: &mut Vec<u8>) -> (Outcome, Work) {
        station.pass(Side::Fixed, at(ms), false, octets)
    }

    fn up(station: &Station, ms: u64, segment: &Segment) -> (Outcome, Work) {
        station.pass(Side::Mobile, at(ms), false, &mut packet([MOBILE, FIXED], 60, segment))
    }

    /// A snoop agent that has seen three segments, of which the first has come.
    fn begun() -> Station {
        let station = station("snoop");
        for n in 0..3 {
            assert_eq!(down(&station, 0, &mut packet([FIXED, MOBILE], 61, &data(5000, n))).0, Outcome::Untouched);
        }
        assert_eq!(up(&station, 5, &ack(5000, 1)).0, Outcome::Untouched);
        station
    }

    #[test]
    fn what_is_sent_again_is_the_packet_that_came() {
        let station = begun();
        let (outcome, work) = up(&station, 6, &ack(5000, 1));
        assert_eq!(outcome, Outcome::Suppressed);
        let [away, back] = work.made;
        assert!(back.is_empty());
        assert_eq!(away.len(), 1);
        assert!(away[0].urgent);
        assert_eq!(away[0].octets, packet([FIXED, MOBILE], 61, &data(5000, 1)));
        let audit = station.audit();
        assert_eq!((audit.seen, audit.suppressed, audit.sent, audit.changed), (5, 1, 1, 0));
        assert_eq!((audit.flows, audit.segments, audit.connection_segments), (1, 3, 3));
    }

    #[test]
    fn the_timer_sends_without_a_packet_and_wakes_who_sleeps() {
        let station = begun();
        let due = station.arm().unwrap();
        assert!(due >= at(105));
        assert!(station.advance(at(100)).made[0].is_empty());
        assert_eq!(station.advance(due).made[0][0].octets, packet([FIXED, MOBILE], 61, &data(5000, 1)));
        // Nobody waits for anything: the first timer of a connection is news.
        let quiet = self::station("snoop");
        assert_eq!(quiet.arm(), None);
        down(&quiet, 0, &mut packet([FIXED, MOBILE], 61, &Segment { flags: Flags::SYN, ..data(5000, 0) }));
        assert!(down(&quiet, 0, &mut packet([FIXED, MOBILE], 61, &Segment { seq: Seq(1), ..data(5000, 0) })).1.wake);
    }

    #[test]
    fn what_is_no_whole_intact_segment_passes_unseen() {
        let station = begun();
        let whole = packet([FIXED, MOBILE], 61, &data(5000, 3));
        let damaged = |octet: usize| {
            let mut octets = whole.clone();
            octets[octet] ^= 1;
            octets
        };
        let mut udp = whole.clone();
        udp[9] = 17;
        // Damage to data, to the TCP header, to the IP header; a reserved bit, another protocol, a part, nothing.
        for octets in [damaged(70), damaged(25), damaged(15), damaged(32), udp, whole[..30].to_vec(), whole[..8].to_vec(), vec![]]
        {
            let mut same = octets.clone();
            assert_eq!(down(&station, 7, &mut same).0, Outcome::Untouched);
            assert_eq!(same, octets);
        }
        assert_eq!(station.audit().seen, 4);
    }

    #[test]
    fn options_that_nobody_knows_stay_and_go_with_what_is_sent_again() {
        let station = begun();
        let rare = RareOptions { unknown: vec![(200, Bytes::from_static(&[1, 2, 3]))], ..RareOptions::default() };
        let mut segment = data(5000, 3);
        segment.options.rare = Some(Box::new(rare));
        let first = packet([FIXED, MOBILE], 61, &segment);
        let mut octets = first.clone();
        assert_eq!(down(&station, 6, &mut octets).0, Outcome::Untouched);
        assert_eq!(octets, first);
        up(&station, 7, &ack(5000, 3));
        let again = up(&station, 8, &ack(5000, 3)).1.made;
        assert_eq!(again[0][0].octets, first);
    }

    #[test]
    fn connections_are_bounded_in_all_and_by_address() {
        let station = station("snoop");
        let host = |n: u32| Ipv4Addr::from(0x0a00_0000 + n);
        for port in 0..2 * MOST_BY_ADDRESS as u16 {
            down(&station, 0, &mut packet([FIXED, MOBILE], 61, &data(port, 0)));
        }
        assert_eq!(station.audit().flows, MOST_BY_ADDRESS as u64);
        assert_eq!(station.audit().evicted, MOST_BY_ADDRESS as u64);
        for n in 0..2 * MOST_FLOWS as u32 {
            down(&station, 0, &mut packet([host(1000 + n), host(100_000 + n)], 61, &data(5000, 0)));
        }
        let state = lock(&station.state);
        assert_eq!((state.flows.known.len(), state.flows.ends.len()), (MOST_FLOWS, MOST_FLOWS));
        let held = state.agent.held();
        assert_eq!((held.flows, held.segments), (MOST_FLOWS as u64, MOST_FLOWS as u64));
    }

    #[test]
    fn a_restart_forgets_everything() {
        let kind = MiddleboxKind::named("snoop").unwrap();
        let station = Station::new(&Middlebox { restart: vec![at(10)], ..Middlebox::new(0, 0, kind) }).unwrap();
        down(&station, 0, &mut packet([FIXED, MOBILE], 61, &data(5000, 0)));
        assert_eq!(station.arm(), Some(at(10)));
        station.advance(at(10));
        assert_eq!(lock(&station.state).agent.held().flows, 0);
        assert_eq!(up(&station, 11, &ack(5000, 0)).0, Outcome::Untouched);
        assert_eq!(up(&station, 11, &ack(5000, 0)).0, Outcome::Untouched);
    }
}
