//! Reading what packets will touch, before they do.
//!
//! In a large network nothing that a packet touches is in a cache, and each step waits for the one before. Reading of many packets side
//! by side what they will touch waits once for all. What is read does not matter, and nothing changes.

use super::Network;
use crate::address::{DirectionId, NodeId};
use crate::direction::Line;
use std::hint::black_box;

/// Packets of a link direction that are looked at together; a power of two.
pub(super) const TOGETHER: u64 = 16;

impl Network {
    /// Reads in each cache line of a direction.
    #[inline]
    pub fn touch(&self, id: DirectionId) -> u64 {
        let direction = &self.directions[id.index()];
        let line = if let Line::Wire(wire) = &direction.line { wire.touch() } else { 0 };
        line ^ direction.traffic.offered ^ direction.traffic.max_octets
    }

    /// Looks at where the packets that arrive next at the end of a direction, a router, will go. It is for links on which many packets are
    /// under way: the events know only the first.
    #[inline(never)]
    pub(super) fn look_along(&self, id: DirectionId, router: NodeId) {
        let Line::Wire(wire) = &self.directions[id.index()].line else { return };
        let exits = wire.under_way().take(TOGETHER as usize).filter_map(|entry| self.routes.next(router, entry.host()));
        black_box(exits.fold(0, |seen, exit| seen ^ self.touch(exit)));
    }
}
