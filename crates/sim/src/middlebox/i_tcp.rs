//! I-TCP (Bakre & Badrinath 1995): the base station splits a connection in two.
//!
//! To the fixed host it is the mobile host, to the mobile host it is the fixed host. Each half has its own congestion control, buffers,
//! timers and options; the sequence numbers are those of the ends on both halves. The base station opens its half to the far end first
//! and answers the opener when the far end has, so that who refuses, refuses the opener.
//!
//! What it acknowledges has not arrived: when it is started again, or a mobile host leaves it, acknowledged data is gone. That is the
//! price of I-TCP, not an accident here.

use super::agent::{Agent, Handling, Outbox, Side, Transit};
use super::deadlines::Deadlines;
use super::table::Table;
use crate::address::{EndpointId, FlowId};
use crate::record::Held;
use whyloss_transport::kit::{Build, Choice, Notes, Part};
use whyloss_transport::scheme::Selection;
use whyloss_transport::segment::{Flags, Integrity};
use whyloss_transport::tcp::{Event, State};
use whyloss_transport::{choices, settings, Command, Config, Endpoint, Input, Instant, Ports, Segment};

/// Its row.
pub(super) const PART: Part<dyn Agent> = Part {
    name: "i-tcp",
    summary: "Splits connections: one to the fixed host, one to the mobile host, each with a scheme of its own.",
    reference: "Bakre & Badrinath 1995",
    notes: Notes {
        idea: "The wired half never sees what the wireless link loses, and the wireless half recovers over a short round trip.",
        fails: "Data is acknowledged before it has arrived: what the base station holds is lost with it, and the sender does not know. Nothing end to end comes through: options, reports, ECN. Each connection needs buffers and two states.",
        errata: "In the original the mobile host calls a library that knows of the base station; here neither end knows.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

choices! {
    /// The scheme of a half.
    pub(super) enum Scheme {
        /// SACK with NewReno's window.
        Sack = "sack",
        /// NewReno.
        NewReno = "newreno",
        /// Reno.
        Reno = "reno",
        /// CUBIC.
        Cubic = "cubic",
        /// Veno.
        Veno = "veno",
        /// Westwood+.
        WestwoodPlus = "westwood-plus",
    }
}

settings! {
    /// The halves, and how much they may hold.
    pub(super) struct Settings {
        /// The scheme towards the fixed host.
        fixed: Scheme;
        /// The scheme towards the mobile host.
        mobile: Scheme;
        /// The largest segment on either half in octets, if the ends allow as much.
        mss: u32 = 1460, 100..=9000;
        /// Octets of each of the four buffers of a connection: received and to be sent, on either half.
        buffer: u64 = 262_144, 4096..=1_000_000_000;
        /// Connections that are split; further ones pass whole.
        flows: usize = 1024, 1..=1_000_000;
        /// Seconds without a segment after which a connection makes room for a new one, if there is none left.
        idle_s: f64 = 3600.0, 1.0..=1_000_000.0;
    }
}

impl Build<dyn Agent> for Settings {
    fn build(self) -> Box<dyn Agent> {
        Box::new(ITcp::new(self))
    }
}

/// Splits connections.
#[derive(Debug)]
pub(super) struct ITcp {
    settings: Settings,
    flows: Table<Split>,
    timers: Deadlines,
    held: Held,
}

/// A connection in two halves.
#[derive(Debug)]
struct Split {
    /// The end that opened the connection.
    opener: EndpointId,
    /// The SYN of the opener.
    syn: Segment,
    /// How the half towards the opener is made once the far end has answered.
    near_scheme: Scheme,
    /// The half towards the opener, in the name of its peer.
    near: Option<Half>,
    /// The half towards its peer, in the name of the opener.
    far: Half,
    /// When a segment of either end came last.
    heard: Instant,
}

/// One half: a connection of the base station's own.
#[derive(Debug)]
struct Half {
    tcp: Endpoint,
    /// Everything that its peer sends has arrived here.
    ended: bool,
    /// It has been told to close.
    closing: bool,
    /// It is over, and not in order.
    broken: bool,
}

const FLOW_OCTETS: u64 = (size_of::<Split>() + size_of::<Half>()) as u64;

impl Half {
    fn new(settings: &Settings, scheme: Scheme, syn: &Segment, initial_seq: u32, ports: Ports) -> Option<Self> {
        let name = Scheme::ALL.iter().find(|(_, other)| *other == scheme).map(|(name, _)| *name)?;
        let mut config = Config {
            initial_seq,
            // RFC 9293, 3.7.1: who says nothing takes 536.
            mss: (settings.mss as u16).min(syn.options.mss.unwrap_or(536)),
            send_buffer: settings.buffer,
            receive_buffer: settings.buffer,
            auto_read: false,
            // The ends give up, not the base station.
            max_retransmissions: None,
            ..Config::modern()
        };
        let parts = Selection::scheme(name).build(&mut config).ok()?;
        Some(Self { tcp: Endpoint::new(config, parts, ports), ended: false, closing: false, broken: false })
    }

    fn take(&mut self, now: Instant, segment: &Segment) {
        self.tcp.handle(now, Input::Segment(segment, Integrity::Intact));
    }

    /// Hears what has happened to the connection.
    fn listen(&mut self) {
        while let Some(event) = self.tcp.poll_event() {
            match event {
                Event::PeerClosed => self.ended = true,
                Event::Closed(closing) => self.broken |= closing != whyloss_transport::tcp::Closing::Normal,
                _ => {}
            }
        }
    }

    fn is_over(&self) -> bool {
        self.tcp.state() == State::Closed
    }

    /// Octets in its buffers.
    fn octets(&self) -> u64 {
        self.tcp.octets_written() - self.tcp.octets_acknowledged() + self.tcp.octets_unread()
    }

    /// Hands on what has come, as far as the other half has room for it.
    fn relay(&mut self, now: Instant, to: &mut Self) {
        let mut drained = false;
        while !drained && to.tcp.send_space() > 0 {
            match self.tcp.read(now, to.tcp.send_space() as usize) {
                Some(piece) => to.tcp.handle(now, Input::Command(Command::Send(piece))),
                None => drained = true,
            }
        }
        // Not before it stands: closing earlier gives up what is to be sent (RFC 9293, 3.10.4).
        let stands = !matches!(to.tcp.state(), State::SynSent | State::SynReceived | State::Listen);
        if drained && self.ended && stands && !to.closing {
            to.closing = true;
            to.tcp.handle(now, Input::Command(Command::Close));
        }
    }
}

impl Split {
    fn new(now: Instant, settings: &Settings, transit: &Transit, syn: &Segment) -> Option<Self> {
        let (near_scheme, far_scheme) = match transit.side {
            Side::Fixed => (settings.fixed, settings.mobile),
            Side::Mobile => (settings.mobile, settings.fixed),
        };
        let ports = Ports { local: syn.src_port, remote: syn.dst_port };
        let mut far = Half::new(settings, far_scheme, syn, syn.seq.0, ports)?;
        far.tcp.handle(now, Input::Command(Command::Connect));
        Some(Self { opener: transit.from, syn: syn.clone(), near_scheme, near: None, far, heard: now })
    }

    /// The half towards the opener, now that the far end has answered with this.
    fn answer(&mut self, now: Instant, settings: &Settings, answer: &Segment) {
        let ports = Ports { local: self.syn.dst_port, remote: self.syn.src_port };
        let Some(mut near) = Half::new(settings, self.near_scheme, &self.syn, answer.seq.0, ports) else { return };
        near.tcp.handle(now, Input::Command(Command::Listen));
        near.take(now, &self.syn);
        self.near = Some(near);
    }

    /// Lets both halves do what they have to do. Returns whether the connection is over.
    fn pump(&mut self, now: Instant, out: &mut Outbox) -> bool {
        self.far.listen();
        if let Some(near) = &mut self.near {
            near.listen();
            near.relay(now, &mut self.far);
            self.far.relay(now, near);
            // What breaks one half breaks the other: both ends are told.
            let broken = near.broken || self.far.broken;
            for other in [near, &mut self.far] {
                if broken && !other.is_over() {
                    other.tcp.handle(now, Input::Command(Command::Abort));
                }
            }
        }
        self.send(now, out);
        self.far.is_over() && self.near.as_ref().is_none_or(Half::is_over)
    }

    fn send(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(segment) = self.far.tcp.poll_transmit(now) {
            out.send(self.opener, segment);
        }
        if let Some(near) = &mut self.near {
            while let Some(segment) = near.tcp.poll_transmit(now) {
                out.send(self.opener.peer(), segment);
            }
            near.listen();
        }
        self.far.listen();
    }

    fn halves(&self) -> impl Iterator<Item = &Half> {
        self.near.iter().chain([&self.far])
    }

    fn octets(&self) -> u64 {
        self.halves().map(Half::octets).sum()
    }

    fn due(&self) -> Option<Instant> {
        self.halves().filter_map(|half| half.tcp.poll_timeout()).min()
    }
}

impl ITcp {
    fn new(settings: Settings) -> Self {
        Self { settings, flows: Table::new(settings.flows), timers: Deadlines::default(), held: Held::default() }
    }

    /// The octets in the buffers of a flow have become others.
    fn note(&mut self, before: u64, after: u64) {
        let flows = self.flows.len() as u64;
        let buffers = self.held.octets - self.held.flows * FLOW_OCTETS + after - before;
        let flow_octets = FLOW_OCTETS + after;
        self.held = Held { flows, segments: 0, octets: flows * FLOW_OCTETS + buffers, flow_octets };
    }

    fn forget(&mut self, id: FlowId) {
        let before = self.flows.remove(id).map_or(0, |split| split.octets());
        self.timers.set(id, None);
        self.note(before, 0);
    }

    /// A connection is to be opened. Returns whether it is split.
    fn open(&mut self, transit: &Transit, syn: &Segment, out: &mut Outbox) -> bool {
        let id = transit.from.flow();
        if let Some(split) = self.flows.get(id) {
            if split.opener == transit.from && split.syn.seq == syn.seq {
                // It is sent again by the far half, or answered by the near one.
                if let Some(near) = &mut split.near {
                    near.take(transit.now, syn);
                }
                return true;
            }
            self.forget(id);
        }
        // Data on a SYN waits for nobody: such a connection stays whole.
        let plain = syn.is_empty() && syn.options.rare.as_ref().is_none_or(|rare| rare.fast_open.is_none());
        if !plain || !self.make_room(transit.now) {
            return false;
        }
        let Some(mut split) = Split::new(transit.now, &self.settings, transit, syn) else { return false };
        split.send(transit.now, out);
        let due = split.due();
        self.flows.get_or_insert(id, || split);
        self.timers.set(id, due);
        self.note(0, 0);
        true
    }

    /// Whether there is room for a further connection.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.flows.len() < self.settings.flows {
            return true;
        }
        let idle = whyloss_transport::Duration::from_nanos((self.settings.idle_s * 1e9) as u64);
        match self.flows.oldest() {
            Some((id, split)) if now.since(split.heard) >= idle => {
                self.forget(id);
                true
            }
            _ => false,
        }
    }
}

impl Agent for ITcp {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment, out: &mut Outbox) -> Handling {
        let (id, now, settings) = (transit.from.flow(), transit.now, self.settings);
        let opens = segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST);
        if opens && !self.open(transit, segment, out) {
            return Handling::Forward;
        }
        let Some(split) = self.flows.get(id) else { return Handling::Forward };
        split.heard = now;
        let before = split.octets();
        let mut refused = false;
        if transit.from != split.opener {
            split.far.take(now, segment);
            split.far.listen();
            if split.near.is_none() && split.far.tcp.state() == State::Established && segment.flags.contains(Flags::SYN) {
                split.answer(now, &settings, segment);
            }
            refused = split.near.is_none() && split.far.is_over();
        } else if !segment.flags.contains(Flags::SYN) {
            match &mut split.near {
                Some(near) => near.take(now, segment),
                // It gives up before anybody has answered.
                None => refused = segment.flags.contains(Flags::RST),
            }
        }
        let over = split.pump(now, out);
        let (due, after) = (split.due(), split.octets());
        self.timers.set(id, due);
        self.note(before, after);
        if over || refused {
            self.forget(id);
        }
        if refused {
            Handling::Forward
        } else {
            Handling::Accept
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn on_timer(&mut self, now: Instant, out: &mut Outbox) {
        let due: Vec<_> = std::iter::from_fn(|| self.timers.take(now)).collect();
        for id in due {
            let Some(split) = self.flows.get_mut(id) else { continue };
            let before = split.octets();
            for half in split.near.iter_mut().chain([&mut split.far]) {
                half.tcp.handle_timeout(now);
            }
            let over = split.pump(now, out);
            let (due, after) = (split.due(), split.octets());
            self.timers.set(id, due);
            self.note(before, after);
            if over {
                self.forget(id);
            }
        }
    }

    fn restart(&mut self) {
        self.flows.clear();
        self.timers.clear();
        self.held = Held::default();
    }

    fn held(&self) -> Held {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use whyloss_transport::tcp::Closing;
    use whyloss_transport::{Duration, Payload};

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
                        Event::PeerClosed => host.handle(self.now, Input::Command(Command::Close)),
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
                self.arrive(outgoing.from, &outgoing.segment);
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
        let mut world = World::new(Settings { flows: 1, idle_s: 10.0, ..World::settings() });
        let syn = |flow: usize, ms: u64, agent: &mut ITcp| {
            let from = EndpointId::new(2 * flow);
            let now = Instant::ZERO + Duration::from_millis(ms);
            let transit = Transit { now, from, side: Side::Fixed, crowded: false, corruption: 0.0 };
            let mut syn = Segment { flags: Flags::SYN, ..Segment::default() };
            agent.pass(&transit, &mut syn, &mut Outbox::default())
        };
        assert_eq!(syn(5, 0, &mut world.agent), Handling::Accept);
        assert_eq!(syn(6, 9_999, &mut world.agent), Handling::Forward);
        assert_eq!(syn(7, 10_000, &mut world.agent), Handling::Accept);
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
}
