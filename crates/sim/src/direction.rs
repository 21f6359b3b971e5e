//! One direction of a link, wire or radio: what crosses it, and what its channel does to that.

use crate::build::{BuildError, LinkSpec, QueueLimit};
use crate::channel::Channel;
use crate::link::Wire;
use crate::middlebox::Meter;
use crate::queue::Manager;
use crate::radio::Hop;
use crate::truth::CauseCounts;
use std::collections::HashSet;
use whyloss_transport::BitRate;

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
    pub fn of_wire(spec: &LinkSpec, seed: u64, run: u64, name: &str) -> Result<Self, BuildError> {
        let item = format!("link {name}");
        check_wire(&item, spec)?;
        let channel = Channel::new(&spec.channel, seed, run, &item).map_err(|error| BuildError::Unfit {
            item,
            field: error.field,
            found: error.found,
            allowed: error.allowed,
        })?;
        Ok(Self::new(channel, Line::Wire(Wire::new(spec))))
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
            Line::Air(hop) => hop.waiting(),
        }
    }
}

fn check_wire(item: &str, spec: &LinkSpec) -> Result<(), BuildError> {
    let unfit = |field, found: String, allowed| Err(BuildError::Unfit { item: item.to_owned(), field, found, allowed });
    if spec.rate == BitRate::from_bps(0) {
        return unfit("rate", spec.rate.to_string(), "a rate above 0 bps");
    }
    match spec.queue {
        QueueLimit::Packets(0) => unfit("queue", "0 packets".to_owned(), "at least 1 packet"),
        QueueLimit::Octets(0) => unfit("queue", "0 octets".to_owned(), "at least 1 octet"),
        _ => Ok(()),
    }
}
