//! One direction of an emulator: the thread that forwards its packets from the ingress device to the egress device.

mod gate;
mod shared;
mod stage;

pub(super) use gate::Gate;
pub(super) use shared::Shared;

use super::audit::{Audit, Errors};
use super::packet::{self, Header};
use super::record::{Chunk, PacketFate, Record, Touch};
use super::{lock, EmulateError, Options, Stretch};
use crate::clock::Clock;
use crate::realtime::{self, Scheduling};
use crate::tun::Tun;
use nix::errno::Errno;
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use stage::{slowest, Chance, EgressRate, Stage};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::Arc;
use std::time::Duration;
use whyloss_sim::middlebox::Side;
use whyloss_sim::{Arrival, Cause, Crossing, Packet};
use whyloss_transport::wire::damage::flip_bits;
use whyloss_transport::{BitRate, Instant};

/// Packets read before anything else gets its turn.
const BATCH: usize = 64;
/// The longest IP packet.
const LONGEST: usize = 1 << 16;
/// More packets than this are left to the device, whose queue then overflows: 1500 octets each, they are 400 MB of memory.
const MOST_UNDER_WAY: usize = 1 << 18;

/// A packet under way.
#[derive(Debug)]
struct Slot {
    octets: Vec<u8>,
    record: Record,
    /// The octets as they came, where they have changed since and somebody wants them.
    came: Option<Box<[u8]>>,
}

impl Slot {
    /// The octets are to change; `wanted`: somebody wants them as they came.
    fn before_change(&mut self, wanted: bool) {
        if wanted && self.came.is_none() {
            self.came = Some(self.octets.clone().into());
        }
    }
}

/// One direction of an emulator, at work: its devices, its links and its counters.
pub(super) struct Direction {
    ingress: Arc<Tun>,
    egress: Arc<Tun>,
    clock: Clock,
    /// Its number in records.
    number: u16,
    stages: Vec<Stage>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    shared: Arc<Shared>,
    gate: Option<Gate>,
    records: Option<SyncSender<Chunk>>,
    chunk: Chunk,
    fifo: Option<u8>,
    scheduling: Scheduling,
    started: Instant,
    received: u64,
    /// Packets that an agent has made.
    made: u64,
    sent: u64,
    sent_octets: u64,
    refused: u64,
    held_back: bool,
    /// Packets whose records went nowhere, as too many waited already.
    unrecorded: u64,
    troubles: Vec<String>,
    errors: Errors,
    egress_rate: EgressRate,
}

impl Direction {
    pub fn new(
        ingress: Arc<Tun>,
        egress: Arc<Tun>,
        chain: Vec<Stretch>,
        options: &Options,
        number: u16,
    ) -> Result<Self, EmulateError> {
        let stages = chain
            .into_iter()
            .map(|Stretch { name, spec }| {
                let make = if options.changeable { Crossing::changeable } else { Crossing::new };
                let crossing = make(&spec, options.seed, options.run, &name)?;
                let chance = Chance { spec: spec.channel, last: (0, Some(0.0)), crossed: 0, expected: Some(0.0) };
                let rate = spec.trace.is_none().then_some(spec.rate);
                Ok(Stage { name, rate, crossing, chance })
            })
            .collect::<Result<Vec<_>, EmulateError>>()?;
        let wake = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(|error| EmulateError::system("making an event descriptor")(error.into()))?;
        let scheduling = Scheduling { fifo: None, refused: None };
        let clock = options.clock;
        let started = clock.now();
        let mut worker = Self {
            ingress,
            egress,
            clock,
            number,
            stages,
            slots: Vec::new(),
            free: Vec::new(),
            shared: Arc::new(Shared::new(wake)),
            gate: None,
            records: options.records.clone(),
            chunk: Chunk::new(options.snap),
            fifo: options.fifo,
            scheduling,
            started,
            received: 0,
            made: 0,
            sent: 0,
            sent_octets: 0,
            refused: 0,
            held_back: false,
            unrecorded: 0,
            troubles: Vec::new(),
            errors: Errors::default(),
            egress_rate: EgressRate::default(),
        };
        worker.publish(started);
        Ok(worker)
    }

    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Links of its chain.
    pub fn links(&self) -> usize {
        self.stages.len()
    }

    /// Has an agent see its packets.
    pub fn assist(&mut self, gate: Gate) {
        self.gate = Some(gate);
    }

    /// Forwards packets until it is told to stop.
    pub fn run(mut self) -> io::Result<()> {
        self.scheduling = realtime::prepare(self.fifo);
        let mut buffer = vec![0; LONGEST];
        let outcome = self.carry(&mut buffer);
        self.leave_the_rest();
        self.publish(self.clock.now());
        outcome
    }

    fn carry(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            // Where packets never cease to come there is no waiting, from which the owner could wake it.
            if self.shared.has_changes.load(Ordering::Acquire) {
                self.change();
            }
            let mut now = self.advance(self.clock.now())?;
            self.tend()?;
            let mut quiet = false;
            for _ in 0..BATCH {
                if self.slots.len() - self.free.len() >= MOST_UNDER_WAY {
                    self.held_back = true;
                    break;
                }
                let Some(length) = self.ingress.receive(buffer)? else {
                    quiet = true;
                    break;
                };
                now = self.clock.now();
                self.take(now, &buffer[..length])?;
                now = self.advance(now)?;
                self.tend()?;
            }
            if self.shared.wanted.load(Ordering::Acquire) {
                self.publish(now);
            }
            if self.shared.stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
            if quiet || self.held_back {
                self.wait()?;
            }
        }
    }

    /// Sleeps until a packet comes, one is due, or the owner wants something.
    fn wait(&mut self) -> io::Result<()> {
        let timer = self.gate.as_ref().filter(|gate| gate.side == Side::Fixed).and_then(|gate| gate.station.arm());
        let due = self.stages.iter().filter_map(|stage| stage.crossing.next_event()).chain(timer).min();
        let now = self.clock.now();
        if due.is_some_and(|due| due <= now) {
            return Ok(());
        }
        let timeout = due.map(|due| TimeSpec::from_duration(Duration::from_nanos(due.as_nanos() - now.as_nanos())));
        let readable = if self.slots.len() - self.free.len() >= MOST_UNDER_WAY { PollFlags::empty() } else { PollFlags::POLLIN };
        let mut waiting = [PollFd::new(self.ingress.as_fd(), readable), PollFd::new(self.shared.wake.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut waiting, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let woken = waiting[1].any().unwrap_or_default();
        if woken {
            let _ = self.shared.wake.read();
        }
        Ok(())
    }

    /// Carries out what the owner wants to be different.
    fn change(&mut self) {
        self.shared.has_changes.store(false, Ordering::Release);
        let now = self.clock.now();
        for (hop, change) in std::mem::take(&mut *lock(&self.shared.changes)) {
            let Some(stage) = self.stages.get_mut(hop) else { continue };
            match stage.crossing.change(now, &change) {
                Ok(()) => {
                    stage.rate = change.rate.or(stage.rate);
                    if let Some(channel) = change.channel {
                        stage.chance.last.0 = 0;
                        stage.chance.spec = channel;
                    }
                }
                Err(error) => self.troubles.push(format!("a change was refused: {error}")),
            }
        }
    }

    /// A packet has come.
    fn take(&mut self, now: Instant, octets: &[u8]) -> io::Result<()> {
        let record = self.record(now, octets, 0, None);
        self.received += 1;
        let slot = self.store(octets, record);
        self.reach(0, slot, now)?;
        Ok(())
    }

    /// The record of a packet that comes to the link of number `hop`, or behind the last one.
    fn record(&mut self, now: Instant, octets: &[u8], hop: usize, agent: Option<Touch>) -> Record {
        let (found_packets, found_octets) = self.stages.get_mut(hop).map_or((0, 0), |stage| stage.crossing.waiting(now));
        let header = Header::read(octets);
        let came = now.as_nanos();
        Record {
            number: self.received + self.made,
            direction: self.number,
            hop: hop.min(self.stages.len().saturating_sub(1)) as u8,
            copy: false,
            came,
            due: came,
            left: came,
            octets: octets.len() as u32,
            found_packets: found_packets as u32,
            found_octets,
            marked: false,
            flipped: 0,
            first_flip: 0,
            fate: PacketFate::UnderWay,
            agent,
            header,
        }
    }

    /// A packet reaches the link of number `hop`, or the end behind the last one; gives the time after that if it took any.
    fn reach(&mut self, hop: usize, slot: u32, at: Instant) -> io::Result<Option<Instant>> {
        if self.gate.as_ref().is_some_and(|gate| gate.before == hop) && !self.meet(hop, slot, at) {
            return Ok(None);
        }
        let Some(stage) = self.stages.get_mut(hop) else { return self.hand_on(slot).map(Some) };
        stage.crossing.offer(at, self.slots[slot as usize].packet(slot));
        Ok(None)
    }

    fn store(&mut self, octets: &[u8], record: Record) -> u32 {
        if let Some(slot) = self.free.pop() {
            let place = &mut self.slots[slot as usize];
            place.octets.clear();
            place.octets.extend_from_slice(octets);
            (place.record, place.came) = (record, None);
            return slot;
        }
        self.slots.push(Slot { octets: octets.to_vec(), record, came: None });
        self.slots.len() as u32 - 1
    }

    /// Passes on what is due at `now`; gives the time after that.
    fn advance(&mut self, mut now: Instant) -> io::Result<Instant> {
        let last = self.stages.len() - 1;
        for hop in 0..=last {
            // All links advance to one moment together, so that packets reach the next one in the order of time.
            let horizon = now;
            while let Some(passage) = self.stages[hop].crossing.poll(horizon) {
                let at = passage.at;
                let mut slot = passage.token as u32;
                if !passage.last {
                    // This one goes on in a place of its own; the other is still to come.
                    let again = &mut self.slots[slot as usize];
                    let first = Slot { octets: again.octets.clone(), record: again.record, came: again.came.clone() };
                    again.record.copy = true;
                    slot = if let Some(free) = self.free.pop() {
                        self.slots[free as usize] = first;
                        free
                    } else {
                        self.slots.push(first);
                        self.slots.len() as u32 - 1
                    };
                }
                if matches!(passage.arrival, Arrival::Here { marked, flips } if marked || !flips.is_empty()) {
                    self.slots[slot as usize].before_change(self.chunk.keeps_octets());
                }
                let Slot { octets, record, .. } = &mut self.slots[slot as usize];
                record.hop = hop as u8;
                record.due = at.as_nanos();
                match passage.arrival {
                    Arrival::Lost(cause) => {
                        if cause == Cause::Erased {
                            self.stages[hop].chance.add(record.octets);
                        }
                        record.left = record.due;
                        record.fate = PacketFate::Lost(cause);
                        if let Some(gate) = self.gate.as_ref().filter(|gate| gate.side == Side::Fixed && gate.before == hop) {
                            if cause.is_refusal() {
                                gate.station.dropped(octets);
                            }
                        }
                        self.finish(slot);
                    }
                    Arrival::Here { marked, flips } => {
                        if marked {
                            packet::mark(octets);
                            record.marked = true;
                        }
                        if let Some(&first) = flips.first() {
                            flip_bits(octets, flips.iter().map(|&bit| u64::from(bit)));
                            if record.flipped == 0 || first < record.first_flip {
                                record.first_flip = first;
                                record.fate = PacketFate::Damaged(record.header.place(first));
                            }
                            record.flipped += flips.len() as u32;
                        }
                        self.stages[hop].chance.add(record.octets);
                        now = self.reach(hop + 1, slot, at)?.unwrap_or(now);
                    }
                }
            }
        }
        Ok(now)
    }

    /// Writes a packet to the other device; gives the time after that.
    fn hand_on(&mut self, slot: u32) -> io::Result<Instant> {
        let Slot { octets, record, .. } = &mut self.slots[slot as usize];
        // A device may deliver the packet, and let the answer out, before it returns.
        record.left = self.clock.now().as_nanos();
        let taken = self.egress.send(octets)?;
        let now = self.clock.now();
        if taken {
            self.sent += 1;
            self.sent_octets += u64::from(record.octets);
            self.errors.add(record.left.saturating_sub(record.due));
            if let Some(rate) = slowest(&self.stages) {
                let span = rate.serialise(u64::from(record.octets), 0).0.as_nanos();
                self.egress_rate.note(record.due, record.left, record.octets, span);
            }
            if record.fate == PacketFate::UnderWay {
                record.fate = PacketFate::Delivered;
            }
        } else if record.fate == PacketFate::UnderWay {
            // A damaged packet that is no IP packet any more was not the emulator's fault.
            self.refused += 1;
            record.fate = PacketFate::Refused;
        }
        self.finish(slot);
        Ok(now)
    }

    /// The fate of a packet is known.
    fn finish(&mut self, slot: u32) {
        if let Some(records) = &self.records {
            let Slot { octets, record, came } = &self.slots[slot as usize];
            self.chunk.push(*record, octets, came.as_deref());
            if self.chunk.is_full() {
                // To wait would keep packets back. Whoever does not listen any more does not want to know.
                if let Err(TrySendError::Full(chunk)) = records.try_send(self.chunk.take()) {
                    self.unrecorded += chunk.records.len() as u64;
                }
            }
        }
        self.free.push(slot);
    }

    /// Says of the packets that are still under way that they are.
    fn leave_the_rest(&mut self) {
        let Some(records) = &self.records else { return };
        let mut idle = vec![false; self.slots.len()];
        self.free.iter().for_each(|&slot| idle[slot as usize] = true);
        let mut left: Vec<_> = self.slots.iter().zip(idle).filter(|(_, idle)| !idle).map(|(slot, _)| slot).collect();
        left.sort_unstable_by_key(|slot| slot.record.number);
        for Slot { octets, record, came } in left {
            self.chunk.push(Record { fate: PacketFate::UnderWay, ..*record }, octets, came.as_deref());
        }
        let _ = records.send(self.chunk.take());
    }

    /// Tells the owner what has been done.
    fn publish(&mut self, now: Instant) {
        let hops = self.stages.iter().map(Stage::audit).collect();
        let middlebox = self.gate.as_ref().filter(|gate| gate.side == Side::Fixed).map(|gate| gate.station.audit());
        let ends = [self.stages.first(), self.stages.last()].map(|stage| stage.map_or("", |stage| &stage.name));
        let name = match ends.map(|name| name.split_once('>').unwrap_or((name, name))) {
            [(from, _), (_, to)] => format!("{from}>{to}"),
        };
        let mut audit = Audit {
            name,
            received: self.received,
            sent: self.sent,
            sent_octets: self.sent_octets,
            refused: self.refused,
            rate_bps: slowest(&self.stages).map(BitRate::as_bps),
            achieved_bps: self.egress_rate.rate(),
            seconds: now.since(self.started).as_secs_f64(),
            error: self.errors.summary(),
            waited_for_processor_s: realtime::waited_for_processor().map(|nanoseconds| nanoseconds as f64 / 1e9),
            scheduling: self.scheduling.clone(),
            hops,
            middlebox,
            flaws: self.troubles.clone(),
        };
        if self.held_back {
            audit.flaws.push(format!("{}: more than {MOST_UNDER_WAY} packets were under way, more than are kept", audit.name));
        }
        if self.unrecorded > 0 {
            let (name, lost) = (&audit.name, self.unrecorded);
            audit
                .flaws
                .push(format!("{name}: the records of {lost} packets are missing, as they came faster than they are written"));
        }
        *lock(&self.shared.audit) = audit;
        self.shared.wanted.store(false, Ordering::Release);
        self.shared.published.notify_all();
    }
}

impl Slot {
    fn packet(&self, token: u32) -> Packet {
        let Record { octets, marked, header, .. } = self.record;
        let ecn = if marked { whyloss_transport::segment::Ecn::CongestionExperienced } else { header.ecn };
        Packet { token: u64::from(token), octets, ecn, dscp: header.dscp, flow: header.flow() }
    }
}
