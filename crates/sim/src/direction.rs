//! One direction of a link, wire or radio: what crosses it, and what its channel does to that.

use crate::build::BuildError;
use crate::channel::Channel;
use crate::link::Wire;
use crate::middlebox::Meter;
use crate::packet::PacketId;
use crate::queue::{Discipline, Goods, Manager};
use crate::radio::Hop;
use crate::shape::LinkSpec;
use crate::truth::CauseCounts;
use crate::varying::{Parts, Step, Varying};
use std::collections::HashSet;

/// One direction of a link in use.
#[derive(Debug)]
pub(crate) struct Direction {
    pub traffic: Traffic,
    pub channel: Channel,
    pub line: Line,
    /// How often its channel damages or erases, if someone wants to know.
    pub meter: Option<Box<Meter>>,
    /// What its queue does beside dropping at the tail.
    pub manager: Option<Box<Manager>>,
}

/// What carries the packets.
#[derive(Debug)]
pub(crate) enum Line {
    Wire(Wire),
    Varying(Box<Varying>),
    Air(Hop),
}

/// What a direction has carried.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub offered: u64,
    pub offered_octets: u64,
    pub delivered: u64,
    pub delivered_octets: u64,
    pub damaged: u64,
    /// Packets that came twice.
    pub duplicated: u64,
    pub dropped: CauseCounts,
    /// Nanoseconds of transmission.
    pub busy: u64,
    pub max_packets: u64,
    pub max_octets: u64,
    /// Waiting times of all packets, added up, in nanoseconds and in nanosecond-octets: divided by the time they give the mean
    /// queue (Little 1961).
    pub waited: u128,
    pub waited_octets: u128,
}

impl Traffic {
    /// So much waits now.
    pub fn note_queue(&mut self, packets: u64, octets: u64) {
        self.max_packets = self.max_packets.max(packets);
        self.max_octets = self.max_octets.max(octets);
    }

    /// A packet waits so many nanoseconds.
    pub fn note_wait(&mut self, span: u64, octets: u32) {
        self.waited += u128::from(span);
        self.waited_octets += u128::from(span) * u128::from(octets);
    }
}

impl Traffic {
    /// A packet waits so many nanoseconds less than was noted.
    pub fn take_wait(&mut self, span: u64, octets: u32) {
        self.waited -= u128::from(span);
        self.waited_octets -= u128::from(span) * u128::from(octets);
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
    pub fn of_wire(spec: &LinkSpec, discipline: Option<Discipline>, seed: u64, run: u64, name: &str) -> Result<Self, BuildError> {
        let codel = matches!(discipline, Some(Discipline::CoDel(_)));
        Self::of_kind(spec, discipline, seed, run, name, !spec.is_plain() || codel)
    }

    /// As [`of_wire`](Self::of_wire), as a wire that varies or a plain one.
    pub fn of_kind(
        spec: &LinkSpec,
        discipline: Option<Discipline>,
        seed: u64,
        run: u64,
        name: &str,
        varying: bool,
    ) -> Result<Self, BuildError> {
        let item = format!("link {name}");
        if let Some((field, found, allowed)) = spec.flaw() {
            return Err(BuildError::Unfit { item, field, found, allowed });
        }
        let manager = discipline.map(|discipline| Manager::of_link(discipline, seed, run, name)).transpose()?;
        let codel = if let Some(Discipline::CoDel(codel)) = discipline { Some(codel) } else { None };
        let channel = Channel::new(&spec.channel, seed, run, &item).map_err(|error| BuildError::Unfit {
            item,
            field: error.field,
            found: error.found,
            allowed: error.allowed,
        })?;
        let line = if varying {
            Line::Varying(Box::new(Varying::new(spec, codel, seed, run, name)?))
        } else {
            Line::Wire(Wire::new(spec))
        };
        Ok(Self { manager: manager.map(Box::new), ..Self::new(channel, line) })
    }

    /// A packet of so many octets comes.
    pub fn note_offer(&mut self, octets: u32) {
        self.traffic.offered += 1;
        self.traffic.offered_octets += u64::from(octets);
    }

    /// A direction that nothing has crossed yet.
    pub fn new(channel: Channel, line: Line) -> Self {
        Self { traffic: Traffic::default(), channel, line, meter: None, manager: None }
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
    pub fn has_room(&mut self, now: u64, octets: u32) -> bool {
        match &mut self.line {
            Line::Wire(wire) => wire.has_room(now, octets),
            Line::Varying(varying) => varying.has_room(now, octets),
            Line::Air(_) => true,
        }
    }

    /// How many packets of `octets` octets could have been sent on a wire by `now` since there was nothing to do.
    pub fn idle_packets(&mut self, now: u64, octets: u32) -> f64 {
        match &mut self.line {
            Line::Wire(wire) => wire.idle_packets(now, octets),
            Line::Varying(varying) => varying.idle_packets(now, octets),
            Line::Air(_) => 0.0,
        }
    }

    /// Takes the newest packet that `admits` out of the queue of a wire at `now`.
    pub fn displace(&mut self, now: u64, admits: impl Fn(PacketId) -> bool) -> Option<PacketId> {
        let Self { traffic, line, .. } = self;
        match line {
            Line::Wire(wire) => {
                let (place, id) = wire.waiting_packets(now).find(|(_, id)| admits(*id))?;
                wire.remove(traffic, now, place);
                Some(id)
            }
            Line::Varying(varying) => {
                let (place, id) = varying.waiting_packets().find(|(_, id)| admits(*id))?;
                varying.remove(traffic, now, place);
                Some(id)
            }
            Line::Air(_) => None,
        }
    }

    /// Lets happen what is due by `now` in the queue of a wire that varies. It has to come before a packet does.
    pub fn advance(&mut self, now: u64, goods: &mut impl Goods) {
        if let Line::Varying(varying) = &mut self.line {
            varying.advance(&mut Parts { traffic: &mut self.traffic, channel: &mut self.channel, goods }, now);
        }
    }

    /// What has become of a packet by `now` on a wire that varies, if there is something to tell.
    pub fn step(&mut self, now: u64, goods: &mut impl Goods) -> Option<Step> {
        let Line::Varying(varying) = &mut self.line else { return None };
        varying.step(&mut Parts { traffic: &mut self.traffic, channel: &mut self.channel, goods }, now)
    }

    /// How often an error pattern has come to its end.
    pub fn pattern_ends(&self) -> u64 {
        let before = if let Line::Varying(varying) = &self.line { varying.pattern_ends() } else { 0 };
        before + self.channel.pattern_ends()
    }
}
