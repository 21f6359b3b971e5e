//! Middleboxes: agents at routers that look at the TCP segments that cross them, and help. One file an agent.
//!
//! An agent belongs to a router and to one of its links, as a base station has a wireless one. It sees every undamaged TCP segment that
//! crosses the router, may change its options, and may send a control segment back to the segment's sender. A damaged packet passes
//! untouched: its checksum tells a router as much as an end.

mod agent;
mod explicit_loss;
mod forward_count;
mod hop_notices;
mod strip;
mod survival;

pub(crate) use agent::{Agent, Transit};

use crate::address::{DirectionId, EndpointId, NodeId};
use crate::direction::Direction;
use explicit_loss::ExplicitLosses;
use forward_count::ForwardCount;
use hop_notices::HopNotices;
use strip::Strip;
use survival::Survival;

/// What an agent at a router does for the flows that cross its link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Middlebox {
    /// Marks acknowledgements that ask for data which the link has lost (Balakrishnan & Katz 1998).
    ExplicitLoss,
    /// Numbers the data segments that leave over the link, for the receiver (Chen et al. 2002).
    ForwardCount,
    /// Acknowledges to the sender what came over the link and what is about to leave over it (Cobb & Agrawal 1995).
    HopNotices,
    /// Multiplies the probability to survive the link into data that crosses it (Krishnan et al. 2004). It is what the link layer measured
    /// over the last `window` packets in the direction of the data: one less the share of those that were damaged or erased.
    Survival {
        /// Packets of the direction of the data over which the link layer measures, at least 1.
        window: u32,
    },
    /// Takes all experimental options (kind 253) out of what crosses the link, as firewalls do.
    StripOptions,
}

impl Middlebox {
    /// One of each kind, with the usual values.
    pub const ALL: &'static [Self] =
        &[Self::ExplicitLoss, Self::ForwardCount, Self::HopNotices, Self::Survival { window: 1000 }, Self::StripOptions];

    pub(crate) fn agent(self) -> Box<dyn Agent> {
        match self {
            Self::ExplicitLoss => Box::<ExplicitLosses>::default(),
            Self::ForwardCount => Box::<ForwardCount>::default(),
            Self::HopNotices => Box::new(HopNotices),
            Self::Survival { .. } => Box::new(Survival),
            Self::StripOptions => Box::new(Strip),
        }
    }
}

/// A router with agents.
#[derive(Debug)]
pub(crate) struct Assisted {
    pub node: NodeId,
    pub agents: Vec<Attached>,
}

/// An agent and its link.
#[derive(Debug)]
pub(crate) struct Attached {
    /// The link's direction away from the router.
    pub outgoing: DirectionId,
    pub agent: Box<dyn Agent>,
}

impl Attached {
    /// How a segment of `from` that came by one direction passes on to the next, seen from the agent's link.
    pub fn transit(&self, from: EndpointId, came_by: DirectionId, next: DirectionId, directions: &[Direction]) -> Transit {
        let (arrived, leaves) = (came_by == self.outgoing.peer(), next == self.outgoing);
        let over = if arrived { came_by } else { self.outgoing };
        let meter = directions[over.index()].meter.as_ref().filter(|_| arrived || leaves);
        Transit { from, arrived, leaves, corruption: meter.map_or(0.0, |meter| meter.share()) }
    }
}
