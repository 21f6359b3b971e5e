//! How much a write takes: Linux's accounting of the send queue, which scripts know to the octet.
//!
//! Data waits in pieces of up to half of the peer's largest window. The last piece is filled up whatever there is; a further one is begun
//! if the memory of all pieces and what was not sent yet are below their limits.

use std::collections::VecDeque;
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
    pub tail: u64,
    /// A write has found no room since there was some.
    pub starved: bool,
    /// There was room for writes at the last look.
    pub writable: bool,
    /// The memory that it may take, in octets; 0 until the connection is established.
    size: u64,
    /// Segments that had arrived at the last [`SendQueue::update`].
    segments_received: u64,
    /// The offset at which a record ends: nothing is added to its piece.
    sealed: Option<u64>,
}

impl SendQueue {
    /// Octets were written up to offset `end`; `begins` is whether they begin a piece.
    pub fn note(&mut self, start: u64, end: u64, begins: bool) {
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

    /// A record ends at offset `end`.
    pub fn seal(&mut self, end: u64) {
        self.sealed = Some(end);
    }

    /// Whether what was written up to offset `end` takes nothing more into its piece.
    pub fn is_sealed(&self, end: u64) -> bool {
        self.sealed == Some(end)
    }

    /// The memory that it may take: twice `SO_SNDBUF` if that was `set`, else the `usual` buffer, or what it has grown to.
    pub fn limit(&mut self, endpoint: &Endpoint, set: Option<u64>, usual: u64) -> u64 {
        if let Some(set) = set {
            return (2 * set).max(LEAST);
        }
        if self.size == 0 {
            self.size = usual;
            self.grow(endpoint);
        }
        self.size
    }

    /// Looks whether something has arrived. If so, a queue that a writer has found full grows with the window, but not while the window
    /// is full too: then it does not keep anything from being sent.
    pub fn update(&mut self, endpoint: &Endpoint) {
        let received = endpoint.stats().segments_received;
        let news = std::mem::replace(&mut self.segments_received, received) != received;
        let mss = u64::from(endpoint.path().mss.max(1));
        if news && self.starved && self.size > 0 && endpoint.pipe() / mss < endpoint.window().cwnd() / mss {
            self.grow(endpoint);
        }
    }

    fn grow(&mut self, endpoint: &Endpoint) {
        let mss = u64::from(endpoint.path().mss.max(1));
        let cost = (mss + 640).next_power_of_two() + 256;
        let grown = 2 * (endpoint.window().cwnd() / mss).max(10) * cost;
        self.size = self.size.max(grown.min(MOST_GROWN));
    }

    /// Memory of what is not acknowledged.
    pub fn memory(&mut self, endpoint: &Endpoint) -> u64 {
        let acknowledged = endpoint.octets_acknowledged();
        while self.ends.front().is_some_and(|end| *end <= acknowledged) {
            self.ends.pop_front();
        }
        endpoint.octets_written() - acknowledged + OVERHEAD * self.ends.len() as u64
    }
}

/// Octets of the largest piece: half of the peer's largest window, in whole segments, and no more than a packet holds.
pub fn piece(endpoint: &Endpoint) -> u64 {
    let mss = u64::from(endpoint.path().mss.max(1));
    let largest = endpoint.peer_windows().1;
    let half = if largest > 536 { largest / 2 } else { largest };
    (LARGEST.min(half) / mss).max(1) * mss
}
