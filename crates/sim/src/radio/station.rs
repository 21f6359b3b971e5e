//! A station's side of the distributed coordination function.

use super::backoff::Backoff;
use super::frame::{Frame, Kind, Timing};
use super::receiver::Receiver;
use super::spec::RadioSpec;
use crate::address::{DirectionId, HostId, MediumId, StationId};
use crate::link::{Load, QueueFull};
use crate::packet::PacketId;
use crate::shape::QueueLimit;
use std::collections::VecDeque;

pub(super) const NEVER: u64 = u64::MAX;

/// A station: its receiver, its queue, and the exchange that it is in.
#[derive(Debug)]
pub(super) struct Station {
    pub id: StationId,
    /// The radio channel that it is on.
    pub medium: MediumId,
    pub receiver: Receiver,
    /// Every station that its signal reaches, the nearest first.
    pub reach: Vec<Reach>,
    pub state: State,
    /// When its timer is due.
    pub armed: u64,
    /// The event that was made for it last.
    pub scheduled: u64,
    /// Packets that wait, for all neighbours.
    pub queue: VecDeque<Waiting>,
    queued_octets: u64,
    /// The packet in service.
    pub head: Option<Head>,
    pub backoff: Backoff,
    /// Since when the medium is idle, if it is.
    idle_since: u64,
    /// The last signal that ended could not be decoded.
    pub disturbed: bool,
    /// Until when others have reserved the medium.
    nav: u64,
}

/// A station within reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub station: StationId,
    /// Received power in watts.
    pub power: f64,
    /// Time of flight.
    pub delay: u64,
}

/// What a station is doing. Each state but the first has the timer armed.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// Nothing, or waiting for its turn: the timer is armed for the moment of access.
    Contending,
    /// It will send this a SIFS after what it has received.
    Replying(Frame),
    /// This is on the air.
    Sending(Frame),
    /// It expects a frame of this kind.
    Awaiting(Kind),
}

/// A packet in the queue.
#[derive(Debug)]
pub(super) struct Waiting {
    pub load: Load,
    pub direction: DirectionId,
    pub since: u64,
}

/// The packet in service.
#[derive(Debug)]
pub(super) struct Head {
    /// The packet, until its receiver has it. What the sender repeats after that is a duplicate.
    pub packet: Option<PacketId>,
    pub host: HostId,
    pub packet_octets: u32,
    pub direction: DirectionId,
    /// The station that it is for.
    pub peer: StationId,
    octets: u32,
    airtime: u64,
    protected: bool,
    /// Failed attempts without RTS or of the RTS, and of the data after an RTS.
    short: u32,
    long: u32,
    /// The attempt under way was hit by noise.
    pub hit: bool,
    /// Some attempt failed for another reason.
    pub contended: bool,
}

impl Station {
    pub fn new(id: StationId, medium: MediumId, backoff: Backoff) -> Self {
        Self {
            id,
            medium,
            receiver: Receiver::default(),
            reach: Vec::new(),
            state: State::Contending,
            armed: NEVER,
            scheduled: NEVER,
            queue: VecDeque::new(),
            queued_octets: 0,
            head: None,
            backoff,
            idle_since: 0,
            disturbed: false,
            nav: 0,
        }
    }

    /// Puts a packet into the queue, an urgent one at its head.
    pub fn enqueue(&mut self, limit: QueueLimit, waiting: Waiting, urgent: bool) -> Result<(), QueueFull> {
        let octets = waiting.load.octets;
        if !limit.admits(self.queue.len() as u64, self.queued_octets, octets) {
            return Err(QueueFull(waiting.load));
        }
        self.queued_octets += u64::from(octets);
        if urgent {
            self.queue.push_front(waiting);
        } else {
            self.queue.push_back(waiting);
        }
        Ok(())
    }

    /// Whether the queue has room for two packets of this length.
    pub fn has_room_for_two(&self, limit: QueueLimit, octets: u32) -> bool {
        let (packets, waiting) = match &self.head {
            Some(_) => (self.queue.len() as u64 + 1, self.queued_octets + u64::from(octets)),
            None => (0, 0),
        };
        limit.admits(packets, waiting, octets)
    }

    /// Takes the next packet out of the queue.
    pub fn dequeue(&mut self) -> Option<Waiting> {
        let waiting = self.queue.pop_front()?;
        self.queued_octets -= u64::from(waiting.load.octets);
        Some(waiting)
    }

    /// Begins to serve a packet.
    pub fn serve(&mut self, spec: &RadioSpec, timing: &Timing, waiting: Waiting, peer: StationId) {
        let Waiting { load, direction, .. } = waiting;
        let (octets, airtime) = timing.data(load.octets);
        self.head = Some(Head {
            packet: Some(load.packet),
            host: load.host,
            packet_octets: load.octets,
            direction,
            peer,
            octets,
            airtime,
            protected: spec.rts.is_some_and(|least| u64::from(octets - spec.llc_octets) >= least),
            short: 0,
            long: 0,
            hit: false,
            contended: false,
        });
    }

    /// A packet has come to a station that had none. On an idle medium it is sent at once, if an earlier backoff is over; on a busy
    /// one it needs a backoff.
    pub fn wake(&mut self, now: u64) {
        let busy = self.backoff.due().is_none() || self.nav > now;
        if busy && self.backoff.is_over() {
            self.backoff.draw();
        }
        self.arm(now);
    }

    /// Arms the timer for the moment of access, if the station contends and the medium is idle.
    fn arm(&mut self, now: u64) {
        if let (State::Contending, Some(_), Some(due)) = (self.state, &self.head, self.backoff.due()) {
            self.armed = due.max(now);
        }
    }

    /// The medium has become busy. An access within the next moments happens all the same: nobody notices a signal at once.
    pub fn on_busy(&mut self, timing: &Timing, now: u64) {
        if let State::Contending = self.state {
            if self.armed <= now + timing.cca {
                return;
            }
            self.armed = NEVER;
            self.backoff.freeze(now + timing.cca);
        }
    }

    /// The medium has become idle.
    pub fn on_idle(&mut self, timing: &Timing, now: u64) {
        self.idle_since = now;
        self.resume(timing, now);
    }

    /// Lets the backoff count on an idle medium.
    pub fn resume(&mut self, timing: &Timing, now: u64) {
        if let State::Contending = self.state {
            let space = if self.disturbed { timing.eifs } else { timing.difs };
            let reserved = if self.nav > now { self.nav + timing.difs } else { 0 };
            self.backoff.count_from((self.idle_since + space).max(reserved).max(now));
            self.arm(now);
        }
    }

    /// The first frame of an exchange.
    pub fn opening(&self, timing: &Timing) -> Option<Frame> {
        let head = self.head.as_ref()?;
        if !head.protected {
            return self.data(timing);
        }
        let reserved = 3 * timing.sifs + timing.cts + head.airtime + timing.ack;
        let (from, to, direction) = (self.id, head.peer, head.direction);
        Some(Frame { kind: Kind::Rts, from, to, direction, octets: timing.control.rts, airtime: timing.rts, reserved })
    }

    fn data(&self, timing: &Timing) -> Option<Frame> {
        let head = self.head.as_ref()?;
        let reserved = timing.sifs + timing.ack;
        let (from, to, direction) = (self.id, head.peer, head.direction);
        Some(Frame { kind: Kind::Data, from, to, direction, octets: head.octets, airtime: head.airtime, reserved })
    }

    /// The station goes on the air.
    pub fn on_sending(&mut self, frame: Frame, now: u64) {
        self.receiver.mute();
        self.disturbed = false;
        match self.state {
            State::Contending => self.backoff.finish(),
            _ => self.backoff.freeze(now),
        }
        self.state = State::Sending(frame);
        self.armed = now + frame.airtime;
    }

    /// The station's frame has left.
    pub fn on_sent(&mut self, timing: &Timing, frame: &Frame, now: u64) {
        self.receiver.unmute();
        let (state, armed) = match frame.kind {
            Kind::Rts => (State::Awaiting(Kind::Cts), now + timing.sifs + timing.cts + timing.slot),
            Kind::Data => (State::Awaiting(Kind::Ack), now + timing.sifs + timing.ack + timing.slot),
            Kind::Cts | Kind::Ack => (State::Contending, NEVER),
        };
        self.state = state;
        self.armed = armed;
    }

    /// A frame for another station: the medium is reserved.
    pub fn overhear(&mut self, frame: &Frame, now: u64) {
        self.nav = self.nav.max(now + frame.reserved);
    }

    /// What a frame for this station is answered with, if with anything.
    pub fn reply(&mut self, timing: &Timing, frame: &Frame, now: u64) {
        let answer = |kind, octets, airtime: u64| {
            let reserved = frame.reserved.saturating_sub(timing.sifs + airtime);
            Frame { kind, from: frame.to, to: frame.from, direction: frame.direction.peer(), octets, airtime, reserved }
        };
        let reply = match (frame.kind, self.state) {
            (Kind::Cts, State::Awaiting(Kind::Cts)) => {
                if let Some(head) = &mut self.head {
                    head.short = 0;
                }
                self.data(timing)
            }
            (Kind::Rts, State::Contending) if self.nav <= now => Some(answer(Kind::Cts, timing.control.cts, timing.cts)),
            (Kind::Data, State::Contending) => Some(answer(Kind::Ack, timing.control.ack, timing.ack)),
            _ => None,
        };
        if let Some(reply) = reply {
            self.state = State::Replying(reply);
            self.armed = now + timing.sifs;
        }
    }

    /// The exchange is complete.
    pub fn succeed(&mut self) -> Option<Head> {
        self.backoff.reset();
        self.leave()
    }

    /// The exchange has failed. Returns the packet if it is given up.
    pub fn fail(&mut self, spec: &RadioSpec) -> Option<Head> {
        let after_rts = matches!(self.state, State::Awaiting(Kind::Ack));
        let head = self.head.as_mut()?;
        head.contended |= !std::mem::replace(&mut head.hit, false);
        let (count, limit) =
            if after_rts && head.protected { (&mut head.long, spec.long_retries) } else { (&mut head.short, spec.short_retries) };
        *count = count.saturating_add(1);
        if limit.is_some_and(|limit| *count >= limit) {
            return self.succeed();
        }
        self.backoff.widen();
        self.contend();
        None
    }

    fn leave(&mut self) -> Option<Head> {
        self.contend();
        self.head.take()
    }

    /// Every exchange, successful or not, is followed by a backoff.
    fn contend(&mut self) {
        self.state = State::Contending;
        self.armed = NEVER;
        self.backoff.draw();
    }
}
