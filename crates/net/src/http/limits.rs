//! What one client, one address and all of them together may take of a server.

use std::collections::BTreeMap;
use std::net::IpAddr;
use whyloss_transport::Duration;

/// The limits of a server. Sizes are octets.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time. When they are used up, the one that has waited longest for a request makes way for a new one. Those that are over and
    /// wait in TIME-WAIT count, but make way first, the oldest before the others.
    pub connections: usize,
    /// Of those, from one address (IPv6: from one /64). Further ones are reset, but for those in TIME-WAIT, which make way.
    pub connections_by_address: usize,
    /// Requests that one connection may make; it is closed after the last.
    pub requests: usize,
    /// Responses that are held for one connection, sent or not, until they are acknowledged.
    pub held: u64,
    /// The same for all connections from one address.
    pub held_by_address: u64,
    /// The same for all connections.
    pub held_in_all: u64,
    /// Time that a request may take, from the connection's beginning or the request's first octet to the end of its head.
    pub request_time: Duration,
    /// Time that a connection may be without a request, and in which a client has to acknowledge [`Limits::progress`].
    pub patience: Duration,
    /// Octets of a response that a client has to acknowledge in [`Limits::patience`], unless less is left.
    pub progress: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            connections_by_address: 128,
            requests: 256,
            held: 4 << 20,
            held_by_address: 64 << 20,
            held_in_all: 256 << 20,
            request_time: Duration::from_secs(20),
            patience: Duration::from_secs(60),
            progress: 4096,
        }
    }
}

/// What is in use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Use {
    pub connections: usize,
    pub held: u64,
}

/// What is in use, by address and in all.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    limits: Limits,
    all: Use,
    by_address: BTreeMap<IpAddr, Use>,
}

impl Usage {
    pub const fn new(limits: Limits) -> Self {
        Self { limits, all: Use { connections: 0, held: 0 }, by_address: BTreeMap::new() }
    }

    /// Whether one more connection from `address` is within its limit.
    pub fn admits(&self, address: IpAddr) -> bool {
        self.of(address).connections < self.limits.connections_by_address
    }

    /// Open connections from `address`.
    pub fn connections(&self, address: IpAddr) -> usize {
        self.of(address).connections
    }

    /// Whether the connections are used up.
    pub const fn is_full(&self) -> bool {
        self.all.connections >= self.limits.connections
    }

    pub fn enter(&mut self, address: IpAddr) {
        self.all.connections += 1;
        self.by_address.entry(network(address)).or_default().connections += 1;
    }

    pub fn leave(&mut self, address: IpAddr) {
        self.all.connections = self.all.connections.saturating_sub(1);
        if let Some(own) = self.by_address.get_mut(&network(address)) {
            own.connections = own.connections.saturating_sub(1);
            if own.connections == 0 {
                self.by_address.remove(&network(address));
            }
        }
    }

    /// The fair part of a connection from `address` in what may be held.
    pub fn share(&self, address: IpAddr) -> u64 {
        let part = |limit: u64, connections: usize| limit / connections.max(1) as u64;
        let own = part(self.limits.held_by_address, self.of(address).connections);
        self.limits.held.min(own).min(part(self.limits.held_in_all, self.all.connections)).max(1)
    }

    /// How much more may be held for `address`.
    pub fn room(&self, address: IpAddr) -> u64 {
        let own = self.limits.held_by_address.saturating_sub(self.of(address).held);
        own.min(self.limits.held_in_all.saturating_sub(self.all.held))
    }

    /// `octets` more are held for `address`.
    pub fn hold(&mut self, address: IpAddr, octets: u64) {
        self.all.held += octets;
        self.by_address.entry(network(address)).or_default().held += octets;
    }

    /// Nothing is held, until it is said anew.
    pub fn recount(&mut self) {
        self.all.held = 0;
        self.by_address.values_mut().for_each(|own| own.held = 0);
    }

    fn of(&self, address: IpAddr) -> Use {
        self.by_address.get(&network(address)).copied().unwrap_or_default()
    }
}

/// The address, or of an IPv6 address the first half: who has one has all of these.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => (u128::from(v6) >> 64 << 64).to_be_bytes().into(),
    }
}
