//! How much a write takes: Linux's accounting of the send queue, which scripts know to the octet.
//!
//! Data waits in pieces of up to half of the peer's largest window. The last piece is filled up whatever there is; a further one is begun
//! if the memory of all pieces and what was not sent yet are below their limits.

use crate::world::World;
use std::collections::VecDeque;
use whyloss_transport::stack::ConnectionId;
use whyloss_transport::Endpoint;

/// What a piece costs beside its octets.
const OVERHEAD: u64 = 1280;
/// The least that `SO_SNDBUF` comes to.
const LEAST: u64 = 4608;
/// The largest packet of segmentation offload without its header.
const LARGEST: u64 = 65_536 - 321;
/// What a buffer grows to by itself at most (`tcp_wmem`).
const MOST_GROWN: u64 = 4 << 20;
/// Pieces that are remembered.
const PIECES: usize = 4096;

/// The pieces of a connection.
#[derive(Debug, Default)]
pub struct SendQueue {
    /// Where they end, as offsets; those acknowledged are forgotten.
    ends: VecDeque<u64>,
    /// Where the last one begins.
    tail: u64,
    /// A write has found no room since there was some.
    pub starved: bool,
    /// There was room for writes when it was last looked.
    pub writable: bool,
}

impl SendQueue {
    /// Octets were written up to offset `end`; `begins` is whether they begin a piece.
    fn note(&mut self, start: u64, end: u64, begins: bool) {
        if begins || self.ends.is_empty() {
            self.tail = start;
            if self.ends.len() == PIECES {
                self.ends.pop_front();
            }
            self.ends.push_back(end);
        } else if let Some(last) = self.ends.back_mut() {
            *last = end;
        }
    }

    /// Full segments between what was sent and the end of its piece: a packet does not reach beyond that.
    pub fn rest_of_piece(&self, endpoint: &Endpoint) -> u64 {
        let sent = endpoint.octets_sent();
        let end = self.ends.iter().find(|end| **end >= sent).copied().unwrap_or(sent);
        (end - sent).div_ceil(u64::from(endpoint.path().mss.max(1)))
    }

    /// Memory of what is not acknowledged.
    fn memory(&mut self, endpoint: &Endpoint) -> u64 {
        let acknowledged = endpoint.octets_acknowledged();
        while self.ends.front().is_some_and(|end| *end <= acknowledged) {
            self.ends.pop_front();
        }
        endpoint.octets_written() - acknowledged + OVERHEAD * self.ends.len() as u64
    }
}

/// The largest piece.
fn piece(endpoint: &Endpoint) -> u64 {
    let mss = u64::from(endpoint.path().mss.max(1));
    let largest = endpoint.peer_windows().1;
    let half = if largest > 536 { largest / 2 } else { largest };
    (LARGEST.min(half) / mss).max(1) * mss
}

impl World {
    /// The memory that the send queue may take.
    fn send_limit(&self, fd: i32, endpoint: &Endpoint) -> u64 {
        if let Some(set) = self.descriptors.get(&fd).and_then(|descriptor| descriptor.options.send_buffer) {
            return (2 * set).max(LEAST);
        }
        let mss = u64::from(endpoint.path().mss.max(1));
        let cost = (mss + 640).next_power_of_two() + 256;
        let grown = 2 * (endpoint.window().cwnd() / mss).max(10) * cost;
        self.send_buffer.max(grown.min(MOST_GROWN))
    }

    fn notsent_limit(&self, fd: i32) -> u64 {
        let own = self.descriptors.get(&fd).map_or(0, |descriptor| descriptor.options.notsent_low);
        u64::from(if own == 0 { self.notsent_low } else { own })
    }

    /// Whether a writer is told that there is room: a third of the limit is free.
    pub fn is_writable(&mut self, fd: i32, id: ConnectionId) -> bool {
        let Some(endpoint) = self.stack.endpoint(id) else { return false };
        let (limit, low) = (self.send_limit(fd, endpoint), self.notsent_limit(fd));
        let Some(seen) = self.seen.get_mut(&id) else { return false };
        let memory = seen.queue.memory(endpoint);
        memory + memory / 2 <= limit && 2 * endpoint.unsent() < low
    }

    /// Octets that a write puts into the queue next, and whether they begin a piece; 0 if there is no room.
    pub fn room(&mut self, fd: i32, id: ConnectionId) -> (u64, bool) {
        let Some(endpoint) = self.stack.endpoint(id) else { return (0, false) };
        let (limit, low, piece) = (self.send_limit(fd, endpoint), self.notsent_limit(fd), piece(endpoint));
        let (written, sent) = (endpoint.octets_written(), endpoint.octets_sent());
        let Some(seen) = self.seen.get_mut(&id) else { return (0, false) };
        let tail = written - seen.queue.tail.max(sent);
        if tail > 0 && tail < piece {
            return (piece - tail, false);
        }
        let free = seen.queue.memory(endpoint) < limit && endpoint.unsent() < low;
        (if free { piece } else { 0 }, true)
    }

    /// Takes note of what a write has put into the queue.
    pub fn note_queued(&mut self, id: ConnectionId, octets: u64, begins: bool) {
        let end = self.stack.endpoint(id).map_or(0, Endpoint::octets_written);
        if let Some(seen) = self.seen.get_mut(&id) {
            seen.queue.note(end - octets, end, begins);
        }
    }

    /// Tells those who watch sockets where there is room again.
    pub fn advance_send_queues(&mut self) {
        let connections: Vec<_> = self.descriptors.keys().filter_map(|fd| Some((*fd, self.connection(*fd).ok()?))).collect();
        for (fd, id) in connections {
            let writable = self.is_writable(fd, id);
            if let Some(seen) = self.seen.get_mut(&id) {
                seen.edges += u64::from(writable && !seen.queue.writable);
                seen.queue.writable = writable;
                seen.queue.starved &= !writable;
            }
        }
    }
}
