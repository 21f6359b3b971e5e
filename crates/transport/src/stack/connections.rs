//! The connections of a stack: found by their two ends or their id, they take turns at sending, and each has an alarm.

use crate::segment::Segment;
use crate::tcp::{Endpoint, FastOpenRequest};
use crate::time::Instant;
use crate::wire::ip::Addresses;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::SocketAddr;

/// The name of a connection: both ends of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FourTuple {
    /// Address and port of our end.
    pub local: SocketAddr,
    /// Address and port of the peer's end.
    pub remote: SocketAddr,
}

impl FourTuple {
    /// The connection that a segment which we receive belongs to.
    pub(super) fn of_received(addresses: Addresses, segment: &Segment) -> Self {
        Self {
            local: SocketAddr::new(addresses.dst(), segment.dst_port),
            remote: SocketAddr::new(addresses.src(), segment.src_port),
        }
    }
}

/// A connection of a [`Stack`](super::Stack). Never used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    index: u32,
    generation: u32,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub endpoint: Endpoint,
    pub tuple: FourTuple,
    /// From us to the peer.
    pub addresses: Addresses,
    /// The listener whose backlog counts it, until it is established.
    pub pending: Option<SocketAddr>,
    /// The application knows of it: it opened it, or has been told that it was accepted.
    pub announced: bool,
    /// It was accepted before its handshake ended, which has not ended yet, by this listener.
    pub early: Option<SocketAddr>,
    /// How it was opened fast, until the answer comes.
    pub request: Option<FastOpenRequest>,
    /// The application wants no more notices of it.
    pub released: bool,
    /// Whether it stands in the queue of those that may send.
    queued: bool,
    /// The earliest alarm that is set for it.
    alarm: Option<Instant>,
    closed: bool,
}

impl Connection {
    /// A connection that nothing was done with yet. `pending`: the listener that opens it, unless the application does.
    pub fn new(endpoint: Endpoint, tuple: FourTuple, pending: Option<SocketAddr>) -> Self {
        Self {
            endpoint,
            tuple,
            addresses: Addresses::new(tuple.local.ip(), tuple.remote.ip()).expect("both ends are of one family"),
            announced: pending.is_none(),
            pending,
            early: None,
            request: None,
            released: false,
            queued: false,
            alarm: None,
            closed: false,
        }
    }
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

/// All connections of a host, in slots that are used again. A slot's index is good as long as its connection is kept.
#[derive(Debug, Default)]
pub(super) struct Connections {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Those that are not closed.
    tuples: BTreeMap<FourTuple, u32>,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    /// Wake-up times, some of them no longer meant: a connection is looked at when its time comes, and put back if it wants to sleep on.
    alarms: BinaryHeap<Reverse<(Instant, u32)>>,
}

impl Connections {
    /// How many are kept, in any state.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn insert(&mut self, connection: Connection) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        self.tuples.insert(connection.tuple, index);
        self.slots[index as usize].connection = Some(Box::new(connection));
        index
    }

    /// The connection between two ends, unless it is closed.
    pub fn find(&self, tuple: &FourTuple) -> Option<u32> {
        self.tuples.get(tuple).copied()
    }

    pub fn id(&self, index: u32) -> ConnectionId {
        ConnectionId { index, generation: self.slots[index as usize].generation }
    }

    /// Where a connection is kept, unless it was forgotten.
    pub fn index(&self, id: ConnectionId) -> Option<u32> {
        self.get(id).map(|_| id.index)
    }

    pub fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.slots.get(id.index as usize)?;
        slot.connection.as_deref().filter(|_| slot.generation == id.generation)
    }

    /// The indices of all.
    pub fn indices(&self) -> Vec<u32> {
        (0..self.slots.len() as u32).filter(|index| self.slots[*index as usize].connection.is_some()).collect()
    }

    pub fn at(&mut self, index: u32) -> &mut Connection {
        self.slots[index as usize].connection.as_mut().expect("a live connection")
    }

    /// Queues a connection to be asked for segments.
    pub fn enqueue(&mut self, index: u32) {
        let connection = self.at(index);
        if !connection.queued {
            connection.queued = true;
            self.ready.push_back(index);
        }
    }

    /// The next connection to be asked for a segment, in turn.
    pub fn dequeue(&mut self) -> Option<u32> {
        let index = self.ready.pop_front()?;
        self.at(index).queued = false;
        Some(index)
    }

    /// Sets the alarm of a connection to what its endpoint wants.
    pub fn set_alarm(&mut self, index: u32) {
        let connection = self.at(index);
        let Some(due) = connection.endpoint.poll_timeout() else { return };
        if connection.alarm.is_none_or(|alarm| due < alarm) {
            connection.alarm = Some(due);
            self.alarms.push(Reverse((due, index)));
        }
    }

    /// When the next alarm is set.
    pub fn next_alarm(&self) -> Option<Instant> {
        self.alarms.peek().map(|Reverse((at, _))| *at)
    }

    /// The next connection whose alarm is due; its alarm is off then.
    pub fn pop_alarm(&mut self, now: Instant) -> Option<u32> {
        while self.next_alarm().is_some_and(|at| at <= now) {
            let Reverse((at, index)) = self.alarms.pop()?;
            let Some(connection) = self.slots[index as usize].connection.as_mut() else { continue };
            if connection.alarm == Some(at) {
                connection.alarm = None;
                return Some(index);
            }
        }
        None
    }

    /// Says that a connection is closed: its ends can be those of another one.
    pub fn close(&mut self, index: u32) {
        let connection = self.at(index);
        connection.closed = true;
        let tuple = connection.tuple;
        self.tuples.remove(&tuple);
    }

    /// Forgets a connection that is closed and released and has nothing left to send.
    pub fn reclaim(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.connection.as_ref().is_some_and(|c| c.closed && c.released && !c.queued) {
            slot.connection = None;
            slot.generation += 1;
            self.free.push(index);
        }
    }
}
