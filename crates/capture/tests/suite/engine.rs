//! Connections of the engine over a small path, captured in the middle of it, with what really happened beside every segment.

#![allow(clippy::iter_over_hash_type)]

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;
use whyloss_capture::half::Trigger;
use whyloss_capture::headers::{Checksum, Options, Segment};
use whyloss_transport::scheme::Selection;
use whyloss_transport::segment::{self, Flags, Integrity, Payload};
use whyloss_transport::tcp::Repair;
use whyloss_transport::{Command, Config, Duration, Endpoint, Event, Input, Instant, Ports};

/// A direction of one part of the path: from an end to the capture, or from the capture to an end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hop {
    pub delay: Duration,
    /// Every packet comes up to so much later, without overtaking.
    pub jitter: Duration,
    pub loss: f64,
    /// Losses come in runs of this mean length.
    pub run: f64,
    /// Probability of being late, and by how much.
    pub late: (f64, Duration),
    pub double: f64,
    /// Bits per second and packets that wait.
    pub bottleneck: Option<(u64, usize)>,
    /// A time in which nothing moves: it comes after its end.
    pub pause: Option<(Instant, Instant)>,
    /// A time in which all is lost.
    pub outage: Option<(Instant, Instant)>,
}

/// A transfer, and where it is captured.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub sender: Config,
    pub receiver: Config,
    pub congestion: Option<&'static str>,
    pub octets: u64,
    /// The application writes so much at once, with such pauses.
    pub writes: Option<(u64, Duration)>,
    /// The receiver's application reads so much at once, with such pauses.
    pub reads: Option<(usize, Duration)>,
    /// From the sender to the capture, from the capture to the receiver.
    pub forward: [Hop; 2],
    /// From the receiver to the capture, from the capture to the sender.
    pub backward: [Hop; 2],
    /// Probability that the capture misses a packet.
    pub missed: f64,
    /// The identification field counts; otherwise there is none.
    pub counts_ids: bool,
}

impl Plan {
    /// A transfer of `octets` with a capture at the sender (0), in the middle (1) or at the receiver (2) of a path with this delay each way.
    pub fn new(seed: u64, config: &Config, octets: u64, place: usize, delay: Duration) -> Self {
        let near = Hop { delay: Duration::from_micros(20), run: 1.0, ..Hop::default() };
        let share = |part: u64| Hop { delay: delay * part / 100, run: 1.0, ..Hop::default() };
        let (before, after) = match place {
            0 => (near, share(100)),
            1 => (share(40), share(60)),
            _ => (share(100), near),
        };
        Self {
            seed,
            sender: config.clone(),
            receiver: config.clone(),
            congestion: None,
            octets,
            writes: None,
            reads: None,
            forward: [before, after],
            backward: [after, before],
            missed: 0.0,
            counts_ids: true,
        }
    }

    /// The part of the path with the losses: that which is the longer one.
    pub fn far(&mut self) -> &mut Hop {
        let index = usize::from(self.forward[1].delay >= self.forward[0].delay);
        &mut self.forward[index]
    }
}

/// What really was with a data segment of the sender.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    /// Which transmission of the sender it is; a doubled packet keeps it.
    pub sending: u64,
    pub offset: u64,
    pub len: u32,
    /// Why it was sent again; `None` if it was not.
    pub trigger: Option<Trigger>,
    /// Whether no earlier transmission of it arrived, ever.
    pub needed: bool,
}

/// What the capture has, and what really happened.
#[derive(Default)]
pub struct Captured {
    pub segments: Vec<Segment>,
    /// For those of the sender with data or SYN, by number.
    pub truth: HashMap<u64, Truth>,
    /// Octets of the sender that the capture missed and that arrived.
    pub missed: u64,
    /// The sender's transmissions: where they lay, and whether they arrived.
    pub sendings: Vec<(u64, u32, bool, bool)>,
    pub timeouts: u64,
    pub ended: Instant,
    /// Time in which the sender had nothing to send, as its application knows it.
    pub acknowledged: u64,
}

#[derive(Clone)]
struct Packet {
    segment: segment::Segment,
    forward: bool,
    sending: Option<u64>,
    id: u16,
}

struct Line {
    hop: Hop,
    free: Instant,
    queue: Vec<Instant>,
    latest: Instant,
    lossy: bool,
}

impl Line {
    fn new(hop: Hop) -> Self {
        Self { hop, free: Instant::ZERO, queue: Vec::new(), latest: Instant::ZERO, lossy: false }
    }

    /// When a packet that enters now comes out, if it does; and when its copy.
    fn cross(&mut self, now: Instant, len: usize, rng: &mut Pcg64Mcg) -> Vec<Instant> {
        let hop = self.hop;
        if hop.outage.is_some_and(|(from, to)| now >= from && now < to) {
            return Vec::new();
        }
        let change = if self.lossy { 1.0 / hop.run.max(1.0) } else { hop.loss / hop.run.max(1.0) };
        if hop.run > 1.0 {
            if rng.random_bool(change.min(1.0)) {
                self.lossy = !self.lossy;
            }
        } else {
            self.lossy = rng.random_bool(hop.loss);
        }
        if self.lossy {
            return Vec::new();
        }
        let mut at = now;
        if let Some((rate, places)) = hop.bottleneck {
            self.queue.retain(|leaves| *leaves > now);
            if self.queue.len() > places {
                return Vec::new();
            }
            self.free = self.free.max(now) + Duration::from_nanos((len as u64 + 20) * 8 * 1_000_000_000 / rate);
            self.queue.push(self.free);
            at = self.free;
        }
        at = at + hop.delay + Duration::from_nanos(rng.random_range(0..=hop.jitter.as_nanos()));
        if let Some((from, to)) = hop.pause {
            if at >= from && at < to {
                at = to;
            }
        }
        at = at.max(self.latest);
        if rng.random_bool(hop.late.0) {
            at += hop.late.1;
        } else {
            self.latest = at;
        }
        let mut times = vec![at];
        if rng.random_bool(hop.double) {
            times.push(at + Duration::from_micros(50));
        }
        times
    }
}

/// Runs a transfer.
pub fn run(plan: &Plan) -> Captured {
    Run::new(plan).go()
}

struct Run<'a> {
    plan: &'a Plan,
    now: Instant,
    rng: Pcg64Mcg,
    ends: [Endpoint; 2],
    lines: [[Line; 2]; 2],
    events: BinaryHeap<Reverse<(Instant, u64)>>,
    /// Packets that come somewhere: out of which of the two parts.
    coming: HashMap<u64, (usize, Packet)>,
    order: u64,
    out: Captured,
    first: HashMap<(u64, bool), u64>,
    expired: u32,
    ids: [u16; 2],
    written: u64,
    next_write: Instant,
    next_read: Instant,
    read_budget: usize,
    closed: [bool; 2],
    connected: bool,
    peer_closed: bool,
    syns: [u32; 2],
    fast_before: u64,
}

const BASE: u64 = 1_600_000_000_000_000_000;

impl<'a> Run<'a> {
    fn new(plan: &'a Plan) -> Self {
        let end = |config: &Config, local, remote| {
            let mut config = config.clone();
            config.initial_seq = (plan.seed as u32).wrapping_mul(2_654_435_761).wrapping_add(local);
            let selection = Selection { congestion: plan.congestion.map(str::to_owned), ..Selection::default() };
            let parts = selection.build(&mut config).unwrap();
            Endpoint::new(config, parts, Ports { local: local as u16, remote: remote as u16 })
        };
        let mut run = Self {
            plan,
            now: Instant::ZERO,
            rng: Pcg64Mcg::seed_from_u64(plan.seed),
            ends: [end(&plan.sender, 40_000, 80), end(&plan.receiver, 80, 40_000)],
            lines: [plan.forward.map(Line::new), plan.backward.map(Line::new)],
            events: BinaryHeap::new(),
            coming: HashMap::new(),
            order: 0,
            out: Captured::default(),
            first: HashMap::new(),
            expired: 0,
            ids: [7, 4000],
            written: 0,
            next_write: Instant::ZERO,
            next_read: Instant::ZERO,
            read_budget: 0,
            closed: [false; 2],
            connected: false,
            peer_closed: false,
            syns: [0; 2],
            fast_before: 0,
        };
        run.ends[1].handle(Instant::ZERO, Input::Command(Command::Listen));
        run.ends[0].handle(Instant::ZERO, Input::Command(Command::Connect));
        run
    }

    fn go(mut self) -> Captured {
        self.pump(1);
        self.pump(0);
        for _ in 0..4_000_000 {
            let arrival = self.events.peek().map(|Reverse((at, _))| *at);
            let mut timers: Vec<Instant> = self.ends.iter().filter_map(Endpoint::poll_timeout).collect();
            if self.connected && self.written < self.plan.octets && self.next_write > self.now {
                timers.push(self.next_write);
            }
            if self.plan.reads.is_some() && self.connected && !self.closed[1] {
                timers.push(self.next_read.max(self.now));
            }
            let timer = timers.into_iter().min();
            let Some(at) = arrival.into_iter().chain(timer).min() else { break };
            if at > Instant::ZERO + Duration::from_secs(2000) {
                break;
            }
            self.now = self.now.max(at);
            if arrival == Some(at) {
                let Some(Reverse((_, order))) = self.events.pop() else { unreachable!() };
                let (part, packet) = self.coming.remove(&order).expect("it was sent");
                self.come(part, &packet);
                continue;
            }
            for end in [1, 0] {
                if self.ends[end].poll_timeout().is_some_and(|due| due <= self.now) {
                    self.ends[end].handle_timeout(self.now);
                }
                self.pump(end);
            }
        }
        self.out.ended = self.now;
        self.out.acknowledged = self.ends[0].octets_acknowledged();
        self.settle();
        self.out
    }

    /// Whether each retransmission was needed.
    fn settle(&mut self) {
        let sendings = &self.out.sendings;
        for truth in self.out.truth.values_mut() {
            let (start, end) = (truth.offset, truth.offset + u64::from(truth.len));
            let mut covered: Vec<(u64, u64)> = sendings[..truth.sending as usize]
                .iter()
                .filter(|(offset, len, came, _)| *came && *offset < end && offset + u64::from(*len) > start)
                .map(|(offset, len, ..)| (*offset, offset + u64::from(*len)))
                .collect();
            covered.sort_unstable();
            let reached =
                covered.iter().fold(start, |reached, (from, to)| if *from <= reached { reached.max(*to) } else { reached });
            truth.needed = reached < end;
        }
    }

    fn come(&mut self, part: usize, packet: &Packet) {
        let way = usize::from(!packet.forward);
        if part == 0 {
            if self.plan.missed > 0.0 && self.rng.random_bool(self.plan.missed) {
                self.out.missed += packet.segment.payload.len() as u64;
            } else {
                self.record(packet);
            }
            return self.enter(1, packet);
        }
        if let Some(sending) = packet.sending {
            self.out.sendings[sending as usize].2 = true;
        }
        let end = 1 - way;
        self.ends[end].handle(self.now, Input::Segment(&packet.segment, Integrity::Intact));
        self.pump(end);
    }

    fn enter(&mut self, part: usize, packet: &Packet) {
        let way = usize::from(!packet.forward);
        for at in self.lines[way][part].cross(self.now, packet.segment.len(), &mut self.rng) {
            self.events.push(Reverse((at, self.order)));
            self.coming.insert(self.order, (part, packet.clone()));
            self.order += 1;
        }
    }

    fn pump(&mut self, end: usize) {
        loop {
            let mut busy = self.events_of(end);
            if end == 0 {
                busy |= self.write();
            } else {
                busy |= self.read();
            }
            loop {
                let before = *self.ends[end].stats();
                let Some(segment) = self.ends[end].poll_transmit(self.now) else { break };
                busy = true;
                self.events_of(end);
                self.transmit(end, segment, &before);
            }
            if !busy {
                return;
            }
        }
    }

    fn events_of(&mut self, end: usize) -> bool {
        let mut any = false;
        while let Some(event) = self.ends[end].poll_event() {
            any = true;
            match event {
                Event::Connected if end == 0 => self.connected = true,
                Event::PeerClosed if end == 1 => self.peer_closed = true,
                Event::Timeout(record) if end == 0 => {
                    self.expired = record.consecutive;
                    self.out.timeouts += 1;
                }
                _ => {}
            }
        }
        any
    }

    fn write(&mut self) -> bool {
        if !self.connected || self.closed[0] {
            return false;
        }
        let left = self.plan.octets - self.written;
        if left > 0 && self.now >= self.next_write {
            let (most, pause) = self.plan.writes.unwrap_or((u64::MAX, Duration::ZERO));
            let len = left.min(most).min(self.ends[0].send_space());
            // Hosts wake a writer that waits for room when a third of the buffer is free.
            if len == 0 || len < left.min(most) && len < self.plan.sender.send_buffer / 3 {
                return false;
            }
            let payload = Payload::Synthetic { offset: self.written, len: len as u32 };
            self.ends[0].handle(self.now, Input::Command(Command::Send(payload)));
            self.written += len;
            self.next_write = self.now + pause;
            return true;
        }
        if left == 0 {
            self.closed[0] = true;
            self.ends[0].handle(self.now, Input::Command(Command::Close));
            return true;
        }
        false
    }

    fn read(&mut self) -> bool {
        let mut any = false;
        if let Some((octets, pause)) = self.plan.reads {
            if self.now >= self.next_read {
                self.read_budget = octets;
                self.next_read = self.now + pause;
            }
        } else {
            self.read_budget = usize::MAX;
        }
        while self.read_budget > 0 {
            let Some(piece) = self.ends[1].read(self.now, self.read_budget) else { break };
            self.read_budget -= piece.len();
            any = true;
        }
        if self.peer_closed && !self.closed[1] {
            self.closed[1] = true;
            self.ends[1].handle(self.now, Input::Command(Command::Close));
            any = true;
        }
        any
    }

    fn transmit(&mut self, end: usize, segment: segment::Segment, before: &whyloss_transport::tcp::Stats) {
        let id = self.ids[end];
        self.ids[end] = id.wrapping_add(1);
        let mut packet = Packet { forward: end == 0, sending: None, id, segment };
        let syn = packet.segment.flags.contains(Flags::SYN);
        let len = packet.segment.payload.len() as u32;
        if end == 0 && (len > 0 || syn) {
            let stats = *self.ends[0].stats();
            let again = stats.retransmissions > before.retransmissions;
            let offset = match packet.segment.payload {
                Payload::Synthetic { offset, .. } => offset,
                _ => 0,
            };
            let trigger = if syn {
                self.syns[end] += 1;
                (self.syns[end] > 1).then_some(Trigger::Handshake)
            } else if !again {
                None
            } else if stats.tail_probes > before.tail_probes {
                Some(Trigger::TailProbe)
            } else if self.expired > 0 {
                let expired = std::mem::take(&mut self.expired);
                Some(if expired > 1 { Trigger::BackedOff } else { Trigger::Timeout })
            } else if self.ends[0].outstanding().repair == Repair::AfterTimeout {
                Some(Trigger::AfterTimeout)
            } else if stats.fast_retransmits > self.fast_before {
                Some(Trigger::Fast)
            } else {
                Some(Trigger::Recovery)
            };
            if again {
                self.fast_before = stats.fast_retransmits;
            }
            let sending = self.out.sendings.len() as u64;
            self.out.sendings.push((if syn { u64::MAX / 2 } else { offset }, len.max(1), false, false));
            packet.sending = Some(sending);
            self.first.insert((sending, true), offset);
            let truth = Truth { sending, offset, len, trigger, needed: true };
            self.out.truth.insert(u64::MAX - sending, truth);
        }
        self.enter(0, &packet);
    }

    fn record(&mut self, packet: &Packet) {
        let number = self.out.segments.len() as u64 + 1;
        if let Some(sending) = packet.sending {
            let truth = self.out.truth[&(u64::MAX - sending)];
            self.out.truth.insert(number, truth);
            self.out.sendings[sending as usize].3 = true;
        }
        let at = Instant::from_nanos(BASE) + self.now.since(Instant::ZERO);
        let (client, server): (SocketAddr, SocketAddr) = ("10.0.0.1:40000".parse().unwrap(), "10.9.0.1:80".parse().unwrap());
        let (src, dst) = if packet.forward { (client, server) } else { (server, client) };
        let id = self.plan.counts_ids.then_some(packet.id);
        self.out.segments.push(convert(&packet.segment, number, at, (src, dst), id));
    }
}

/// A segment of the engine as a capture shows it.
pub fn convert(
    segment: &segment::Segment,
    number: u64,
    at: Instant,
    (src, dst): (SocketAddr, SocketAddr),
    ip_id: Option<u16>,
) -> Segment {
    let mut octets = Vec::new();
    let options = &segment.options;
    if let Some(mss) = options.mss {
        octets.extend([2, 4]);
        octets.extend(mss.to_be_bytes());
    }
    if let Some(shift) = options.window_scale {
        octets.extend([3, 3, shift]);
    }
    if options.sack_permitted {
        octets.extend([4, 2]);
    }
    if let Some(timestamps) = options.timestamps {
        octets.extend([8, 10]);
        octets.extend(timestamps.value.to_be_bytes());
        octets.extend(timestamps.echo.to_be_bytes());
    }
    if !options.sack.is_empty() {
        octets.extend([5, 2 + 8 * options.sack.len() as u8]);
        for (left, right) in options.sack.as_slice() {
            octets.extend(left.0.to_be_bytes());
            octets.extend(right.0.to_be_bytes());
        }
    }
    Segment {
        number,
        at,
        src,
        dst,
        seq: segment.seq.0,
        ack: segment.ack.0,
        flags: segment.flags,
        window: segment.window,
        len: segment.payload.len() as u32,
        partial: false,
        options: Options::read(&octets),
        ip_id,
        hop_limit: 64,
        ecn: 0,
        packet_len: segment.len() as u32 + 20,
        checksum: Checksum::Right,
        bad_frame: false,
    }
}
