//! IEEE 802.11 stations that share a radio channel.
//!
//! Every pair of stations that can decode each other is a link like any other: its two directions have channels, captures and records,
//! and routes lead over them. But the packets of all directions that leave a station wait in one queue, and what is on the air reaches
//! everybody: the receivers decide what they hear ([`receiver`]), the stations when they send ([`station`]).
//!
//! A transmission is a chain of events, one for each moment at which its front or its end reaches a station. A station has one timer.
//! Backoff slots cost nothing: a backoff that counts knows its end, and one that is interrupted takes off what has passed.

mod backoff;
mod frame;
mod propagation;
mod receiver;
mod spec;
mod station;

pub use spec::{ChannelScope, Locking, RadioSpec};

use crate::address::{DirectionId, MediumId, StationId, TransmissionId};
use crate::channel::{Channel, ChannelOutcome};
use crate::direction::{Direction, Line};
use crate::error::ChannelError;
use crate::events::{Event, Events, Target};
use crate::hop::Hop;
use crate::link::{Load, QueueFull};
use crate::packet::PacketId;
use crate::random::Stream;
use crate::truth::Cause;
use backoff::Backoff;
use frame::{Frame, Kind, Timing};
use receiver::Heard;
use station::{Head, Reach, State, Station, Waiting, NEVER};
use whyloss_transport::Instant;

/// All stations, and what is on the air.
#[derive(Debug, Default)]
pub(crate) struct Radio {
    media: Vec<Medium>,
    stations: Vec<Station>,
    /// Each has one event, which comes to [`Radio::spread`]; when no station is left there is none any more.
    transmissions: Vec<Option<Transmission>>,
    /// Transmissions that are over: their numbers can be used again.
    free: Vec<TransmissionId>,
    outcomes: Vec<AirOutcome>,
    /// Scratch space for the positions of flipped bits.
    flips: Vec<u32>,
}

#[derive(Debug)]
struct Medium {
    spec: RadioSpec,
    timing: Timing,
    first: StationId,
    noise: Noise,
}

/// The channels that frames go through.
#[derive(Debug)]
enum Noise {
    /// Those of the directions.
    Directions,
    /// One for each station, which the receiver of a frame chooses, or its sender.
    Stations { channels: Vec<Channel>, by: End },
    /// One for all.
    Medium(Channel),
}

#[derive(Clone, Copy, Debug)]
enum End {
    Receiver,
    Sender,
}

impl Medium {
    /// The channel that a frame goes through.
    fn channel<'a>(&'a mut self, directions: &'a mut [Direction], frame: &Frame) -> &'a mut Channel {
        match &mut self.noise {
            Noise::Directions => &mut directions[frame.direction.index()].channel,
            Noise::Stations { channels, by } => {
                let station = match by {
                    End::Receiver => frame.to,
                    End::Sender => frame.from,
                };
                &mut channels[station.index() - self.first.index()]
            }
            Noise::Medium(channel) => channel,
        }
    }
}

/// A frame on the air.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    frame: Frame,
    start: u64,
    /// How many of the stations within reach its front has reached, and its end.
    begun: usize,
    ended: usize,
}

/// What became of a packet on the air.
#[derive(Debug)]
pub(crate) enum AirOutcome {
    /// The receiving station has it.
    Arrived { direction: DirectionId, load: Load },
    /// The sending station has given it up.
    GivenUp { direction: DirectionId, packet: PacketId, cause: Cause },
}

/// What the stations touch of the network around them.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub now: u64,
    pub events: &'a mut Events,
    pub directions: &'a mut [Direction],
}

impl Surroundings<'_> {
    fn hop(&mut self, direction: DirectionId) -> &mut Hop {
        match &mut self.directions[direction.index()].line {
            Line::Air(hop) => hop,
            Line::Wire(_) | Line::Varying(_) => unreachable!("stations only know directions through the air"),
        }
    }
}

impl Radio {
    /// Adds a channel and its stations, given by names and positions; returns the number of its first station.
    pub fn add(
        &mut self,
        spec: &RadioSpec,
        seed: u64,
        run: u64,
        stations: &[(&str, [f64; 2])],
    ) -> Result<StationId, ChannelError> {
        let first = self.stations.len();
        let medium = MediumId::new(self.media.len());
        let timing = Timing::new(spec);
        let component = |name: &str| format!("station {name}#{}", medium.index());
        for (number, &(name, here)) in stations.iter().enumerate() {
            let stream = Stream::new(seed, run, &component(name), "backoff");
            let backoff = Backoff::new(timing.slot, spec.cw_min, spec.cw_max, stream);
            let mut station = Station::new(StationId::new(first + number), medium, backoff);
            for (other, &(_, there)) in stations.iter().enumerate().filter(|&(other, _)| other != number) {
                let distance = propagation::distance(here, there);
                let power = spec.received_w(distance);
                if power >= spec.floor_w {
                    station.reach.push(Reach {
                        station: StationId::new(first + other),
                        power,
                        delay: propagation::flight(distance),
                    });
                }
            }
            station.reach.sort_by_key(|reach| (reach.delay, reach.station));
            self.stations.push(station);
        }
        let errors = spec.channel.clone().unwrap_or_default();
        let of_stations = |by| {
            let channels = stations.iter().map(|(name, _)| Channel::new(&errors, seed, run, &component(name)));
            Ok(Noise::Stations { channels: channels.collect::<Result<_, _>>()?, by })
        };
        let noise = match spec.channel_scope {
            ChannelScope::Pair => Noise::Directions,
            ChannelScope::Receiver => of_stations(End::Receiver)?,
            ChannelScope::Sender => of_stations(End::Sender)?,
            ChannelScope::Medium => Noise::Medium(Channel::new(&errors, seed, run, &format!("radio#{}", medium.index()))?),
        };
        let first = StationId::new(first);
        self.media.push(Medium { spec: spec.clone(), timing, first, noise });
        Ok(first)
    }

    /// Number of stations on all radio channels.
    pub fn len(&self) -> usize {
        self.stations.len()
    }

    /// Whether the queue of a station has room for two packets of this length.
    pub fn has_room_for_two(&self, number: StationId, octets: u32) -> bool {
        let station = &self.stations[number.index()];
        station.has_room_for_two(self.media[station.medium.index()].spec.queue, octets)
    }

    /// Takes a packet that is to cross a direction; an urgent one before all that wait at the station.
    pub fn offer(
        &mut self,
        around: &mut Surroundings<'_>,
        direction: DirectionId,
        load: Load,
        urgent: bool,
    ) -> Result<(), QueueFull> {
        let &mut Hop { station: number, peer, .. } = around.hop(direction);
        let station = &mut self.stations[number.index()];
        let octets = load.octets;
        let waiting = Waiting { load, direction, since: around.now };
        let medium = &self.media[station.medium.index()];
        if station.head.is_none() {
            station.serve(&medium.spec, &medium.timing, waiting, peer);
            station.wake(around.now);
            self.schedule(around, number);
            return Ok(());
        }
        station.enqueue(medium.spec.queue, waiting, urgent)?;
        let hop = around.hop(direction);
        hop.packets += 1;
        hop.octets += u64::from(octets);
        let (packets, octets) = hop.waiting();
        around.directions[direction.index()].traffic.note_queue(packets, octets);
        Ok(())
    }

    /// A station's timer event.
    pub fn timer(&mut self, around: &mut Surroundings<'_>, number: StationId) {
        let now = around.now;
        let station = &mut self.stations[number.index()];
        if station.scheduled == now {
            station.scheduled = NEVER;
        }
        if station.armed != now {
            return;
        }
        let medium = &self.media[station.medium.index()];
        match station.state {
            State::Contending => {
                if let Some(frame) = station.opening(&medium.timing) {
                    self.transmit(around, frame);
                }
            }
            State::Replying(frame) => self.transmit(around, frame),
            State::Sending(frame) => {
                station.on_sent(&medium.timing, &frame, now);
                if !station.receiver.busy(&medium.spec) {
                    station.on_idle(&medium.timing, now);
                }
            }
            State::Awaiting(_) => {
                self.fail(around, number);
                let station = &mut self.stations[number.index()];
                let medium = &self.media[station.medium.index()];
                if !station.receiver.busy(&medium.spec) {
                    station.resume(&medium.timing, now);
                }
            }
        }
        self.schedule(around, number);
    }

    /// Makes an event for a station's timer if it has none.
    fn schedule(&mut self, around: &mut Surroundings<'_>, number: StationId) {
        let station = &mut self.stations[number.index()];
        if station.armed != NEVER && station.armed != station.scheduled {
            station.scheduled = station.armed;
            let order = around.events.next_order();
            around.events.push(Event::new(station.armed, order, Target::Station(number)));
        }
    }

    /// A station goes on the air.
    fn transmit(&mut self, around: &mut Surroundings<'_>, frame: Frame) {
        self.stations[frame.from.index()].on_sending(frame, around.now);
        around.directions[frame.direction.index()].traffic.busy += frame.airtime;
        around.hop(frame.direction).counts.frames += 1;
        let transmission = Transmission { frame, start: around.now, begun: 0, ended: 0 };
        let id = self.free.pop().unwrap_or_else(|| {
            self.transmissions.push(None);
            TransmissionId::new(self.transmissions.len() - 1)
        });
        self.transmissions[id.index()] = Some(transmission);
        self.spread(around, id);
    }

    /// A transmission reaches stations, or has left them: all for which this is the moment. Then waits for the next moment.
    pub fn spread(&mut self, around: &mut Surroundings<'_>, id: TransmissionId) {
        while let Some(transmission) = &mut self.transmissions[id.index()] {
            let Transmission { frame, start, begun, ended } = *transmission;
            let reach = &self.stations[frame.from.index()].reach;
            let front = reach.get(begun).map(|reach| (start + reach.delay, *reach));
            let end = reach.get(ended).map(|reach| (start + frame.airtime + reach.delay, *reach));
            let next = match (front, end) {
                (Some(front), Some(end)) if end.0 < front.0 => (end, false),
                (Some(front), _) => (front, true),
                (None, Some(end)) => (end, false),
                (None, None) => {
                    self.transmissions[id.index()] = None;
                    return self.free.push(id);
                }
            };
            let ((at, to), begins) = next;
            if at > around.now {
                let order = around.events.next_order();
                return around.events.push(Event::new(at, order, Target::Transmission(id)));
            }
            if begins {
                transmission.begun += 1;
                self.begin(around, id, to);
            } else {
                transmission.ended += 1;
                self.end(around, id, &frame, to.station);
            }
            self.schedule(around, to.station);
        }
    }

    fn begin(&mut self, around: &Surroundings<'_>, id: TransmissionId, to: Reach) {
        let station = &mut self.stations[to.station.index()];
        let Medium { spec, timing, .. } = &self.media[station.medium.index()];
        let was_busy = station.receiver.busy(spec);
        station.receiver.begin(spec, id, to.power);
        if !was_busy && station.receiver.busy(spec) {
            station.on_busy(timing, around.now);
        }
    }

    fn end(&mut self, around: &mut Surroundings<'_>, id: TransmissionId, frame: &Frame, at: StationId) {
        let station = &mut self.stations[at.index()];
        let was_busy = station.receiver.busy(&self.media[station.medium.index()].spec);
        let mut heard = station.receiver.end(&self.media[station.medium.index()].spec, id);
        if frame.to == at {
            if heard != Heard::Frame {
                around.hop(frame.direction).counts.collided += 1;
            } else if self.hit_by_noise(around, frame) {
                heard = Heard::Noise;
            }
        }
        match heard {
            Heard::Frame => self.receive(around, frame, at),
            Heard::Noise => self.stations[at.index()].disturbed = true,
            Heard::Nothing => {}
        }
        let station = &mut self.stations[at.index()];
        let Medium { spec, timing, .. } = &self.media[station.medium.index()];
        if was_busy && !station.receiver.busy(spec) {
            station.on_idle(timing, around.now);
        }
    }

    /// Whether noise destroys a frame that its receiver would have decoded.
    fn hit_by_noise(&mut self, around: &mut Surroundings<'_>, frame: &Frame) -> bool {
        let medium = self.stations[frame.to.index()].medium;
        let channel = self.media[medium.index()].channel(around.directions, frame);
        if channel.is_perfect() {
            return false;
        }
        let outcome = channel.pass(frame.octets, Instant::from_nanos(around.now), &mut self.flips);
        if outcome == ChannelOutcome::Intact {
            return false;
        }
        around.hop(frame.direction).counts.noise += 1;
        let owner = match frame.kind {
            Kind::Rts | Kind::Data => frame.from,
            Kind::Cts | Kind::Ack => frame.to,
        };
        if let Some(head) = &mut self.stations[owner.index()].head {
            head.hit = true;
        }
        true
    }

    /// A station has decoded a frame.
    fn receive(&mut self, around: &mut Surroundings<'_>, frame: &Frame, at: StationId) {
        let station = &mut self.stations[at.index()];
        station.disturbed = false;
        match station.state {
            State::Awaiting(Kind::Ack) if frame.to == at && frame.kind == Kind::Ack => {
                station.succeed();
                return self.serve_next(around, at);
            }
            // Whatever else comes instead of what was expected says that it will not come (IEEE 802.11, 9.2.8).
            State::Awaiting(kind) if frame.to != at || frame.kind != kind => self.fail(around, at),
            _ => {}
        }
        let station = &mut self.stations[at.index()];
        let timing = &self.media[station.medium.index()].timing;
        if frame.to != at {
            return station.overhear(frame, around.now);
        }
        station.reply(timing, frame, around.now);
        if frame.kind == Kind::Data {
            // A sender that has not learnt that its packet has arrived sends it again: the receiver knows it by its sequence number.
            let head = self.stations[frame.from.index()].head.as_mut();
            if let Some((packet, head)) = head.and_then(|head| Some((head.packet.take()?, head))) {
                let load = Load { packet, host: head.host, octets: head.packet_octets };
                self.outcomes.push(AirOutcome::Arrived { direction: frame.direction, load });
            }
        }
    }

    /// An exchange has failed: the packet is tried again or given up.
    fn fail(&mut self, around: &mut Surroundings<'_>, number: StationId) {
        let station = &mut self.stations[number.index()];
        let spec = &self.media[station.medium.index()].spec;
        let Some(Head { packet, direction, contended, .. }) = station.fail(spec) else {
            if let Some(head) = &station.head {
                around.hop(head.direction).counts.retries += 1;
            }
            return;
        };
        if let Some(packet) = packet {
            let cause = if contended { Cause::Collision } else { Cause::Erased };
            self.outcomes.push(AirOutcome::GivenUp { direction, packet, cause });
        }
        self.serve_next(around, number);
    }

    /// The next packet of a station's queue, if there is one.
    fn serve_next(&mut self, around: &mut Surroundings<'_>, number: StationId) {
        let station = &mut self.stations[number.index()];
        let Some(waiting) = station.dequeue() else { return };
        let (direction, octets, waited) = (waiting.direction, waiting.load.octets, around.now - waiting.since);
        let hop = around.hop(direction);
        hop.packets -= 1;
        hop.octets -= u64::from(octets);
        let Medium { spec, timing, .. } = &self.media[station.medium.index()];
        station.serve(spec, timing, waiting, hop.peer);
        around.directions[direction.index()].traffic.note_wait(waited, octets);
    }

    /// What has become of a packet since the last question.
    pub fn outcome(&mut self) -> Option<AirOutcome> {
        (!self.outcomes.is_empty()).then(|| self.outcomes.remove(0))
    }

    /// Packets at the stations that no receiver has, with their directions.
    pub fn under_way(&self) -> impl Iterator<Item = (DirectionId, &PacketId)> + '_ {
        self.stations.iter().flat_map(|station| {
            let head = station.head.iter().filter_map(|head| Some((head.direction, head.packet.as_ref()?)));
            head.chain(station.queue.iter().map(|waiting| (waiting.direction, &waiting.load.packet)))
        })
    }

    /// Nanoseconds of a frame in this direction that lie beyond `now`.
    pub fn busy_beyond(&self, direction: DirectionId, now: u64) -> u64 {
        let sending = |station: &Station| match station.state {
            State::Sending(frame) if frame.direction == direction => station.armed.saturating_sub(now),
            _ => 0,
        };
        self.stations.iter().map(sending).sum()
    }

    /// Nanoseconds that each packet has waited in the queue for a direction until now, and its octets.
    pub fn waiting(&self, direction: DirectionId, now: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        let waiting = self.stations.iter().flat_map(|station| &station.queue);
        waiting.filter(move |waiting| waiting.direction == direction).map(move |w| (now - w.since, w.load.octets))
    }
}
