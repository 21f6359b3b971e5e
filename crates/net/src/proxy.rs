//! Two connections spliced into one path: what arrives on one leaves on the other.

use crate::host::Application;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use whyloss_transport::scheme::Selection;
use whyloss_transport::stack::{ConnectionId, Notice, Stack};
use whyloss_transport::tcp::{Closing, Command, Config, Endpoint, Event, Stats};
use whyloss_transport::Instant;

/// Terminates every connection that a listener accepts and carries its data on over a connection of its own to a fixed target.
#[derive(Debug)]
pub struct Proxy {
    target: SocketAddr,
    config: Config,
    selection: Selection,
    ends: BTreeMap<ConnectionId, End>,
    /// Pairs to serve before the proxy is done; `None`: for ever.
    limit: Option<u64>,
    outcome: ProxyOutcome,
}

#[derive(Clone, Copy, Debug)]
struct End {
    other: ConnectionId,
    /// The peer of this end has sent its FIN.
    drained: bool,
    /// That FIN has been passed on to the other end.
    passed: bool,
    /// Whether this end was accepted, not opened.
    accepted: bool,
    /// How this end closed. It can still hold data that the other end has no room for.
    closing: Option<Closing>,
}

impl End {
    fn new(other: ConnectionId, accepted: bool) -> Self {
        Self { other, drained: false, passed: false, accepted, closing: None }
    }
}

/// What a proxy did.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProxyOutcome {
    /// Number of connections accepted.
    pub accepted: u64,
    /// Pairs of which both ends are closed.
    pub finished: u64,
    /// Ends that were not closed in order.
    pub broken: u64,
    /// Octets from those who connected to the target.
    pub forward: u64,
    /// Octets from the target to those who connected.
    pub backward: u64,
    /// Segments with data sent more than once, on all ends.
    pub retransmissions: u64,
    /// Damaged segments received, on all ends.
    pub damaged_received: u64,
}

impl Proxy {
    /// A proxy to `target` whose own connections use `config` and `selection`; it is done after `limit` connections.
    pub fn new(target: SocketAddr, config: Config, selection: Selection, limit: Option<u64>) -> Self {
        Self { target, config, selection, ends: BTreeMap::new(), limit, outcome: ProxyOutcome::default() }
    }

    /// What it did so far.
    pub fn outcome(&self) -> &ProxyOutcome {
        &self.outcome
    }

    fn accept(&mut self, now: Instant, stack: &mut Stack, id: ConnectionId) {
        self.outcome.accepted += 1;
        let Ok(out) = stack.connect(now, self.target, self.config.clone(), &self.selection) else {
            self.outcome.broken += 1;
            stack.command(now, id, Command::Abort);
            stack.release(id);
            return;
        };
        self.ends.insert(id, End::new(out, true));
        self.ends.insert(out, End::new(id, false));
    }

    /// Moves what has arrived at `from` to its other end, as far as that has room.
    fn pump(&mut self, now: Instant, stack: &mut Stack, from: ConnectionId) {
        let Some(end) = self.ends.get_mut(&from) else { return };
        // Without the other end, data has nowhere to go.
        let Some(mut space) = stack.endpoint(end.other).map(Endpoint::send_space) else { return };
        while space > 0 {
            let Some(data) = stack.read(now, from, space as usize) else {
                if end.drained && !end.passed {
                    end.passed = true;
                    stack.command(now, end.other, Command::Close);
                }
                return;
            };
            let length = data.len() as u64;
            space -= length;
            *(if end.accepted { &mut self.outcome.forward } else { &mut self.outcome.backward }) += length;
            stack.command(now, end.other, Command::Send(data));
        }
    }

    /// Lets go of an end that is closed and has nothing left for the other end.
    fn retire(&mut self, now: Instant, stack: &mut Stack, id: ConnectionId) {
        let Some(End { other, passed, closing: Some(closing), .. }) = self.ends.get(&id).copied() else { return };
        if closing == Closing::Normal && !passed && self.ends.contains_key(&other) {
            return;
        }
        self.ends.remove(&id);
        let Stats { retransmissions, damaged_received, .. } = stack.endpoint(id).map(|e| *e.stats()).unwrap_or_default();
        self.outcome.retransmissions += retransmissions;
        self.outcome.damaged_received += damaged_received;
        stack.release(id);
        if closing != Closing::Normal {
            self.outcome.broken += 1;
            stack.command(now, other, Command::Abort);
        }
        if !self.ends.contains_key(&other) {
            self.outcome.finished += 1;
        }
    }
}

impl Application for Proxy {
    fn notice(&mut self, now: Instant, stack: &mut Stack, notice: Notice) {
        let (id, event) = match notice {
            Notice::Accepted(id) => return self.accept(now, stack, id),
            Notice::Event(id, event) => (id, event),
        };
        let Some(end) = self.ends.get_mut(&id) else { return };
        match event {
            Event::PeerClosed => end.drained = true,
            Event::Closed(closing) => end.closing = Some(closing),
            _ => {}
        }
        let other = end.other;
        self.pump(now, stack, id);
        self.pump(now, stack, other);
        self.retire(now, stack, id);
        self.retire(now, stack, other);
    }

    fn is_done(&self, _stack: &Stack) -> bool {
        self.limit.is_some_and(|limit| self.outcome.finished >= limit)
    }
}
