//! One direction of a link, wire or radio: what crosses it, and what its channel does to that.

use crate::address::{HostId, Place};
use crate::channel::Channel;
use crate::error::BuildError;
use crate::hop::Hop;
use crate::link::{Load, Wire};
use crate::packet::{PacketId, PacketStore};
use crate::policer::Bucket;
use crate::queue::{Decision, Found, Manager};
use crate::shape::LinkSpec;
use crate::traffic::Traffic;
use crate::truth::Cause;
use crate::varying::{Parts, Step, Varying};
use std::collections::{HashSet, VecDeque};

/// One direction of a link in use. With thousands of flows none is in a cache when its packet comes, so what every packet touches lies
/// close together, and what few directions have lies elsewhere.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Direction {
    pub channel: Channel,
    /// What has to let a packet pass before it comes to the queue.
    pub policer: Option<Box<Bucket>>,
    /// What its queue does beside dropping at the tail.
    pub manager: Option<Box<Manager>>,
    /// Where it leads, which whoever builds a network says.
    pub place: Place,
    /// Nothing but the queue of a plain wire decides on a packet that comes, and nobody watches: whoever builds a network finds it out.
    pub simple: bool,
    pub line: Line,
    pub traffic: Traffic,
}

const _: () = assert!(size_of::<Direction>() <= 256, "four cache lines: another field may cost a fifth");

/// What carries the packets.
#[derive(Debug)]
pub(crate) enum Line {
    Wire(Wire),
    Varying(Box<Varying>),
    Air(Hop),
}

impl Line {
    /// The packet that is transmitted, and since when; on a plain wire the last one that came, and when its transmission begins.
    pub fn transmission(&self) -> Option<(u64, &PacketId)> {
        match self {
            Self::Wire(wire) => wire.newest(),
            Self::Varying(varying) => varying.transmission(),
            Self::Air(_) => None,
        }
    }

    /// Whether it is known of each packet when its transmission begins.
    pub fn tells_transmissions(&self) -> bool {
        match self {
            Self::Wire(_) => true,
            Self::Varying(varying) => varying.has_rate(),
            Self::Air(_) => false,
        }
    }
}

/// Names the directions of links, in the order in which they are added: `a>b`, with a number if there is more than one such link.
/// Random streams follow from these names.
#[derive(Debug, Default)]
pub struct LinkNames(HashSet<String>);

impl LinkNames {
    /// The name of a further direction, from node `from` to node `to`.
    pub fn name(&mut self, from: &str, to: &str) -> String {
        let base = format!("{from}>{to}");
        let mut name = base.clone();
        let mut number = 1;
        while !self.0.insert(name.clone()) {
            number += 1;
            name = format!("{base}#{number}");
        }
        name
    }
}

impl Direction {
    /// The direction of a wire that is called `name`.
    pub fn of_wire(spec: &LinkSpec, seed: u64, run: u64, name: &str) -> Result<Self, BuildError> {
        Self::of_kind(spec, seed, run, name, !spec.is_plain())
    }

    /// As [`of_wire`](Self::of_wire), as a wire that varies or a plain one.
    pub fn of_kind(spec: &LinkSpec, seed: u64, run: u64, name: &str, varying: bool) -> Result<Self, BuildError> {
        let item = format!("link {name}");
        if let Some(flaw) = spec.flaw() {
            return Err(BuildError::unfit(&item, flaw));
        }
        let manager = match &spec.discipline {
            Some(discipline) => Manager::of_link(discipline, spec.mean_rate(), seed, run, name)?,
            None => None,
        };
        let channel = Channel::new(&spec.channel, seed, run, &item).map_err(|error| BuildError::of_channel(&item, error))?;
        let line =
            if varying { Line::Varying(Box::new(Varying::new(spec, seed, run, name)?)) } else { Line::Wire(Wire::new(spec)) };
        let policer = spec.policer.as_ref().map(|policer| Box::new(Bucket::new(policer)));
        Ok(Self { policer, manager: manager.map(Box::new), ..Self::new(channel, line) })
    }

    /// A direction that nothing has crossed yet.
    pub fn new(channel: Channel, line: Line) -> Self {
        let (traffic, place) = (Traffic::default(), Place::Host(HostId::new(0)));
        Self { traffic, channel, line, place, simple: false, policer: None, manager: None }
    }

    /// Whether anything decides on packets before they come to the queue.
    pub const fn is_guarded(&self) -> bool {
        self.policer.is_some() || self.manager.is_some()
    }

    /// Whether it is a plain wire whose queue decides by itself.
    pub const fn is_plain(&self) -> bool {
        matches!(self.line, Line::Wire(_)) && !self.is_guarded()
    }

    /// Packets and octets that wait at `now`. A packet whose transmission starts at this very moment does not wait any more.
    pub fn waiting(&mut self, now: u64) -> (u64, u64) {
        match &mut self.line {
            Line::Wire(wire) => wire.waiting(now),
            Line::Varying(varying) => varying.waiting(),
            Line::Air(hop) => hop.waiting(),
        }
    }

    /// Whether the queue of a wire has room for a packet at `now`.
    fn has_room(&mut self, now: u64, octets: u32) -> bool {
        match &mut self.line {
            Line::Wire(wire) => wire.has_room(now, octets),
            Line::Varying(varying) => varying.has_room(now, octets),
            Line::Air(_) => true,
        }
    }

    /// How many octets could have been sent on a wire by `now` since there was nothing to do.
    fn idle_octets(&mut self, now: u64) -> f64 {
        match &mut self.line {
            Line::Wire(wire) => wire.idle_octets(now),
            Line::Varying(varying) => varying.idle_octets(now),
            Line::Air(_) => 0.0,
        }
    }

    /// Takes the newest packet that `admits` out of the queue of a wire at `now`.
    fn displace(&mut self, now: u64, admits: impl Fn(&PacketId) -> bool) -> Option<PacketId> {
        let Self { traffic, line, .. } = self;
        match line {
            Line::Wire(wire) => {
                let (place, _) = wire.waiting_packets(now).find(|(_, id)| admits(id))?;
                wire.remove(traffic, now, place)
            }
            Line::Varying(varying) => {
                let (place, _) = varying.waiting_packets().find(|(_, id)| admits(id))?;
                varying.remove(traffic, now, place)
            }
            Line::Air(_) => None,
        }
    }

    /// Lets the policer and the manager of the queue decide on a packet that comes to it at `now`. The packet goes on to the queue,
    /// or is to be dropped by the cause that is returned. Those in `displaced` have made room for it and are to be dropped with
    /// [`Cause::QueueFull`].
    pub fn admit(
        &mut self,
        now: u64,
        load: &Load,
        packets: &mut impl PacketStore,
        displaced: &mut VecDeque<PacketId>,
    ) -> Result<(), Cause> {
        if self.policer.as_mut().is_some_and(|bucket| !bucket.passes(now, load.octets)) {
            return Err(Cause::Policer);
        }
        if self.manager.is_none() {
            return Ok(());
        }
        self.advance(now, packets);
        let (packets_waiting, octets) = self.waiting(now);
        let (idle, full) = (self.idle_octets(now), !self.has_room(now, load.octets));
        let Some(manager) = &mut self.manager else { return Ok(()) };
        match manager.decide(&Found { now, length: load.octets, packets: packets_waiting, octets, idle, full }) {
            Decision::Pass => Ok(()),
            Decision::Mark => {
                packets.mark(&load.packet);
                Ok(())
            }
            Decision::MarkOrDrop if packets.mark(&load.packet) => Ok(()),
            Decision::MarkOrDrop | Decision::Drop => Err(Cause::Aqm),
            Decision::Displace => {
                while !packets.is_out(&load.packet) && !self.has_room(now, load.octets) {
                    let Some(id) = self.displace(now, |id| packets.is_out(id)) else { break };
                    displaced.push_back(id);
                }
                Ok(())
            }
        }
    }

    /// Handles what is due by `now` in the queue of a wire that varies. It has to come before a packet does.
    pub fn advance(&mut self, now: u64, packets: &mut impl PacketStore) {
        let Self { traffic, channel, manager, line, .. } = self;
        if let Line::Varying(varying) = line {
            varying.advance(&mut Parts { traffic, channel, manager: manager.as_deref_mut(), packets }, now);
        }
    }

    /// What has become of a packet by `now` on a wire that varies, if there is something to tell.
    pub fn step(&mut self, now: u64, packets: &mut impl PacketStore) -> Option<Step> {
        let Self { traffic, channel, manager, line, .. } = self;
        let Line::Varying(varying) = line else { return None };
        varying.step(&mut Parts { traffic, channel, manager: manager.as_deref_mut(), packets }, now)
    }

    /// How often an error pattern has come to its end.
    pub fn pattern_ends(&self) -> u64 {
        let before = if let Line::Varying(varying) = &self.line { varying.pattern_ends() } else { 0 };
        before + self.channel.pattern_ends()
    }
}
