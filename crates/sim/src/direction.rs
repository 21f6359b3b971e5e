//! One direction of a link, wire or radio: what crosses it, and what its channel does to that.

use crate::channel::Channel;
use crate::link::Wire;
use crate::middlebox::Meter;
use crate::queue::Manager;
use crate::radio::Hop;
use crate::truth::CauseCounts;

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

impl Direction {
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
