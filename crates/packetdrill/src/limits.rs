//! What has kept a connection from sending, and for how long.

use whyloss_transport::{Duration, Endpoint, Instant};

/// The times of `tcp_info`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    since: Instant,
    now: Limit,
    /// Data waited to be acknowledged or sent.
    pub busy: Duration,
    /// Of that: the peer's window was full.
    pub window: Duration,
    /// Of that: everything was sent and the application waited for room.
    pub buffer: Duration,
    /// When data last came, or the connection was opened.
    pub last_data: Instant,
    received: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Limit {
    #[default]
    Idle,
    Busy,
    Window,
    Buffer,
}

impl Limits {
    /// Counts the time until `now`, in which `endpoint` had been as it was at the last call.
    pub fn advance(&mut self, now: Instant, endpoint: &Endpoint, starved: bool) {
        let span = now.since(self.since);
        self.since = now;
        match self.now {
            Limit::Idle => {}
            Limit::Busy => self.busy += span,
            Limit::Window => (self.busy, self.window) = (self.busy + span, self.window + span),
            Limit::Buffer => (self.busy, self.buffer) = (self.busy + span, self.buffer + span),
        }
        let (unsent, flight) = (endpoint.unsent(), endpoint.path().flight);
        let next = unsent.min(u64::from(endpoint.path().mss));
        self.now = match () {
            () if unsent == 0 && endpoint.octets_written() == endpoint.octets_acknowledged() => Limit::Idle,
            () if unsent > 0 && flight + next > endpoint.peer_windows().0 => Limit::Window,
            () if unsent == 0 && starved => Limit::Buffer,
            () => Limit::Busy,
        };
        let received = endpoint.stats().octets_delivered;
        if received != self.received || self.last_data == Instant::ZERO {
            (self.received, self.last_data) = (received, now);
        }
    }
}
