//! Two ends, the base station between them, and no link: segments take no time.

use super::*;
use crate::middlebox::Side;
use std::collections::VecDeque;
use whyloss_transport::scheme::Selection;
use whyloss_transport::segment::{Integrity, Timestamps};
use whyloss_transport::tcp::{Closing, Event, State};
use whyloss_transport::{Command, Config, Endpoint, Input, Payload, Ports};

const CLIENT: EndpointId = EndpointId::new(0);
const BUFFER: u64 = 8192;

/// A client at the fixed host, the base station, and a server at the mobile host. Segments take no time.
struct World {
    agent: ITcp,
    client: Endpoint,
    server: Endpoint,
    now: Instant,
    /// Segments on their way, with the endpoint in whose name they are.
    on_air: VecDeque<(EndpointId, Segment)>,
    /// Whether what goes to the server arrives.
    reachable: bool,
    /// The longest segment that a link towards the server takes, TCP header included; its router tells.
    room: usize,
    /// An end closes when its peer has closed.
    polite: bool,
    received: Vec<u8>,
    endings: Vec<(EndpointId, Closing)>,
}

fn endpoint(initial_seq: u32, ports: Ports) -> Endpoint {
    let mut config = Config { initial_seq, mss: 1000, ..Config::modern() };
    let parts = Selection::scheme("newreno").build(&mut config).unwrap();
    Endpoint::new(config, parts, ports)
}

impl World {
    fn new(settings: Settings) -> Self {
        let mut server = endpoint(u32::MAX - 5000, Ports { local: 80, remote: 1000 });
        server.handle(Instant::ZERO, Input::Command(Command::Listen));
        Self {
            agent: ITcp::new(settings),
            client: endpoint(77, Ports { local: 1000, remote: 80 }),
            server,
            now: Instant::ZERO,
            on_air: VecDeque::new(),
            reachable: true,
            room: usize::MAX,
            polite: true,
            received: Vec::new(),
            endings: Vec::new(),
        }
    }

    fn connected(settings: Settings) -> Self {
        let mut world = Self::new(settings);
        let now = world.now;
        world.client.handle(now, Input::Command(Command::Connect));
        world.run(Duration::from_millis(10));
        assert_eq!([&world.client, &world.server].map(Endpoint::state), [State::Established; 2]);
        world
    }

    fn settings() -> Settings {
        Settings { buffer: BUFFER, ..Settings::default() }
    }

    fn write(&mut self, octets: &[u8]) {
        let payload = Payload::Bytes(octets.to_vec().into());
        self.client.handle(self.now, Input::Command(Command::Send(payload)));
    }

    /// Lets so much time pass.
    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            while self.step() {}
            let held = self.agent.held();
            assert!(held.octets <= held.flows * (FLOW_OCTETS + 4 * BUFFER), "{held:?}");
            let timers = [self.client.poll_timeout(), self.server.poll_timeout(), self.agent.next_timer()];
            let Some(next) = timers.into_iter().flatten().min().filter(|at| *at <= until) else { break };
            self.now = self.now.max(next);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            let mut out = Outbox::default();
            self.agent.on_timer(self.now, &mut out);
            self.deliver(&mut out);
        }
        self.now = until;
    }

    /// Moves one segment, or lets the hosts do what they have to do. Returns whether anything happened.
    fn step(&mut self) -> bool {
        for (end, host) in [(CLIENT, &mut self.client), (CLIENT.peer(), &mut self.server)] {
            while let Some(event) = host.poll_event() {
                match event {
                    Event::Closed(closing) => self.endings.push((end, closing)),
                    Event::PeerClosed if self.polite => host.handle(self.now, Input::Command(Command::Close)),
                    _ => {}
                }
            }
            while let Some(piece) = host.read(self.now, usize::MAX) {
                self.received.extend_from_slice(&piece.to_bytes());
            }
            while let Some(segment) = host.poll_transmit(self.now) {
                self.on_air.push_back((end, segment));
            }
        }
        let Some((from, mut segment)) = self.on_air.pop_front() else { return false };
        let side = if from == CLIENT { Side::Fixed } else { Side::Mobile };
        let transit = Transit { now: self.now, from, side, crowded: false, corruption: 0.0 };
        let mut out = Outbox::default();
        match self.agent.pass(&transit, &mut segment, &mut out) {
            Handling::Forward => self.arrive(from, &segment),
            Handling::Accept => {}
            Handling::Suppress => panic!("{segment:?}"),
        }
        self.deliver(&mut out);
        true
    }

    fn deliver(&mut self, out: &mut Outbox) {
        for outgoing in out.take() {
            let segment = &outgoing.segment;
            if outgoing.from == CLIENT && segment.len() > self.room {
                let room = Some(self.room as u16);
                let mut more = Outbox::default();
                assert!(self.agent.too_big(self.now, CLIENT, segment.seq, room, &mut more));
                self.deliver(&mut more);
            } else {
                self.arrive(outgoing.from, segment);
            }
        }
    }

    fn arrive(&mut self, from: EndpointId, segment: &Segment) {
        let input = Input::Segment(segment, Integrity::Intact);
        if from != CLIENT {
            self.client.handle(self.now, input);
        } else if self.reachable {
            self.server.handle(self.now, input);
        }
    }
}

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * at % 251) as u8).collect()
}

#[test]
fn what_goes_in_comes_out_and_nothing_stays() {
    let mut world = World::connected(World::settings());
    assert_eq!(world.agent.held().flows, 1);
    world.write(&text(300_000));
    let now = world.now;
    world.client.handle(now, Input::Command(Command::Close));
    world.run(Duration::from_secs(30));
    assert!(world.received == text(300_000));
    world.run(Duration::from_secs(300));
    assert_eq!(world.endings.len(), 2);
    assert!(world.endings.iter().all(|(_, closing)| *closing == Closing::Normal), "{:?}", world.endings);
    assert_eq!((world.agent.held().flows, world.agent.held().octets, world.agent.next_timer()), (0, 0, None));
}

#[test]
fn both_ends_keep_their_sequence_numbers() {
    let mut world = World::new(World::settings());
    let now = world.now;
    world.client.handle(now, Input::Command(Command::Connect));
    let mut syn = world.client.poll_transmit(now).unwrap();
    let transit = Transit { now, from: CLIENT, side: Side::Fixed, crowded: false, corruption: 0.0 };
    let mut out = Outbox::default();
    assert_eq!(world.agent.pass(&transit, &mut syn, &mut out), Handling::Accept);
    let sent = out.take();
    assert_eq!(sent.len(), 1, "nobody has answered yet: only the far end is asked");
    assert_eq!((sent[0].from, sent[0].segment.seq, sent[0].segment.dst_port), (CLIENT, syn.seq, 80));
    world.arrive(CLIENT, &sent[0].segment);
    let mut answer = world.server.poll_transmit(now).unwrap();
    let transit = Transit { from: CLIENT.peer(), side: Side::Mobile, ..transit };
    assert_eq!(world.agent.pass(&transit, &mut answer, &mut out), Handling::Accept);
    let sent = out.take();
    let near = sent.iter().find(|outgoing| outgoing.from == CLIENT.peer()).unwrap();
    assert_eq!((near.segment.seq, near.segment.ack), (answer.seq, answer.ack));
}

#[test]
fn data_is_acknowledged_before_it_arrives_and_no_more_than_there_is_room_for() {
    let mut world = World::connected(World::settings());
    world.reachable = false;
    world.write(&text(300_000));
    world.run(Duration::from_secs(5));
    assert!(world.received.is_empty());
    let acknowledged = world.client.octets_acknowledged();
    assert!((BUFFER..=2 * BUFFER).contains(&acknowledged), "{acknowledged}");
    world.reachable = true;
    world.run(Duration::from_secs(200));
    assert!(world.received == text(300_000));
}

#[test]
fn who_refuses_refuses_the_opener() {
    let mut world = World::new(World::settings());
    let now = world.now;
    world.client.handle(now, Input::Command(Command::Connect));
    let mut syn = world.client.poll_transmit(now).unwrap();
    let transit = Transit { now, from: CLIENT, side: Side::Fixed, crowded: false, corruption: 0.0 };
    let mut out = Outbox::default();
    world.agent.pass(&transit, &mut syn, &mut out);
    // What a host without a listener says (RFC 9293, 3.10.7.1).
    let mut refusal =
        Segment { src_port: 80, dst_port: 1000, ack: syn.seq + 1, flags: Flags::RST | Flags::ACK, ..Segment::default() };
    let transit = Transit { from: CLIENT.peer(), side: Side::Mobile, ..transit };
    out.take();
    assert_eq!(world.agent.pass(&transit, &mut refusal, &mut out), Handling::Forward);
    world.arrive(CLIENT.peer(), &refusal);
    world.step();
    assert_eq!(world.endings, [(CLIENT, Closing::Refused)]);
    assert_eq!((world.agent.held().flows, world.agent.next_timer()), (0, None));
}

#[test]
fn a_reset_of_one_half_resets_the_other() {
    for by_client in [true, false] {
        let mut world = World::connected(World::settings());
        let now = world.now;
        let host = if by_client { &mut world.client } else { &mut world.server };
        host.handle(now, Input::Command(Command::Abort));
        world.run(Duration::from_secs(1));
        let (by, other) = if by_client { (CLIENT, CLIENT.peer()) } else { (CLIENT.peer(), CLIENT) };
        assert!(world.endings.contains(&(other, Closing::Reset)), "{:?} after {by:?}", world.endings);
        assert_eq!(world.agent.held().flows, 0);
    }
}

#[test]
fn what_there_is_no_room_for_passes_whole() {
    let mut world = World::connected(Settings { flows: 1, idle_s: 10.0, ..World::settings() });
    assert_eq!(syn(&mut world.agent, 6, 9_999), (Handling::Forward, vec![]));
    let (handling, sent) = syn(&mut world.agent, 7, 10_000);
    assert_eq!(handling, Handling::Accept);
    // The ends of the one that was quiet for so long hear that it is over.
    assert_eq!(sent.iter().filter(|segment| segment.flags.contains(Flags::RST)).count(), 2);
    assert_eq!(world.agent.held().flows, 1);
}

#[test]
fn what_was_acknowledged_dies_with_the_base_station_and_is_never_made_up() {
    let mut world = World::connected(World::settings());
    world.reachable = false;
    world.write(&text(100_000));
    world.run(Duration::from_secs(1));
    let lost = world.client.octets_acknowledged();
    assert!(lost > 0);
    world.agent.restart();
    assert_eq!(world.agent.held(), Held::default());
    world.reachable = true;
    world.run(Duration::from_secs(60));
    assert!(world.received.is_empty(), "there is a hole that nobody can fill");
    assert!(!world.endings.iter().any(|(_, closing)| *closing == Closing::Normal));
}

#[test]
fn a_new_connection_with_old_ports_begins_anew() {
    let mut world = World::connected(World::settings());
    world.client = endpoint(5_000_000, Ports { local: 1000, remote: 80 });
    world.server = endpoint(6_000_000, Ports { local: 80, remote: 1000 });
    let now = world.now;
    world.server.handle(now, Input::Command(Command::Listen));
    world.client.handle(now, Input::Command(Command::Connect));
    world.write(&text(20_000));
    world.run(Duration::from_secs(2));
    assert!(world.received == text(20_000));
    assert_eq!(world.agent.held().flows, 1);
}

/// What the agent makes of a SYN of the client of flow `flow`, and what it sends.
fn syn(agent: &mut ITcp, flow: usize, ms: u64) -> (Handling, Vec<Segment>) {
    let now = Instant::ZERO + Duration::from_millis(ms);
    let transit = Transit { now, from: EndpointId::new(2 * flow), side: Side::Fixed, crowded: false, corruption: 0.0 };
    let mut syn = Segment { src_port: 1000, dst_port: 80, seq: Seq(9), flags: Flags::SYN, window: 500, ..Segment::default() };
    let mut out = Outbox::default();
    let handling = agent.pass(&transit, &mut syn, &mut out);
    (handling, out.take().into_iter().map(|outgoing| outgoing.segment).collect())
}

#[test]
fn a_syn_with_a_made_up_address_costs_the_far_end_no_connection() {
    let mut agent = ITcp::new(World::settings());
    let (_, sent) = syn(&mut agent, 0, 0);
    assert_eq!(sent[0].flags, Flags::SYN);
    let mut answer = Segment { src_port: 80, dst_port: 1000, seq: Seq(70), ack: Seq(10), window: 500, ..Segment::default() };
    answer.flags = Flags::SYN | Flags::ACK;
    let mut pass = |from: EndpointId, segment: &Segment| {
        let side = if from == CLIENT { Side::Fixed } else { Side::Mobile };
        let transit = Transit { now: Instant::ZERO, from, side, crowded: false, corruption: 0.0 };
        let mut out = Outbox::default();
        assert_eq!(agent.pass(&transit, &mut segment.clone(), &mut out), Handling::Accept);
        let answers_for = agent.answers_for(CLIENT.flow());
        (out.take().into_iter().map(|outgoing| (outgoing.from, outgoing.segment.flags)).collect::<Vec<_>>(), answers_for)
    };
    // Sent again or not, the far end's answer is not acknowledged before the opener has been heard again.
    assert_eq!(pass(CLIENT.peer(), &answer), (vec![(CLIENT.peer(), Flags::SYN | Flags::ACK)], false));
    assert_eq!(pass(CLIENT.peer(), &answer), (vec![], false));
    let ack = Segment {
        flags: Flags::ACK,
        src_port: 1000,
        dst_port: 80,
        seq: Seq(10),
        ack: Seq(71),
        window: 500,
        ..Segment::default()
    };
    assert_eq!(pass(CLIENT, &ack), (vec![(CLIENT, Flags::ACK)], true));
}

#[test]
fn what_is_long_being_opened_makes_room_and_what_stands_does_not() {
    let mut world = World::connected(Settings { flows: 3, opening_s: 2.0, ..World::settings() });
    world.reachable = false;
    world.write(&text(100_000));
    world.run(Duration::from_secs(1));
    // Two SYNs a second: two of them have two seconds to be answered, and what comes meanwhile passes whole.
    for flow in 1..1000 {
        let split = syn(&mut world.agent, flow, 500 * flow as u64).0 == Handling::Accept;
        assert_eq!(split, (flow - 1) % 4 < 2, "{flow}");
        assert_eq!(split, world.agent.receives(FlowId::new(flow)));
        assert!(world.agent.held().flows <= 3);
    }
    world.reachable = true;
    world.run(Duration::from_secs(1000));
    assert!(world.received == text(100_000));
    assert_eq!(world.agent.held().flows, 1, "what nobody answered is over by itself");
}

#[test]
fn as_many_are_split_as_could_fill_their_buffers() {
    let mut world = World::connected(Settings { octets: 4 * BUFFER, ..World::settings() });
    assert_eq!(syn(&mut world.agent, 1, 1000), (Handling::Forward, vec![]));
    world.write(&text(10_000));
    world.run(Duration::from_secs(2));
    assert!(world.received == text(10_000));
}

#[test]
fn either_end_may_close_first_and_the_other_may_speak_on() {
    for client_first in [true, false] {
        let mut world = World::connected(World::settings());
        world.polite = false;
        let now = world.now;
        let first = if client_first { &mut world.client } else { &mut world.server };
        first.handle(now, Input::Command(Command::Send(Payload::Bytes(text(3000).into()))));
        first.handle(now, Input::Command(Command::Close));
        world.run(Duration::from_secs(1));
        assert!(world.received == text(3000));
        let second = if client_first { &mut world.server } else { &mut world.client };
        assert_eq!(second.state(), State::CloseWait);
        for piece in text(50_000).chunks(5000) {
            let second = if client_first { &mut world.server } else { &mut world.client };
            second.handle(world.now, Input::Command(Command::Send(Payload::Bytes(piece.to_vec().into()))));
            world.run(Duration::from_secs(1));
        }
        assert!(world.received[3000..] == text(50_000));
        let second = if client_first { &mut world.server } else { &mut world.client };
        second.handle(world.now, Input::Command(Command::Close));
        world.run(Duration::from_secs(1));
        assert!(!world.agent.answers_for(CLIENT.flow()), "nothing is left to answer for");
        world.run(Duration::from_secs(100));
        assert!(world.endings.len() == 2 && world.endings.iter().all(|(_, closing)| *closing == Closing::Normal));
        assert_eq!((world.agent.held(), world.agent.next_timer()), (Held { flow_octets: FLOW_OCTETS, ..Held::default() }, None));
    }
}

#[test]
fn ports_are_used_again_while_the_base_station_still_waits() {
    let mut world = World::connected(World::settings());
    // Who closes last may open the next connection at once.
    world.server.handle(world.now, Input::Command(Command::Close));
    world.run(Duration::from_secs(1));
    assert_eq!((world.client.state(), world.agent.held().flows), (State::Closed, 1));
    world.client = endpoint(200_000, Ports { local: 1000, remote: 80 });
    world.server = endpoint(6_000_000, Ports { local: 80, remote: 1000 });
    world.server.handle(world.now, Input::Command(Command::Listen));
    world.client.handle(world.now, Input::Command(Command::Connect));
    world.write(&text(20_000));
    world.run(Duration::from_millis(500));
    assert!(world.received == text(20_000));
    assert_eq!(world.agent.held().flows, 1);
}

#[test]
fn a_syn_out_of_nowhere_does_not_end_a_connection() {
    let mut world = World::connected(World::settings());
    let timestamps = Some(Timestamps { value: 1, echo: 0 });
    for from in [CLIENT, CLIENT.peer()] {
        let mut forged = Segment { seq: Seq(123_456), flags: Flags::SYN, window: 500, ..Segment::default() };
        (forged.src_port, forged.dst_port) = if from == CLIENT { (1000, 80) } else { (80, 1000) };
        forged.options.timestamps = timestamps;
        world.on_air.push_back((from, forged));
    }
    world.write(&text(20_000));
    world.run(Duration::from_secs(1));
    assert!(world.received == text(20_000) && world.endings.is_empty(), "{:?}", world.endings);
}

#[test]
fn a_half_heeds_the_router_that_its_segments_are_too_big_for() {
    let mut world = World::connected(World::settings());
    world.room = 600;
    world.write(&text(50_000));
    world.run(Duration::from_secs(1));
    assert!(world.received == text(50_000));
    let stranger = EndpointId::new(8);
    assert!(!world.agent.too_big(world.now, stranger, Seq(1), Some(600), &mut Outbox::default()));
}

#[test]
fn who_can_reach_an_end_no_more_tells_the_other() {
    let mut world = World::connected(World::settings());
    world.reachable = false;
    world.write(&text(1000));
    world.run(Duration::from_secs(1200));
    assert_eq!(world.endings, [(CLIENT, Closing::Reset)]);
    assert_eq!((world.agent.held().flows, world.agent.next_timer()), (0, None));
}

#[test]
fn a_connection_that_has_to_go_is_reset_at_both_ends() {
    let mut world = World::connected(World::settings());
    let mut out = Outbox::default();
    world.agent.dismiss(world.now, CLIENT.flow(), &mut out);
    world.agent.forget(CLIENT.flow());
    world.deliver(&mut out);
    world.run(Duration::from_secs(1));
    assert_eq!(world.endings.len(), 2);
    assert!(world.endings.iter().all(|(_, closing)| *closing == Closing::Reset));
}
