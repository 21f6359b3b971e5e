//! What a host keeps account of for its sockets: error queues, send queues, and the times of `tcp_info`.

use super::World;
use crate::errors::{Message, MSG_ZEROCOPY};
use crate::send_queue;
use whyloss_transport::stack::ConnectionId;
use whyloss_transport::tcp::Command;
use whyloss_transport::Endpoint;

impl World {
    /// Tells the error queues what has left and arrived.
    pub fn advance_error_queues(&mut self) {
        let ids: Vec<ConnectionId> = self.seen.keys().copied().collect();
        for id in ids {
            let Some(endpoint) = self.stack.endpoint(id) else { continue };
            let acknowledged = endpoint.octets_acknowledged();
            let sent = endpoint.octets_sent();
            let seen = self.seen.entry(id).or_default();
            if seen.errors.advance(self.now, sent, acknowledged) {
                seen.edges += 1;
            }
        }
    }

    /// Takes note of a write that has just been handed over.
    pub fn note_write(&mut self, fd: i32, flags: i32) {
        let Some(descriptor) = self.descriptors.get(&fd) else { return };
        let (zero_copy, stamps) = (flags & MSG_ZEROCOPY != 0 && descriptor.options.zero_copy, descriptor.options.timestamping);
        if let Ok(id) = self.connection(fd) {
            let end = self.stack.endpoint(id).map_or(0, Endpoint::octets_written);
            self.seen.entry(id).or_default().errors.note_write(end, zero_copy, stamps);
        }
    }

    /// The next message of a socket's error queue.
    pub fn take_error(&mut self, fd: i32) -> Option<Message> {
        let id = self.connection(fd).ok()?;
        self.seen.get_mut(&id)?.errors.take()
    }

    /// Brings the times of all connections up to now.
    pub fn advance_limits(&mut self) {
        let ids: Vec<ConnectionId> = self.seen.keys().copied().collect();
        for id in ids {
            if let (Some(endpoint), Some(seen)) = (self.stack.endpoint(id), self.seen.get_mut(&id)) {
                if seen.connected {
                    seen.limits.advance(self.now, endpoint, seen.queue.starved);
                }
            }
        }
    }

    /// The memory that the send queue may take.
    fn send_limit(&mut self, fd: i32, id: ConnectionId) -> u64 {
        let set = self.descriptors.get(&fd).and_then(|descriptor| descriptor.options.send_buffer);
        match (self.stack.endpoint(id), self.seen.get_mut(&id)) {
            (Some(endpoint), Some(seen)) if seen.connected => seen.queue.limit(endpoint, set, self.send_buffer),
            _ => self.send_buffer,
        }
    }

    fn notsent_limit(&self, fd: i32) -> u64 {
        let own = self.descriptors.get(&fd).map_or(0, |descriptor| descriptor.options.notsent_low);
        u64::from(if own == 0 { self.notsent_low } else { own })
    }

    /// Whether a writer is told that there is room: a third of the limit is free.
    pub fn is_writable(&mut self, fd: i32, id: ConnectionId) -> bool {
        let (limit, low) = (self.send_limit(fd, id), self.notsent_limit(fd));
        let Some(endpoint) = self.stack.endpoint(id) else { return false };
        let Some(seen) = self.seen.get_mut(&id) else { return false };
        let memory = seen.queue.memory(endpoint);
        memory + memory / 2 <= limit && 2 * endpoint.unsent() < low
    }

    /// Octets that a write puts into the queue next, and whether they begin a piece; 0 if there is no room.
    pub fn room(&mut self, fd: i32, id: ConnectionId) -> (u64, bool) {
        let (limit, low) = (self.send_limit(fd, id), self.notsent_limit(fd));
        let Some(endpoint) = self.stack.endpoint(id) else { return (0, false) };
        let piece = send_queue::piece(endpoint);
        let (written, sent) = (endpoint.octets_written(), endpoint.octets_sent());
        let Some(seen) = self.seen.get_mut(&id) else { return (0, false) };
        let tail = written - seen.queue.tail.max(sent);
        if tail > 0 && tail < piece && !seen.queue.is_sealed(written) {
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

    /// What a write has put into the queue ends a record: nothing is added to its piece.
    pub fn end_record(&mut self, id: ConnectionId) {
        self.stack.command(self.now, id, Command::EndRecord);
        let end = self.stack.endpoint(id).map_or(0, Endpoint::octets_written);
        if let Some(seen) = self.seen.get_mut(&id) {
            seen.queue.seal(end);
        }
    }

    /// Tells those who watch sockets where there is room again.
    pub fn advance_send_queues(&mut self) {
        let connections: Vec<_> = self.descriptors.keys().filter_map(|fd| Some((*fd, self.connection(*fd).ok()?))).collect();
        for (fd, id) in connections {
            if let (Some(endpoint), Some(seen)) = (self.stack.endpoint(id), self.seen.get_mut(&id)) {
                seen.queue.update(endpoint);
            }
            let writable = self.is_writable(fd, id);
            if let Some(seen) = self.seen.get_mut(&id) {
                seen.edges += u64::from(writable && !seen.queue.writable);
                seen.queue.writable = writable;
                seen.queue.starved &= !writable;
            }
        }
    }
}
