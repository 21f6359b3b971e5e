//! A wire in one direction on which time is not the same for every packet: outages, changes, delivery traces, jitter, packets that
//! overtake or come twice, and a queue that drops at its head.
//!
//! What a [plain wire](crate::link) knows when a packet enters is decided here at its time: at the beginning of a transmission
//! (whom the queue drops, how long it takes), at its end (what the channel does, which delay holds), at the arrival. Where nothing
//! varies, both kinds give the same times.

use crate::channel::{Channel, ChannelOutcome};
use crate::error::BuildError;
use crate::link::{Load, QueueFull};
use crate::outage::{Downtime, WhileDown};
use crate::packet::{PacketId, PacketStore};
use crate::queue::buffer::Buffer;
use crate::queue::waiting::Waiting;
use crate::queue::{Departure, Manager};
use crate::random::Stream;
use crate::service::{Schedule, Service};
use crate::shape::{Change, LinkSpec, QueueLimit};
use crate::spread::Spread;
use crate::traffic::Traffic;
use crate::truth::Cause;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use whyloss_transport::Instant;

/// A wire that varies, in use, in one direction.
#[derive(Debug)]
pub(crate) struct Varying {
    queue: Buffer<Load>,
    limits: Schedule<QueueLimit>,
    service: Service,
    state: State,
    /// Outages in which the transmitter goes on.
    outages: Downtime,
    /// Channels to come, and how often the patterns of those that have gone came to their ends.
    channels: VecDeque<(u64, Channel)>,
    pattern_ends: u64,
    delays: Schedule<u64>,
    spread: Spread,
    /// What has been dropped out of the queue, when and why.
    dropped: VecDeque<(u64, Load, Cause)>,
    flying: BinaryHeap<Reverse<Flying>>,
    launched: u64,
    /// Packets that arrive twice, by the number of their first flight, until the second arrival.
    doubled: BTreeMap<u64, Doubled>,
    /// When the event of this direction is due in a simulation; `u64::MAX` if there is none.
    pub armed: u64,
}

/// A packet that arrives twice.
#[derive(Debug)]
struct Doubled {
    load: Load,
    /// It has arrived once.
    arrived: bool,
}

/// What the transmitter does.
#[derive(Debug)]
enum State {
    /// It sends nothing since this time, in nanoseconds.
    Idle(u64),
    /// It waits until it can send.
    Stopped(u64),
    Busy {
        load: Load,
        start: u64,
        end: u64,
    },
}

/// A packet that has been transmitted.
#[derive(Debug)]
struct Flying {
    arrival: u64,
    number: u64,
    carried: Carried,
    crossed: Result<Box<[u32]>, Cause>,
}

/// What arrives at the end of a flight.
#[derive(Debug)]
enum Carried {
    /// A packet that arrives once.
    Once(Load),
    /// The packet of this number in [`Varying::doubled`], or a copy of it.
    Twice(u64),
}

impl PartialEq for Flying {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Flying {}

impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flying {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.arrival, self.number).cmp(&(other.arrival, other.number))
    }
}

/// What has become of a packet.
#[derive(Debug)]
pub(crate) enum Step {
    /// The queue has dropped it.
    Dropped { at: u64, load: Load, cause: Cause },
    /// It arrives at the end of the link, or would.
    Crossed(Crossed),
}

/// A packet at the end of a link.
#[derive(Debug)]
pub(crate) struct Crossed {
    pub at: u64,
    pub load: Load,
    /// Positions of the bits that have been flipped, or what has taken the packet.
    pub flips: Result<Box<[u32]>, Cause>,
    /// It is a copy: the packet itself arrives later.
    pub copy: bool,
}

/// What of a direction works on a packet that crosses.
pub(crate) struct Parts<'a, G> {
    pub traffic: &'a mut Traffic,
    pub channel: &'a mut Channel,
    /// What decides on packets that come to the queue, if there is something.
    pub manager: Option<&'a mut Manager>,
    pub packets: &'a mut G,
}

impl Varying {
    /// The direction called `name` in run `run` of `seed`; `spec` makes sense.
    pub fn new(spec: &LinkSpec, seed: u64, run: u64, name: &str) -> Result<Self, BuildError> {
        let item = format!("link {name}");
        let mut channels = VecDeque::new();
        for (number, change) in spec.change.iter().enumerate() {
            if let Some(channel) = &change.channel {
                let channel = Channel::new(channel, seed, run, &format!("{item} change {number}"));
                let channel = channel.map_err(|error| BuildError::of_channel(&item, error))?;
                channels.push_back((change.at.as_nanos(), channel));
            }
        }
        let outages = Downtime::new(&spec.outage, seed, run, name);
        let limits = spec.change.iter().filter_map(|change| Some((change.at.as_nanos(), change.queue?)));
        let delays = spec.change.iter().filter_map(|change| Some((change.at.as_nanos(), change.delay?.as_nanos())));
        Ok(Self {
            queue: Buffer::new(spec.discipline.as_ref(), || Stream::new(seed, run, &format!("queue of {item}"), "flows")),
            limits: Schedule::new(spec.queue, limits),
            service: Service::new(spec, &outages),
            state: State::Idle(0),
            outages: outages.of(WhileDown::Dropped),
            channels,
            pattern_ends: 0,
            delays: Schedule::new(spec.delay.as_nanos(), delays),
            spread: Spread::plain(spec.overtaking)
                .with(spec.jitter, spec.reorder, spec.duplicate, |purpose| Stream::new(seed, run, &item, purpose)),
            dropped: VecDeque::new(),
            flying: BinaryHeap::new(),
            launched: 0,
            doubled: BTreeMap::new(),
            armed: u64::MAX,
        })
    }

    /// Packets and octets that wait.
    pub fn waiting(&self) -> (u64, u64) {
        self.queue.len()
    }

    /// Whether the queue has room for a packet at `now`.
    pub fn has_room(&mut self, now: u64, octets: u32) -> bool {
        let free = matches!(self.state, State::Idle(_)) && self.service.ready(now) == now;
        let (packets, waiting) = self.queue.len();
        free || self.limits.at(now).admits(packets, waiting, octets)
    }

    /// Whether the queue has room for two packets of this length at `now`.
    pub fn has_room_for_two(&mut self, now: u64, octets: u32) -> bool {
        let free = matches!(self.state, State::Idle(_)) && self.service.ready(now) == now;
        let (packets, waiting) = self.queue.len();
        let (packets, waiting) = if free { (0, 0) } else { (packets + 1, waiting + u64::from(octets)) };
        self.limits.at(now).admits(packets, waiting, octets)
    }

    /// How many octets could have been sent by `now` since there was nothing to do.
    pub fn idle_octets(&mut self, now: u64) -> f64 {
        match self.state {
            State::Idle(since) => self.service.octets_in(now - since, now),
            _ => 0.0,
        }
    }

    /// The packets that wait, the newest first, each with its place.
    pub fn waiting_packets(&self) -> impl Iterator<Item = (usize, &PacketId)> + '_ {
        self.queue.newest_first().map(|(place, load)| (place, &load.packet))
    }

    /// Takes the packet in `place` out of the queue at `now`.
    pub fn remove(&mut self, traffic: &mut Traffic, now: u64, place: usize) -> Option<PacketId> {
        let Waiting { item: load, since, octets } = self.queue.remove(place)?;
        traffic.note_wait(now - since, octets);
        Some(load.packet)
    }

    /// Takes a packet that comes to the queue at `now`, or refuses it if the queue is full.
    /// An urgent one goes before all that waits.
    pub fn offer<G: PacketStore>(
        &mut self,
        parts: &mut Parts<'_, G>,
        now: u64,
        load: Load,
        urgent: bool,
    ) -> Result<(), QueueFull> {
        self.advance(parts, now);
        let free = match self.state {
            State::Idle(_) => {
                let ready = self.service.ready(now);
                if ready > now {
                    self.state = State::Stopped(ready);
                }
                ready == now
            }
            _ => false,
        };
        let Self { queue, limits, dropped, .. } = self;
        let (limit, (packets, waiting)) = (*limits.at(now), queue.len());
        if !free && !queue.makes_room() && !limit.admits(packets, waiting, load.octets) {
            return Err(QueueFull(load));
        }
        let flow = parts.packets.flow(&load.packet);
        queue.push(flow, Waiting { octets: load.octets, since: now, item: load }, urgent);
        if free {
            self.begin(parts, now);
            return Ok(());
        }
        while let Some(Waiting { item, octets, since }) = queue.overflow(|packets, octets| limit.holds(packets, octets)) {
            parts.traffic.note_wait(now - since, octets);
            dropped.push_back((now, item, Cause::QueueFull));
        }
        let (packets, waiting) = queue.len();
        parts.traffic.note_queue(packets, waiting);
        Ok(())
    }

    /// Handles what is due by `now` in queue and transmitter.
    pub fn advance<G: PacketStore>(&mut self, parts: &mut Parts<'_, G>, now: u64) {
        loop {
            match std::mem::replace(&mut self.state, State::Idle(0)) {
                State::Stopped(at) if at <= now => self.begin(parts, at),
                State::Busy { load, start, end } if end <= now => {
                    self.launch(parts, load, start, end);
                    self.state = State::Idle(end);
                    if !self.queue.is_empty() {
                        match self.service.ready(end) {
                            ready if ready == end => self.begin(parts, end),
                            ready => self.state = State::Stopped(ready),
                        }
                    }
                }
                not_yet => {
                    self.state = not_yet;
                    return;
                }
            }
        }
    }

    /// What has become of a packet by `now`, if there is something to tell.
    pub fn step<G: PacketStore>(&mut self, parts: &mut Parts<'_, G>, now: u64) -> Option<Step> {
        self.advance(parts, now);
        let arrival = self.flying.peek().map(|Reverse(flying)| flying.arrival).filter(|arrival| *arrival <= now);
        if self.dropped.front().is_some_and(|(at, ..)| arrival.is_none_or(|arrival| *at <= arrival)) {
            let (at, load, cause) = self.dropped.pop_front()?;
            return Some(Step::Dropped { at, load, cause });
        }
        arrival?;
        let Reverse(Flying { arrival: at, carried, crossed: flips, .. }) = self.flying.pop()?;
        let (load, copy) = match carried {
            Carried::Once(load) => (load, false),
            Carried::Twice(number) => {
                let doubled = self.doubled.get_mut(&number)?;
                if std::mem::replace(&mut doubled.arrived, true) {
                    (self.doubled.remove(&number)?.load, false)
                } else {
                    let Load { packet, host, octets } = &doubled.load;
                    (Load { packet: parts.packets.duplicate(packet), host: *host, octets: *octets }, true)
                }
            }
        };
        Some(Step::Crossed(Crossed { at, load, flips, copy }))
    }

    /// Whether it sends at a rate, not by a trace.
    pub const fn has_rate(&self) -> bool {
        self.service.has_rate()
    }

    /// Something is different from `now` on, unforeseen: for packets whose transmission begins from now on (rate), ends from now on
    /// (delay, channel), or that come from now on (queue).
    pub fn change<G: PacketStore>(&mut self, parts: &mut Parts<'_, G>, now: u64, change: &Change, channel: Option<Channel>) {
        self.advance(parts, now);
        if let Some(rate) = change.rate {
            self.service.set_rate(now, rate.as_bps());
        }
        if let Some(delay) = change.delay {
            self.delays.set(now, delay.as_nanos());
        }
        if let Some(queue) = change.queue {
            self.limits.set(now, queue);
        }
        if let Some(channel) = channel {
            self.pattern_ends += parts.channel.pattern_ends();
            *parts.channel = channel;
        }
    }

    /// Time of the next event, in nanoseconds; `None` if there is none to come.
    pub fn next_at(&self) -> Option<u64> {
        let service = match &self.state {
            State::Idle(_) => None,
            State::Stopped(at) | State::Busy { end: at, .. } => Some(*at),
        };
        let dropped = self.dropped.front().map(|(at, ..)| *at);
        let arrival = self.flying.peek().map(|Reverse(flying)| flying.arrival);
        [service, dropped, arrival].into_iter().flatten().min().filter(|at| *at < u64::MAX)
    }

    /// The packet that is transmitted, and since when.
    pub const fn transmission(&self) -> Option<(u64, &PacketId)> {
        match &self.state {
            State::Busy { load, start, .. } => Some((*start, &load.packet)),
            _ => None,
        }
    }

    /// Begins the next transmission at `now`.
    fn begin<G: PacketStore>(&mut self, parts: &mut Parts<'_, G>, now: u64) {
        self.state = State::Idle(now);
        let Some(load) = self.dequeue(parts, now) else { return };
        let end = self.service.transmit(now, load.octets);
        parts.traffic.busy += end - now;
        self.state = State::Busy { load, start: now, end };
    }

    /// Takes the packet from the queue that is transmitted next.
    fn dequeue<G: PacketStore>(&mut self, parts: &mut Parts<'_, G>, now: u64) -> Option<Load> {
        let Self { queue, dropped, .. } = self;
        let Parts { traffic, packets, manager, .. } = parts;
        let mut backlog = queue.len().1;
        let left = |waited, octets| {
            traffic.note_wait(waited, octets);
            if let Some(manager) = manager {
                manager.departs(&Departure { now, waited, length: octets, backlog });
            }
            backlog -= u64::from(octets);
        };
        queue.pop(now, left, |load, marks| {
            if marks && packets.mark(&load.packet) {
                return Some(load);
            }
            dropped.push_back((now, load, Cause::Aqm));
            None
        })
    }

    /// A transmission is over: what the channel does, and when the packet arrives.
    fn launch<G>(&mut self, parts: &mut Parts<'_, G>, load: Load, start: u64, end: u64) {
        while self.channels.front().is_some_and(|(from, _)| *from <= end) {
            self.pattern_ends += parts.channel.pattern_ends();
            *parts.channel = self.channels.pop_front().expect("it was there").1;
        }
        // Channel and delay are asked in any case, so that what takes a packet does not move the numbers of those behind it.
        let mut flips = Vec::new();
        let outcome = parts.channel.pass(load.octets, Instant::from_nanos(end), &mut flips);
        self.outages.pass(start);
        let crossed = match outcome {
            _ if self.outages.meets(start, end) => Err(Cause::LinkDown),
            ChannelOutcome::Erased => Err(Cause::Erased),
            ChannelOutcome::Intact | ChannelOutcome::Damaged => Ok(flips.into_boxed_slice()),
        };
        let delay = *self.delays.at(end);
        let arrival = self.spread.arrival(end, delay);
        let again = self.spread.again(end, delay).filter(|_| crossed.is_ok());
        let Some(again) = again else { return self.fly(arrival, Carried::Once(load), crossed) };
        let number = self.launched + 1;
        self.doubled.insert(number, Doubled { load, arrived: false });
        self.fly(arrival, Carried::Twice(number), crossed.clone());
        self.fly(again, Carried::Twice(number), crossed);
    }

    fn fly(&mut self, arrival: u64, carried: Carried, crossed: Result<Box<[u32]>, Cause>) {
        self.launched += 1;
        self.flying.push(Reverse(Flying { arrival, number: self.launched, carried, crossed }));
    }

    /// Packets in the queue, in transmission or on the way; one that arrives twice is one packet until its copy has arrived.
    pub fn under_way(&self) -> impl Iterator<Item = &PacketId> + '_ {
        let waiting = self.queue.iter().map(|waiting| &waiting.item);
        let busy = if let State::Busy { load, .. } = &self.state { Some(load) } else { None };
        let dropped = self.dropped.iter().map(|(_, load, _)| load);
        let flying = self.flying.iter().filter_map(|Reverse(flying)| match &flying.carried {
            Carried::Once(load) => Some(load),
            Carried::Twice(_) => None,
        });
        let doubled = self.doubled.values().map(|doubled| &doubled.load);
        waiting.chain(busy).chain(dropped).chain(flying).chain(doubled).map(|load| &load.packet)
    }

    /// The part of the time spent transmitting that lies beyond `now`.
    pub fn busy_beyond(&self, now: u64) -> u64 {
        if let State::Busy { end, .. } = self.state {
            end.saturating_sub(now)
        } else {
            0
        }
    }

    /// For each packet that waits at `now`, how long it has waited, and its octets.
    pub fn waited(&self, now: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.queue.iter().map(move |waiting| (now - waiting.since, waiting.octets))
    }

    /// How often the patterns of channels that have gone came to their ends.
    pub const fn pattern_ends(&self) -> u64 {
        self.pattern_ends
    }
}
