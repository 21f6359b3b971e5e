//! Two hosts joined by a path in virtual time.
//!
//! The ring drives both endpoints, carries their segments over two [`Link`]s with the faults that a test asks for, plays both
//! applications, and watches: every octet must arrive once, in order and unchanged; every segment on the wire must keep the rules that
//! no algorithm may break; nobody may ask for attention without end. What goes wrong is a [`Failure`] with the last lines of the trace.

mod conduct;
mod damage;
mod host;
mod link;
mod stream;

pub use host::{Closes, Host, Reads, Setup, Told};
pub use link::{Count, Fault, Link, Passing, Strip};
pub use stream::Stream;

use crate::settings::SettingError;
use crate::trace::render;
use link::Delivery;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::fmt;
use std::hash::Hasher;
use whyloss_transport::segment::Flags;
use whyloss_transport::{Command, Duration, Event, Input, Instant, Integrity, Ports, Segment, Seq};

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The one on the left.
    Client,
    /// The one on the right.
    Server,
}

impl Side {
    /// The other host.
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A violation of a rule that holds in every run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("at {at}, {side:?}: {what}\n{trace}")]
pub struct Failure {
    /// When it was noticed, in virtual time.
    pub at: Instant,
    /// The host that is to blame.
    pub side: Side,
    /// What went wrong, in words.
    pub what: String,
    /// The last lines of the trace.
    pub trace: String,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// There are no more events.
    Quiet,
    /// The condition was met.
    Met,
    /// The time is over.
    TimeUp,
}

/// Two hosts and the path between them.
pub struct Ring {
    now: Instant,
    hosts: [Host; 2],
    /// Indexed by the host that sends into the link.
    links: [Link; 2],
    on_the_way: BinaryHeap<Reverse<(Instant, u64)>>,
    deliveries: BTreeMap<u64, (Side, Segment, Integrity)>,
    /// Those of them that no host has sent.
    forged: BTreeSet<u64>,
    order: u64,
    rng: Pcg64Mcg,
    trace: VecDeque<Line>,
    digest: Fnv,
    stall_limit: Option<Duration>,
    steps_left: u64,
    progressed: Instant,
    longest_pause: Duration,
    second: u64,
    attention: u64,
    traffic: u64,
}

/// A line of the trace, rendered when somebody wants to read it.
struct Line {
    at: Instant,
    side: Side,
    what: What,
}

enum What {
    Sent(Segment, Vec<Fault>),
    Got(Segment, Integrity),
    Told(String),
    Timer,
}

const TRACE_LINES: usize = 400;
/// Calls in one instant that pass for work and not for a loop.
const CALLS_AT_ONCE: u32 = 100_000;
/// Timer calls in a second of virtual time beyond those that traffic explains.
const IDLE_CALLS: u64 = 100;

impl Ring {
    /// A ring; `forward` carries what the client sends, `backward` what the server sends. The same arguments give the same run.
    pub fn new(seed: u64, client: Setup, server: Setup, forward: Link, backward: Link) -> Result<Self, SettingError> {
        let ports = Ports { local: 49_152, remote: 80 };
        let hosts = [
            Host::new(client, ports, seed ^ 0xC11E)?,
            Host::new(server, Ports { local: ports.remote, remote: ports.local }, seed ^ 0x5E54)?,
        ];
        let mut ring = Self {
            now: Instant::ZERO,
            hosts,
            links: [forward, backward],
            on_the_way: BinaryHeap::new(),
            deliveries: BTreeMap::new(),
            forged: BTreeSet::new(),
            order: 0,
            rng: Pcg64Mcg::seed_from_u64(seed),
            trace: VecDeque::new(),
            digest: Fnv::default(),
            stall_limit: None,
            steps_left: u64::MAX,
            progressed: Instant::ZERO,
            longest_pause: Duration::ZERO,
            second: 0,
            attention: 0,
            traffic: 0,
        };
        // The listener first, so that it is there when the SYN comes.
        for side in [Side::Server, Side::Client] {
            let command = if ring.host(side).setup.connects { Command::Connect } else { Command::Listen };
            ring.host_mut(side).endpoint.handle(Instant::ZERO, Input::Command(command));
        }
        Ok(ring)
    }

    /// Fails a run in which nothing moves for `limit` while there is something to move and the path is up.
    pub fn forbid_stalls(&mut self, limit: Duration) {
        self.stall_limit = Some(limit);
    }

    /// Fails a run of more than `steps` arrivals and timer calls.
    pub fn limit_steps(&mut self, steps: u64) {
        self.steps_left = steps;
    }

    /// The virtual time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// One of the hosts.
    pub const fn host(&self, side: Side) -> &Host {
        &self.hosts[side as usize]
    }

    fn host_mut(&mut self, side: Side) -> &mut Host {
        &mut self.hosts[side as usize]
    }

    /// The link into which `side` sends.
    pub const fn link(&self, side: Side) -> &Link {
        &self.links[side as usize]
    }

    /// Segments on the way.
    pub fn in_flight(&self) -> usize {
        self.deliveries.len()
    }

    /// The longest time in which nothing moved.
    pub const fn longest_pause(&self) -> Duration {
        self.longest_pause
    }

    /// A digest of all events: equal runs have equal digests.
    pub fn digest(&self) -> u64 {
        self.digest.finish()
    }

    /// Gives a command to a host's endpoint.
    pub fn command(&mut self, side: Side, command: Command) -> Result<(), Failure> {
        let now = self.now;
        self.host_mut(side).endpoint.handle(now, Input::Command(command));
        self.pump(side)
    }

    /// Hands a segment to a host as if it had come from its peer. What a host learns from it that it must not believe is a failure.
    pub fn inject(&mut self, to: Side, segment: Segment, integrity: Integrity) {
        self.forged.insert(self.order);
        self.schedule(to, Delivery { at: self.now, segment, integrity });
        // It never entered a link.
        self.links[to.peer() as usize].injected();
    }

    /// Runs until there are no more events.
    pub fn run(&mut self) -> Result<End, Failure> {
        self.run_until(Instant::MAX, |_| false)
    }

    /// Runs for `span` of virtual time.
    pub fn run_for(&mut self, span: Duration) -> Result<End, Failure> {
        let until = self.now + span;
        let end = self.run_until(until, |_| false)?;
        self.now = until;
        Ok(end)
    }

    /// Runs until `condition`, or until `limit`.
    pub fn run_until(&mut self, limit: Instant, condition: impl Fn(&Self) -> bool) -> Result<End, Failure> {
        let mut at_once = 0;
        self.pump(Side::Server)?;
        self.pump(Side::Client)?;
        loop {
            if condition(self) {
                return Ok(End::Met);
            }
            let Some((at, side)) = self.next() else { return Ok(End::Quiet) };
            if at > limit {
                return Ok(End::TimeUp);
            }
            at_once = if at > self.now { 0 } else { at_once + 1 };
            if at_once > CALLS_AT_ONCE {
                return Err(self.failure(side, "the hosts keep each other busy without time going on".to_owned()));
            }
            self.now = self.now.max(at);
            self.check_stall(side)?;
            self.steps_left = self.steps_left.saturating_sub(1);
            if self.steps_left == 0 {
                return Err(self.failure(side, "there is no end to it".to_owned()));
            }
            self.step(side)?;
        }
    }

    /// What comes next: arrivals before timers, the client before the server.
    fn next(&self) -> Option<(Instant, Side)> {
        let arrival = self.on_the_way.peek().map(|Reverse((at, order))| (*at, 0, self.deliveries[order].0));
        let wakes = [Side::Client, Side::Server].into_iter().flat_map(|side| {
            let timer = self.host(side).endpoint.poll_timeout();
            [timer, self.application_wakes(side)].into_iter().flatten().map(move |at| (at.max(self.now), 1, side))
        });
        arrival.into_iter().chain(wakes).min_by_key(|(at, kind, side)| (*at, *kind, *side as u8)).map(|(at, _, side)| (at, side))
    }

    fn step(&mut self, side: Side) -> Result<(), Failure> {
        let now = self.now;
        if self.on_the_way.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Some(Reverse((_, order))) = self.on_the_way.pop() else { unreachable!("it was there") };
            let (to, segment, integrity) = self.deliveries.remove(&order).expect("every arrival has a segment");
            self.links[to.peer() as usize].delivered_one();
            self.traffic += 1;
            self.digest.write_u64(segment.seq.0.into());
            if integrity == Integrity::Intact && !self.forged.remove(&order) {
                self.host_mut(to).conduct.arrived(&segment);
            }
            let reset = self.answer_of_the_dead(to, &segment, integrity);
            self.host_mut(to).endpoint.handle(now, Input::Segment(&segment, integrity));
            self.note(to, What::Got(segment, integrity));
            if let Some(reset) = reset {
                self.transmit(to, reset)?;
            }
            return self.pump(to);
        }
        self.check_attention(side)?;
        if self.host(side).endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.note(side, What::Timer);
            self.host_mut(side).endpoint.handle_timeout(now);
        }
        let host = self.host_mut(side);
        if let Reads::Paced(octets, period) = host.setup.reads {
            if host.next_read <= now {
                host.budget = octets;
                host.next_read = now + period;
            }
        }
        self.pump(side)
    }

    /// What the host says when the connection is over (RFC 9293, 3.10.7.1).
    fn answer_of_the_dead(&self, side: Side, segment: &Segment, integrity: Integrity) -> Option<Segment> {
        let over = self.host(side).told.closed.is_some();
        if !over || integrity != Integrity::Intact || segment.flags.contains(Flags::RST) {
            return None;
        }
        let (seq, ack, flags) = if segment.flags.contains(Flags::ACK) {
            (segment.ack, Seq(0), Flags::RST)
        } else {
            (Seq(0), segment.seq + segment.seq_len(), Flags::RST | Flags::ACK)
        };
        Some(Segment { src_port: segment.dst_port, dst_port: segment.src_port, seq, ack, flags, ..Segment::default() })
    }

    /// When the application of `side` wants to act without being told to.
    fn application_wakes(&self, side: Side) -> Option<Instant> {
        let host = self.host(side);
        let after_now = |at: Instant| (at > self.now).then_some(at);
        let open = host.told.closed.is_none();
        let write = (open && host.written < host.stream.len()).then_some(host.next_write).and_then(after_now);
        let read = match host.setup.reads {
            Reads::AtOnce => None,
            Reads::From(at) => after_now(at),
            Reads::Paced(..) => {
                let more = open || host.endpoint.stats().octets_delivered > host.received;
                (more && host.received < self.host(side.peer()).stream.len()).then_some(host.next_read)
            }
        };
        write.into_iter().chain(read).min()
    }

    /// Lets application and endpoint of `side` do everything that they can do now.
    fn pump(&mut self, side: Side) -> Result<(), Failure> {
        for _ in 0..CALLS_AT_ONCE {
            let mut busy = self.take_events(side);
            busy |= self.write(side);
            busy |= self.read(side)?;
            while let Some(segment) = {
                let now = self.now;
                self.host_mut(side).endpoint.poll_transmit(now)
            } {
                busy = true;
                self.transmit(side, segment)?;
            }
            self.check_window(side)?;
            if !busy {
                return Ok(());
            }
        }
        Err(self.failure(side, "the endpoint never comes to rest".to_owned()))
    }

    fn take_events(&mut self, side: Side) -> bool {
        let now = self.now;
        let mut any = false;
        while let Some(event) = self.host_mut(side).endpoint.poll_event() {
            any = true;
            self.note(side, What::Told(format!("{event:?}")));
            let told = &mut self.host_mut(side).told;
            // Progress is what an application notices, not what a sender believes.
            let mut progress = true;
            match event {
                Event::Connected => told.connected = Some(now),
                Event::PeerClosed => told.peer_closed = Some(now),
                Event::SendFinished => told.send_finished = Some(now),
                Event::Closed(how) => told.closed = Some((now, how)),
                other => {
                    progress = false;
                    match other {
                        Event::Loss(record) => told.losses.push(*record),
                        Event::Timeout(record) => told.timeouts.push(*record),
                        Event::TimeoutAssessed(outcome) => told.outcomes.push(outcome),
                        Event::Undone => told.undone.push(now),
                        _ => {}
                    }
                }
            }
            if progress {
                self.progress();
            }
        }
        any
    }

    fn write(&mut self, side: Side) -> bool {
        let now = self.now;
        let host = self.host_mut(side);
        if host.told.connected.is_none() || host.told.closed.is_some() {
            return false;
        }
        let mut any = false;
        let left = host.stream.len() - host.written;
        if left > 0 && now >= host.next_write {
            let len = if host.setup.produces {
                host.endpoint.handle(now, Input::Command(Command::Produce(left)));
                left
            } else {
                let len = left.min(host.endpoint.send_space()).min(host.setup.write_size as u64);
                if len > 0 {
                    let payload = host.stream.slice(host.written, host.written + len);
                    host.endpoint.handle(now, Input::Command(Command::Send(payload)));
                }
                len
            };
            host.written += len;
            any = len > 0;
            if any {
                host.next_write = now + host.setup.write_pause;
            }
        }
        let wants_to_close = match host.setup.closes {
            Closes::AfterWriting => true,
            Closes::AfterPeer => host.told.peer_closed.is_some(),
            Closes::Never => false,
        };
        if wants_to_close && !host.closed && host.written == host.stream.len() {
            host.closed = true;
            host.endpoint.handle(now, Input::Command(Command::Close));
            any = true;
        }
        any
    }

    fn read(&mut self, side: Side) -> Result<bool, Failure> {
        let now = self.now;
        let mut any = false;
        loop {
            let host = self.host_mut(side);
            let max = match host.setup.reads {
                Reads::AtOnce => usize::MAX,
                Reads::From(at) if at <= now => usize::MAX,
                Reads::From(_) => 0,
                Reads::Paced(..) => host.budget,
            };
            if max == 0 {
                return Ok(any);
            }
            let Some(payload) = host.endpoint.read(now, max) else { return Ok(any) };
            host.budget = host.budget.saturating_sub(payload.len());
            let offset = host.received;
            host.received += payload.len() as u64;
            if payload.is_empty() {
                return Err(self.failure(side, "read nothing instead of saying that there is nothing".to_owned()));
            }
            if !self.host(side.peer()).stream.matches(offset, &payload) {
                let what = format!("the {} octets read at offset {offset} are not what the peer wrote", payload.len());
                return Err(self.failure(side, what));
            }
            self.progress();
            any = true;
        }
    }

    fn transmit(&mut self, side: Side, segment: Segment) -> Result<(), Failure> {
        self.traffic += 1;
        let words = [segment.seq.0, segment.ack.0, u32::from(segment.flags.0), segment.payload.len() as u32];
        self.digest.write_u64(self.now.as_nanos());
        for word in words {
            self.digest.write_u64(word.into());
        }
        let host = self.host_mut(side);
        let verdict = host.conduct.check(&segment, &host.stream);
        let (deliveries, faults) = self.links[side as usize].enter(self.now, segment.clone(), &mut self.rng);
        self.note(side, What::Sent(segment, faults));
        for delivery in deliveries {
            self.schedule(side.peer(), delivery);
        }
        verdict.map_err(|what| self.failure(side, what))
    }

    fn schedule(&mut self, to: Side, delivery: Delivery) {
        self.on_the_way.push(Reverse((delivery.at, self.order)));
        self.deliveries.insert(self.order, (to, delivery.segment, delivery.integrity));
        self.order += 1;
    }

    fn progress(&mut self) {
        self.longest_pause = self.longest_pause.max(self.now.since(self.progressed));
        self.progressed = self.now;
    }

    fn check_window(&self, side: Side) -> Result<(), Failure> {
        let window = self.host(side).endpoint.window();
        if window.cwnd() < u64::from(window.mss()) {
            let what = format!("the window of {} octets is below one segment of {}", window.cwnd(), window.mss());
            return Err(self.failure(side, what));
        }
        Ok(())
    }

    /// A timer that fires again and again without anything coming of it is a busy loop.
    fn check_attention(&mut self, side: Side) -> Result<(), Failure> {
        let second = self.now.as_nanos() / 1_000_000_000;
        if second != self.second {
            self.second = second;
            self.attention = 0;
            self.traffic = 0;
        }
        self.attention += 1;
        let paced = [Side::Client, Side::Server].into_iter().any(|side| {
            let setup = &self.host(side).setup;
            matches!(setup.reads, Reads::Paced(..)) || setup.write_pause > Duration::ZERO
        });
        if !paced && self.attention > IDLE_CALLS + 4 * self.traffic {
            let what = format!("{} timer calls in a second with {} segments", self.attention, self.traffic);
            return Err(self.failure(side, what));
        }
        Ok(())
    }

    fn check_stall(&self, side: Side) -> Result<(), Failure> {
        let Some(limit) = self.stall_limit else { return Ok(()) };
        let excused = [Side::Client, Side::Server].into_iter().map(|side| match self.host(side).setup.reads {
            Reads::From(at) => at.max(self.link(side).last_outage()),
            _ => self.link(side).last_outage().max(self.host(side).next_write),
        });
        let since = excused.max().unwrap_or(Instant::ZERO).max(self.progressed);
        if self.unfinished() && self.now.since(since) > limit {
            return Err(self.failure(side, format!("nothing has moved since {since}")));
        }
        Ok(())
    }

    /// Whether something is left to move.
    fn unfinished(&self) -> bool {
        [Side::Client, Side::Server].into_iter().any(|side| {
            let (host, peer) = (self.host(side), self.host(side.peer()));
            host.told.closed.is_none()
                && (host.told.connected.is_none()
                    || (!host.setup.config.auto_read && host.received < peer.stream.len())
                    || (peer.closed && host.told.peer_closed.is_none())
                    || (host.closed && host.told.send_finished.is_none()))
        })
    }

    fn note(&mut self, side: Side, what: What) {
        if self.trace.len() == TRACE_LINES {
            self.trace.pop_front();
        }
        self.trace.push_back(Line { at: self.now, side, what });
    }

    fn failure(&self, side: Side, what: String) -> Failure {
        Failure { at: self.now, side, what, trace: self.trace() }
    }

    /// The last lines of the trace.
    pub fn trace(&self) -> String {
        self.trace.iter().map(|line| self.render(line) + "\n").collect()
    }

    fn render(&self, line: &Line) -> String {
        let origin = self.host(line.side).conduct.origin();
        let what = match &line.what {
            What::Sent(segment, faults) if faults.is_empty() => format!("> {}", render(segment, origin)),
            What::Sent(segment, faults) => format!("> {}  {faults:?}", render(segment, origin)),
            What::Got(segment, integrity) => {
                let note = if *integrity == Integrity::Intact { String::new() } else { format!("  {integrity:?}") };
                let peer = crate::trace::Origin { own: origin.peer, peer: origin.own };
                format!("< {}{note}", render(segment, peer))
            }
            What::Told(event) => format!("! {event}"),
            What::Timer => "timer".to_owned(),
        };
        format!("{:>14.6} {:<6} {what}", line.at.as_secs_f64(), format!("{:?}", line.side))
    }
}

/// A failing test shows the trace.
impl Drop for Ring {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.trace());
        }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("now", &self.now).field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// The FNV-1a hash: the same on every machine, unlike the standard library's.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.write(&word.to_le_bytes());
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
