//! The connections that cross an agent's link, by number.

use std::collections::btree_map::{BTreeMap, Entry};
use std::net::IpAddr;
use whyloss_sim::middlebox::Side;
use whyloss_sim::{EndpointId, FlowId, Way};
use whyloss_transport::wire::ip;

/// Flows that are known; the one that was quiet for longest makes room. As many as agents remember if nothing else is said.
pub(super) const MOST_FLOWS: usize = 1024;
/// Flows of one address that are known, so that one host does not push out those of all others.
pub(super) const MOST_BY_ADDRESS: usize = 256;
/// The hop limit of a packet that is made before any has come from the address in whose name it is made.
const HOP_LIMIT: u8 = 64;

/// Addresses and ports of a connection: of the host on the agent's side, and of that behind its link.
pub(super) type Key = [(IpAddr, u16); 2];

/// The connection of a packet with these ends that comes from `side`.
pub(super) fn key(from: (IpAddr, u16), to: (IpAddr, u16), side: Side) -> Key {
    if side == Side::Fixed {
        [from, to]
    } else {
        [to, from]
    }
}

/// The way of what comes from `side`.
pub(super) fn way(side: Side) -> Way {
    if side == Side::Fixed {
        Way::Forward
    } else {
        Way::Reverse
    }
}

/// A connection that crosses the link.
#[derive(Debug)]
pub(super) struct Known {
    pub id: FlowId,
    used: u64,
    /// Hop limits with which packets of both hosts came last.
    hop_limits: [u8; 2],
    /// What the agent remembers of it.
    pub segments: u64,
}

/// Connections by their ends.
#[derive(Debug, Default)]
pub(super) struct Flows {
    pub known: BTreeMap<Key, Known>,
    pub ends: BTreeMap<FlowId, Key>,
    /// Flows by when they were used last.
    used: BTreeMap<u64, FlowId>,
    /// How many flows each address has, on either side.
    shares: [BTreeMap<IpAddr, usize>; 2],
    /// The number of the next flow.
    next: usize,
    uses: u64,
}

impl Flows {
    /// The number of a flow, if it is known.
    pub fn id(&self, key: &Key) -> Option<FlowId> {
        self.known.get(key).map(|known| known.id)
    }

    /// Which flows have to go before that of `key` has room: those that were quiet for longest among the ones that `may_go`. `None` if there
    /// is no room for it.
    pub fn in_the_way(&self, key: &Key, may_go: impl Fn(FlowId) -> bool) -> Option<Vec<FlowId>> {
        let mut gone: Vec<FlowId> = Vec::new();
        if self.known.contains_key(key) {
            return Some(gone);
        }
        for side in [0, 1] {
            let shares = |flow: FlowId| self.ends[&flow][side].0 == key[side].0;
            let share = self.shares[side].get(&key[side].0).copied().unwrap_or_default();
            if share - gone.iter().filter(|flow| shares(**flow)).count() >= MOST_BY_ADDRESS {
                gone.push(self.oldest(|flow| shares(flow) && !gone.contains(&flow) && may_go(flow))?);
            }
        }
        if self.known.len() - gone.len() >= MOST_FLOWS {
            gone.push(self.oldest(may_go)?);
        }
        Some(gone)
    }

    /// The flow that was quiet for longest of those that `counts` picks.
    fn oldest(&self, counts: impl Fn(FlowId) -> bool) -> Option<FlowId> {
        self.used.values().copied().find(|flow| counts(*flow))
    }

    /// The number of a flow of which a packet has come.
    pub fn meet(&mut self, key: Key, way: Way, hop_limit: u8) -> FlowId {
        self.uses += 1;
        let Self { known, ends, next, uses, used, shares } = self;
        let known = known.entry(key).or_insert_with(|| {
            let id = FlowId::new(*next);
            // An endpoint's number has one bit more than that of its flow, and 32 in all.
            *next = (*next + 1) % (1 << 31);
            ends.insert(id, key);
            for (share, (address, _)) in shares.iter_mut().zip(key) {
                *share.entry(address).or_default() += 1;
            }
            Known { id, used: 0, hop_limits: [HOP_LIMIT; 2], segments: 0 }
        });
        used.remove(&known.used);
        used.insert(*uses, known.id);
        known.used = *uses;
        known.hop_limits[usize::from(way == Way::Reverse)] = hop_limit;
        known.id
    }

    pub fn remove(&mut self, id: FlowId) {
        let Some(key) = self.ends.remove(&id) else { return };
        if let Some(known) = self.known.remove(&key) {
            self.used.remove(&known.used);
        }
        for (share, (address, _)) in self.shares.iter_mut().zip(key) {
            if let Entry::Occupied(mut count) = share.entry(address) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
    }

    /// Forgets all, but not which numbers have been used.
    pub fn clear(&mut self) {
        *self = Self { next: self.next, ..Self::default() };
    }

    /// The IP header of a packet in the name of `from`.
    pub fn header(&self, from: EndpointId) -> Option<ip::Header> {
        let key = self.ends.get(&from.flow())?;
        let own = usize::from(from.way() == Way::Reverse);
        let addresses = ip::Addresses::new(key[own].0, key[1 - own].0)?;
        Some(ip::Header { addresses, hop_limit: self.known.get(key)?.hop_limits[own] })
    }
}
