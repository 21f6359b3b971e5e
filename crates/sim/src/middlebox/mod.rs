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

use crate::address::{DirectionId, EndpointId, LinkId, NodeId};
use crate::direction::Direction;
use crate::error::Flaw;
use explicit_loss::ExplicitLosses;
use forward_count::ForwardCount;
use hop_notices::HopNotices;
use strip::Strip;
use survival::Survival;

/// An agent at a router, for the TCP segments that cross one of the router's links. Damaged packets pass it untouched.
// `N` and `L` are what names a router and a link: their numbers, or their names in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Middlebox"))]
pub struct Middlebox<N = NodeId, L = LinkId> {
    /// The router. `[path]` has `emulator`, `[dumbbell]` has `left` and `right`.
    pub at: N,
    /// The name of the link: of a base station the wireless one. It must end at the router.
    pub link: L,
    /// What it does.
    pub kind: MiddleboxKind,
    /// `ceten` only: packets over which the link's rate of corruption is measured; 1000 if nothing is said.
    // In the direction of the data.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub window: Option<u32>,
}

/// What a middlebox does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MiddleboxKind {
    /// Marks acknowledgements that ask for data which the link has lost; the differentiator `eln` hears it (Balakrishnan & Katz 1998).
    Eln,
    /// Numbers the data segments that leave over the link; the differentiator `syndrome` reads the numbers (Chen et al. 2002).
    Syndrome,
    /// Acknowledges to the sender what came over the link and what is about to leave over it; the differentiator `ack-hop` hears it (Cobb &
    /// Agrawal 1995).
    AckHop,
    /// Multiplies the probability to survive the link into data that crosses it; the differentiator `ceten` reads it (Krishnan et al. 2004).
    // It is what the link layer measured: one less the share of packets that were damaged or erased.
    Ceten,
    /// Takes all experimental TCP options (kind 253) out of what crosses the link, as firewalls do.
    Strip,
}

/// Packets over which an agent measures if nothing is said.
const WINDOW: u32 = 1000;

impl<N, L> Middlebox<N, L> {
    /// An agent with the usual values.
    pub const fn new(at: N, link: L, kind: MiddleboxKind) -> Self {
        Self { at, link, kind, window: None }
    }

    /// The same at a router and a link that are named in another way.
    pub const fn placed<M, K>(&self, at: M, link: K) -> Middlebox<M, K> {
        Middlebox { at, link, kind: self.kind, window: self.window }
    }

    /// Packets over which it has the link measured, if it needs that.
    pub(crate) fn measured_over(&self) -> Option<u32> {
        (self.kind == MiddleboxKind::Ceten).then(|| self.window.unwrap_or(WINDOW))
    }

    /// What makes no sense in it, apart from its place.
    pub fn flaw(&self) -> Option<Flaw> {
        (self.window == Some(0)).then(|| ("window", "0".to_owned(), "1 packet or more"))
    }
}

impl MiddleboxKind {
    /// One of each kind.
    pub const ALL: &'static [Self] = &[Self::Eln, Self::Syndrome, Self::AckHop, Self::Ceten, Self::Strip];

    pub(crate) fn agent(self) -> Box<dyn Agent> {
        match self {
            Self::Eln => Box::<ExplicitLosses>::default(),
            Self::Syndrome => Box::<ForwardCount>::default(),
            Self::AckHop => Box::new(HopNotices),
            Self::Ceten => Box::new(Survival),
            Self::Strip => Box::new(Strip),
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
