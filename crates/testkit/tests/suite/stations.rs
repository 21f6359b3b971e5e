//! Random worlds with an agent at a base station between two hosts, whatever the agent: a wired way on one side of it, a wireless link on the
//! other. Nothing is lost and nothing comes twice, through loss, reordering, stripped options, rewritten ports, resets and a station that dies and
//! comes back; and what the agent remembers is bounded.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as Cases, TestCaseError, TestRunner};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use whyloss_sim::middlebox::{Agent, Handling, Outbox, Side, Transit};
use whyloss_sim::{EndpointId, FlowId, Middlebox, MiddleboxKind, Way};
use whyloss_transport::kit::Value;
use whyloss_transport::scheme::{Selection, SCHEMES};
use whyloss_transport::segment::{Flags, Integrity};
use whyloss_transport::tcp::{Closing, Event};
use whyloss_transport::{Command, Config, Duration, Endpoint, Input, Instant, Payload, Ports, Segment};

#[derive(Clone, Debug)]
struct World {
    seed: u64,
    kind: MiddleboxKind,
    /// The agent has room for next to nothing.
    tight: bool,
    scheme: &'static str,
    /// Whether both hosts are for SACK, timestamps and window scaling.
    options: [bool; 3],
    /// The host that opens the connection is the mobile one.
    mobile_opens: bool,
    /// Octets that the host that opens sends, and the other.
    sends: [u64; 2],
    /// The wired way and the wireless link.
    wires: [Wire; 2],
    /// Options that somebody takes out before they come to the station, from either side: SACK, timestamps, window scaling.
    stripped: [bool; 3],
    /// What a translator on the wired way makes of the port of the host behind it.
    port: Option<u16>,
    /// When the station dies and comes back with nothing, in milliseconds.
    restart: Option<u64>,
    /// When a host aborts the connection, and which.
    abort: Option<(u64, usize)>,
}

/// Both directions of a wire.
#[derive(Clone, Copy, Debug)]
struct Wire {
    delay_ms: u64,
    loss: f64,
    /// Share of segments that come up to so many milliseconds later.
    late: (f64, u64),
}

/// Bounds of what agents remember.
const TIGHT: [(&str, f64); 5] = [("flows", 2.0), ("segments", 5.0), ("pieces", 5.0), ("octets", 40_000.0), ("buffer", 4096.0)];
/// The ports of the host that opens the connection, and of the other.
const PORTS: [u16; 2] = [1000, 80];
/// Whatever becomes of a connection has become of it by then, in seconds: timeouts of up to two minutes, a dozen in a row.
const END: u64 = 3600;
/// A world that ends does so in far fewer steps.
const STEPS: u64 = 1_000_000;

/// A host with its application: it writes all that it has, and closes when that is done and, if it has not opened, the peer has closed.
struct Host {
    tcp: Endpoint,
    sends: u64,
    written: u64,
    received: u64,
    connected: bool,
    peer_closed: bool,
    closing: bool,
    ended: Option<Closing>,
}

/// What travels.
enum Step {
    /// A segment in the name of a host comes to the station.
    Station(usize, Segment),
    /// A segment in the name of a host comes to the other.
    Host(usize, Segment),
    Restart,
    Abort(usize),
}

struct Run<'a> {
    world: &'a World,
    now: Instant,
    random: Pcg64Mcg,
    hosts: [Host; 2],
    agent: Box<dyn Agent>,
    /// By time and then by number.
    queue: BinaryHeap<Reverse<(Instant, u64)>>,
    steps: BTreeMap<u64, Step>,
    next: u64,
}

/// Octet number `at` of what host `who` sends.
fn octet(who: usize, at: u64) -> u8 {
    ((at * 31 + at / 256 * 7 + who as u64 * 101) % 251) as u8
}

impl World {
    /// Lets time pass and checks what must hold. Returns whether both hosts got all that the other had to send.
    fn run(&self) -> Result<bool, String> {
        let hosts = [0, 1].map(|who| {
            let [sack, timestamps, window_scaling] = self.options;
            let mut config = Config {
                initial_seq: self.seed as u32 ^ (who as u32 * 77),
                max_retransmissions: None,
                max_syn_retransmissions: None,
                auto_read: false,
                sack,
                timestamps,
                window_scaling,
                ..Config::modern()
            };
            let parts = Selection::scheme(self.scheme).build(&mut config).expect("it is in the table");
            let ports = Ports { local: PORTS[who], remote: PORTS[1 - who] };
            let mut tcp = Endpoint::new(config, parts, ports);
            tcp.handle(Instant::ZERO, Input::Command(if who == 0 { Command::Connect } else { Command::Listen }));
            Host {
                tcp,
                sends: self.sends[who],
                written: 0,
                received: 0,
                connected: false,
                peer_closed: false,
                closing: false,
                ended: None,
            }
        });
        let known = |name: &str| self.kind.part().parameters.iter().any(|own| own.name == name);
        let parameters: BTreeMap<String, Value> = TIGHT
            .iter()
            .filter(|(name, _)| self.tight && known(name))
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect();
        let agent = Middlebox { parameters, ..Middlebox::new((), (), self.kind) }.agent().map_err(|error| error.to_string())?;
        let random = Pcg64Mcg::seed_from_u64(self.seed);
        let (queue, steps) = (BinaryHeap::new(), BTreeMap::new());
        let mut run = Run { world: self, now: Instant::ZERO, random, hosts, agent, queue, steps, next: 0 };
        for (at, step) in
            self.restart.map(|ms| (ms, Step::Restart)).into_iter().chain(self.abort.map(|(ms, who)| (ms, Step::Abort(who))))
        {
            run.at(Duration::from_millis(at), step);
        }
        run.finish()?;
        run.check()
    }
}

impl Run<'_> {
    fn at(&mut self, after: Duration, step: Step) {
        self.queue.push(Reverse((self.now + after, self.next)));
        self.steps.insert(self.next, step);
        self.next += 1;
    }

    /// Whether a host is on the wired side.
    fn is_fixed(&self, who: usize) -> bool {
        (who == 0) != self.world.mobile_opens
    }

    /// A segment crosses the wire between a host and the station.
    fn cross(&mut self, side_of: usize, step: impl FnOnce(Segment) -> Step, mut segment: Segment) {
        let Wire { delay_ms, loss, late } = self.world.wires[usize::from(!self.is_fixed(side_of))];
        if self.random.random_bool(loss) {
            return;
        }
        let [sack, timestamps, window_scaling] = self.world.stripped;
        let options = &mut segment.options;
        // What strips options takes those of the handshake, so that nobody uses them later.
        if segment.flags.contains(Flags::SYN) {
            options.sack_permitted &= !sack;
            options.timestamps = options.timestamps.filter(|_| !timestamps);
            options.window_scale = options.window_scale.filter(|_| !window_scaling);
        }
        let mut delay = Duration::from_millis(delay_ms);
        if self.random.random_bool(late.0) {
            delay += Duration::from_micros(self.random.random_range(0..=late.1 * 1000));
        }
        self.at(delay, step(segment));
    }

    /// A translator between the wired host and the station changes the host's port, there and back.
    fn translate(&self, who: usize, to_station: bool, segment: &mut Segment) {
        let Some(port) = self.world.port else { return };
        let wired = usize::from(!self.is_fixed(0));
        let [before, after] = if to_station { [PORTS[wired], port] } else { [port, PORTS[wired]] };
        let own = if who == wired { &mut segment.src_port } else { &mut segment.dst_port };
        if *own == before {
            *own = after;
        }
    }

    fn finish(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            self.work();
            let timers = self.hosts.iter().filter_map(|host| host.tcp.poll_timeout()).chain(self.agent.next_timer());
            let queued = self.queue.peek().map(|Reverse((at, _))| *at);
            let Some(next) = timers.chain(queued).min().filter(|at| *at < Instant::ZERO + Duration::from_secs(END)) else {
                return Ok(());
            };
            self.now = self.now.max(next);
            if queued.is_some_and(|at| at <= self.now) {
                let Some(Reverse((_, number))) = self.queue.pop() else { continue };
                let step = self.steps.remove(&number).expect("it was put there");
                self.take(step)?;
                continue;
            }
            for host in &mut self.hosts {
                if host.tcp.poll_timeout().is_some_and(|at| at <= self.now) {
                    host.tcp.handle_timeout(self.now);
                }
            }
            if self.agent.next_timer().is_some_and(|at| at <= self.now) {
                let mut out = Outbox::default();
                self.agent.on_timer(self.now, &mut out);
                self.send(&mut out);
            }
        }
        Err("the world does not come to rest".into())
    }

    /// What a station sends in the name of a host goes to the other.
    fn send(&mut self, out: &mut Outbox) {
        for outgoing in out.take() {
            let who = usize::from(outgoing.from.way() == Way::Reverse);
            self.cross(1 - who, |segment| Step::Host(who, segment), outgoing.segment);
        }
    }

    fn take(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Restart => {
                self.agent.restart();
                let held = self.agent.held();
                if (held.flows, held.segments, held.octets, self.agent.next_timer()) != (0, 0, 0, None) {
                    return Err(format!("something has outlived the station: {held:?}"));
                }
            }
            Step::Abort(who) => self.hosts[who].tcp.handle(self.now, Input::Command(Command::Abort)),
            Step::Station(who, mut segment) => {
                self.translate(who, true, &mut segment);
                let from = EndpointId::of(FlowId::new(3), if who == 0 { Way::Forward } else { Way::Reverse });
                let side = if self.is_fixed(who) { Side::Fixed } else { Side::Mobile };
                let crowded = self.random.random_bool(0.05);
                let transit = Transit { now: self.now, from, side, crowded, corruption: 0.01 };
                let mut out = Outbox::default();
                if self.agent.pass(&transit, &mut segment, &mut out) == Handling::Forward {
                    self.cross(1 - who, |segment| Step::Host(who, segment), segment);
                }
                self.send(&mut out);
                let held = self.agent.held();
                // A flow with five segments or pieces a direction, or with four buffers.
                if self.world.tight && (held.flows > 1 || held.segments > 10 || held.octets > 60_000) {
                    return Err(format!("the agent remembers too much: {held:?}"));
                }
            }
            Step::Host(who, mut segment) => {
                self.translate(who, false, &mut segment);
                let to = 1 - who;
                if (segment.src_port, segment.dst_port) != (PORTS[who], PORTS[to]) {
                    return Err(format!("nobody listens there: {segment:?}"));
                }
                if self.hosts[to].ended.is_some() {
                    self.refuse(to, &segment);
                } else {
                    self.hosts[to].tcp.handle(self.now, Input::Segment(&segment, Integrity::Intact));
                }
            }
        }
        Ok(())
    }

    /// A host without the connection answers with a reset (RFC 9293, 3.10.7.1).
    fn refuse(&mut self, who: usize, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let acknowledges = segment.flags.contains(Flags::ACK);
        let reset = Segment {
            src_port: segment.dst_port,
            dst_port: segment.src_port,
            seq: if acknowledges { segment.ack } else { whyloss_transport::Seq(0) },
            ack: segment.seq + segment.seq_len(),
            flags: if acknowledges { Flags::RST } else { Flags::RST | Flags::ACK },
            ..Segment::default()
        };
        self.cross(who, |segment| Step::Station(who, segment), reset);
    }

    /// Lets the applications and the endpoints do what they have to do.
    fn work(&mut self) {
        for who in [0, 1] {
            let (now, host) = (self.now, &mut self.hosts[who]);
            while let Some(event) = host.tcp.poll_event() {
                match event {
                    Event::Connected => host.connected = true,
                    Event::PeerClosed => host.peer_closed = true,
                    Event::Closed(closing) => host.ended = Some(closing),
                    _ => {}
                }
            }
            while let Some(piece) = host.tcp.read(now, usize::MAX) {
                for got in piece.to_bytes() {
                    assert_eq!(got, octet(1 - who, host.received), "octet {} of host {}", host.received, 1 - who);
                    host.received += 1;
                }
            }
            while host.ended.is_none() && host.written < host.sends && host.tcp.send_space() > 0 {
                let len = host.tcp.send_space().min(host.sends - host.written).min(10_000);
                let octets: Vec<u8> = (host.written..host.written + len).map(|at| octet(who, at)).collect();
                host.tcp.handle(now, Input::Command(Command::Send(Payload::Bytes(octets.into()))));
                host.written += len;
            }
            if host.connected
                && host.ended.is_none()
                && !host.closing
                && host.written == host.sends
                && (who == 0 || host.peer_closed)
            {
                host.closing = true;
                host.tcp.handle(now, Input::Command(Command::Close));
            }
            while let Some(segment) = self.hosts[who].tcp.poll_transmit(now) {
                self.cross(who, |segment| Step::Station(who, segment), segment);
            }
        }
    }

    /// What must hold at the end. Returns whether everything has arrived.
    fn check(&self) -> Result<bool, String> {
        let ends = self.hosts.each_ref().map(|host| host.ended);
        let (told, due) =
            (self.hosts.each_ref().map(|host| (host.received, host.tcp.state())), [self.world.sends[1], self.world.sends[0]]);
        let complete = told.map(|(received, _)| received) == due;
        let (kind, split) = (self.world.kind.name(), self.world.kind.name() == "i-tcp");
        let message = |what: &str| Err(format!("{kind}: {what}: {ends:?} {told:?} of {due:?}"));
        // What a split connection's station has acknowledged dies with it: then nothing more is promised than that nothing wrong arrives.
        let lost = split && self.world.restart.is_some();
        let promised = self.world.abort.is_none() && !lost;
        if promised && (!complete || ends != [Some(Closing::Normal); 2]) {
            return message("not all has arrived");
        }
        // A reset that is lost, nobody who waits for data hears of.
        let sure = !lost && self.world.wires.iter().all(|wire| wire.loss == 0.0);
        if sure && ends.contains(&None) {
            return message("somebody has not heard of the end");
        }
        let held = self.agent.held();
        if split && sure && (held.flows, self.agent.next_timer()) != (0, None) {
            return message(&format!("the station has not heard of the end: {held:?}"));
        }
        Ok(complete)
    }
}

fn wire() -> impl Strategy<Value = Wire> {
    let chance = |most: f64| prop_oneof![1 => Just(0.0), 1 => 0.0..most];
    (0u64..60, chance(0.06), chance(0.1), 0u64..30).prop_map(|(delay_ms, loss, share, late)| Wire {
        delay_ms,
        loss,
        late: (share, late),
    })
}

fn world(kind: MiddleboxKind) -> impl Strategy<Value = World> {
    let times = || proptest::option::weighted(0.3, 0u64..3000);
    (
        (any::<u64>(), any::<bool>(), select(SCHEMES.iter().map(|scheme| scheme.name).collect::<Vec<_>>())),
        (any::<[bool; 3]>(), any::<bool>(), [0u64..120_000, 0..60_000], [wire(), wire()]),
        (prop_oneof![Just([false; 3]), any::<[bool; 3]>()], proptest::option::of(2000u16..3000), times(), times(), 0usize..2),
    )
        .prop_map(
            move |((seed, tight, scheme), (options, mobile_opens, sends, wires), (stripped, port, restart, abort, who))| World {
                seed,
                kind,
                tight,
                scheme,
                options,
                mobile_opens,
                sends,
                wires,
                stripped,
                port,
                restart,
                abort: abort.map(|ms| (ms, who)),
            },
        )
}

/// `WHYLOSS_WORLDS=N` asks for N times as many.
fn cases() -> Cases {
    let times: u32 = std::env::var("WHYLOSS_WORLDS").map_or(1, |times| times.parse().expect("WHYLOSS_WORLDS is a number"));
    Cases { cases: 60 * times, failure_persistence: None, ..Cases::default() }
}

#[test]
fn through_every_agent_nothing_is_lost_and_nothing_comes_twice() {
    for kind in MiddleboxKind::all() {
        let outcome = TestRunner::new(cases()).run(&world(kind), |world| world.run().map(|_| ()).map_err(TestCaseError::fail));
        outcome.unwrap_or_else(|error| panic!("{}: {error}", kind.name()));
    }
}

/// What is documented of a station that dies: whoever answers for data leaves a hole, whoever does not is not missed.
#[test]
fn a_station_that_dies_takes_with_it_only_what_it_answered_for() {
    for kind in MiddleboxKind::all() {
        let wired = Wire { delay_ms: 5, loss: 0.0, late: (0.0, 0) };
        let world = World {
            seed: 9,
            kind,
            tight: false,
            scheme: "sack",
            options: [true; 3],
            mobile_opens: false,
            sends: [100_000, 0],
            // What is sent in the first round trips is at the station when it dies, and a part of it is lost.
            wires: [wired, Wire { delay_ms: 50, loss: 0.2, ..wired }],
            stripped: [false; 3],
            port: None,
            restart: Some(400),
            abort: None,
        };
        let arrives = |world: &World| world.run().unwrap_or_else(|error| panic!("{}: {error}", kind.name()));
        assert_eq!(arrives(&world), kind.name() != "i-tcp", "{}", kind.name());
        assert!(arrives(&World { restart: None, ..world }), "{}", kind.name());
    }
}
