//! Middleboxes: agents at routers that look at the TCP segments that cross one of their links, and help or hinder. One file an agent.
//!
//! An agent belongs to a router and to one of its links, as a base station has a wireless one. It sees every undamaged TCP segment that
//! crosses the link, may change it or end its journey, and may send segments in the name of either end, at once or later. A damaged packet
//! passes untouched: its checksum tells a router as much as an end.

mod agent;
mod deadlines;
mod explicit_loss;
mod forward_count;
mod hop;
mod hop_notices;
mod i_tcp;
mod keeping;
mod m_tcp;
mod packet_control;
mod snack_snoop;
mod snoop;
mod strip;
mod survival;
mod table;
#[cfg(test)]
mod testing;
mod wtcp_proxy;

pub use crate::record::Held;
pub use agent::{Agent, Handed, Handling, Outbox, Outgoing, Side, Transit};

use crate::address::{DirectionId, LinkId, NodeId};
use crate::outage::Turns;
use std::collections::{BTreeMap, VecDeque};
use whyloss_transport::kit::{ArgumentError, Arguments, Part, Value};
use whyloss_transport::Instant;

/// All agents, by their names in scenarios.
pub static TABLE: &[Part<dyn Agent>] = &[
    explicit_loss::PART,
    forward_count::PART,
    hop_notices::PART,
    survival::PART,
    packet_control::PART,
    snoop::PART,
    snack_snoop::PART,
    i_tcp::PART,
    m_tcp::PART,
    wtcp_proxy::PART,
    strip::PART,
];

/// An agent at a router, for the TCP segments that cross one of the router's links. Damaged packets pass it untouched.
// `N` and `L` are what names a router and a link: their numbers, or their names in a file.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Middlebox"))]
pub struct Middlebox<N = NodeId, L = LinkId> {
    /// The router. `[path]` has `emulator`, `[dumbbell]` has `left` and `right`.
    pub at: N,
    /// The name of the link: of a base station the wireless one. It must end at the router.
    pub link: L,
    /// What it does.
    pub kind: MiddleboxKind,
    /// Parameters of its kind: `parameters.window = 100`.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "BTreeMap::is_empty"))]
    pub parameters: BTreeMap<String, Value>,
    /// When the agent is started again and has forgotten everything; never if nothing is said.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub restart: Vec<Instant>,
}

impl<N, L> Middlebox<N, L> {
    /// An agent with the usual values.
    pub const fn new(at: N, link: L, kind: MiddleboxKind) -> Self {
        Self { at, link, kind, parameters: BTreeMap::new(), restart: Vec::new() }
    }

    /// The same at a router and a link that are named in another way.
    pub fn placed<M, K>(&self, at: M, link: K) -> Middlebox<M, K> {
        Middlebox { at, link, kind: self.kind, parameters: self.parameters.clone(), restart: self.restart.clone() }
    }

    /// The machine, for any driver.
    pub fn agent(&self) -> Result<Box<dyn Agent>, ArgumentError> {
        Ok(self.kind.part().build(&Arguments::check(self.kind.part(), &self.parameters)?))
    }
}

/// What a middlebox does: a row of [`TABLE`].
#[derive(Clone, Copy, Debug)]
pub struct MiddleboxKind(&'static Part<dyn Agent>);

impl MiddleboxKind {
    /// The kind called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.name() == name)
    }

    /// Every kind that scenarios can name, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(Self)
    }

    /// What scenarios and tables call it.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Why it has nothing to do at an emulated link between stock hosts; `None` if it has, and emulated links have it.
    pub fn useless_on_packets(self) -> Option<&'static str> {
        match self.name() {
            "snoop" | "packet-control" | "i-tcp" | "m-tcp" | "wtcp-proxy" => None,
            "snack-snoop" => Some("stock hosts send no SNACKs for it to answer, and without them it is `snoop`"),
            "ceten" => Some("stock hosts do not read what it writes, and nobody measures for it what a real link damages"),
            "eln" | "syndrome" | "ack-hop" => Some("stock hosts do not read what it writes"),
            "strip" => Some("stock hosts send none of the options that it takes out"),
            _ => Some("emulated links do not have it"),
        }
    }

    /// Its row in the table: name, summary, source, parameters.
    pub const fn part(self) -> &'static Part<dyn Agent> {
        self.0
    }
}

impl PartialEq for MiddleboxKind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for MiddleboxKind {}

#[cfg(feature = "serde")]
impl serde::Serialize for MiddleboxKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for MiddleboxKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        use std::sync::LazyLock;
        static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| MiddleboxKind::all().map(MiddleboxKind::name).collect());
        let name = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| D::Error::unknown_variant(&name, &NAMES))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for MiddleboxKind {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MiddleboxKind".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let kinds = TABLE.iter().map(|part| {
            let description = format!("{} ({})", part.summary.trim_end_matches('.'), part.reference);
            schemars::json_schema!({ "const": part.name, "description": description, "type": "string" })
        });
        schemars::json_schema!({ "description": "What a middlebox does.", "oneOf": kinds.collect::<Vec<_>>() })
    }
}

/// A router with agents.
#[derive(Debug)]
pub(crate) struct Assisted {
    pub node: NodeId,
    /// In the order in which they were added: of one link, the last is the nearest to it.
    pub agents: Vec<Attached>,
    /// When the event of the agents' timers is due; `u64::MAX` if there is none.
    pub armed: u64,
}

impl Assisted {
    /// When something is due at one of the agents; `u64::MAX` if nothing is.
    pub fn next_at(&self) -> u64 {
        self.agents.iter().map(Attached::next_at).min().unwrap_or(u64::MAX)
    }
}

/// An agent and its link.
#[derive(Debug)]
pub(crate) struct Attached {
    /// The link's direction away from the router.
    pub outgoing: DirectionId,
    pub name: &'static str,
    /// Its place in the order in which agents were added, over all routers.
    pub number: usize,
    pub agent: Box<dyn Agent>,
    pub counts: Counts,
    restarts: VecDeque<Instant>,
    /// When the link away from the router goes down and comes up.
    turns: Turns,
}

/// What an agent has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub seen: u64,
    pub suppressed: u64,
    pub sent: u64,
    /// Flows that it has handed over to another agent, their octets, and the longest time in nanoseconds that these needed.
    pub moved_flows: u64,
    pub moved_octets: u64,
    pub longest_move: u64,
    /// The most of each that it held.
    pub peak: Held,
}

impl Attached {
    pub fn new(number: usize, outgoing: DirectionId, middlebox: &Middlebox, turns: Turns) -> Result<Self, ArgumentError> {
        let mut restarts: Vec<_> = middlebox.restart.clone();
        restarts.sort_unstable();
        let (name, agent, counts, restarts) =
            (middlebox.kind.name(), middlebox.agent()?, Counts::default(), VecDeque::from(restarts));
        Ok(Self { outgoing, name, number, agent, counts, restarts, turns })
    }

    /// Which side a segment comes from that came by one direction and passes on to the next; `None` if it does not cross the link.
    pub fn side(&self, came_by: DirectionId, next: DirectionId) -> Option<Side> {
        if next == self.outgoing {
            return Some(Side::Fixed);
        }
        (came_by == self.outgoing.peer()).then_some(Side::Mobile)
    }

    /// When something is due; `u64::MAX` if nothing is.
    fn next_at(&self) -> u64 {
        let restart = self.restarts.front().map_or(u64::MAX, |at| at.as_nanos());
        let timer = self.agent.next_timer().map_or(u64::MAX, Instant::as_nanos);
        let turn = self.turns.next().map_or(u64::MAX, Instant::as_nanos);
        restart.min(timer).min(turn)
    }

    /// Does what is due by `now`.
    pub fn advance(&mut self, now: u64, out: &mut Outbox) {
        let instant = Instant::from_nanos(now);
        while self.restarts.front().is_some_and(|at| *at <= instant) {
            self.restarts.pop_front();
            self.agent.restart();
        }
        if let Some(up) = self.turns.turn(instant) {
            self.agent.on_link(instant, up, out);
        }
        if self.agent.next_timer().is_some_and(|at| at <= instant) {
            self.agent.on_timer(instant, out);
        }
        self.note_held();
    }

    /// Notes how much the agent holds now.
    pub fn note_held(&mut self) {
        self.counts.peak = self.counts.peak.max(self.agent.held());
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{ack, at, data, DOWN, UP};
    use super::*;
    use crate::address::{EndpointId, FlowId};
    use whyloss_transport::segment::Flags;
    use whyloss_transport::{Segment, Seq};

    /// An agent that has seen three connections open, and data with holes and its acknowledgements on both ways.
    fn busy(kind: MiddleboxKind) -> Box<dyn Agent> {
        let mut agent = Middlebox::new((), (), kind).agent().expect("the usual values are allowed");
        for flow in 0..3 {
            let fixed = EndpointId::new(2 * flow);
            let mut cross = |side: Side, mut segment: Segment| {
                let transit = match side {
                    Side::Fixed => Transit { from: fixed, ..DOWN },
                    Side::Mobile => Transit { from: fixed.peer(), ..UP },
                };
                agent.pass(&transit, &mut segment, &mut Outbox::default());
            };
            let syn = Segment { seq: Seq(u32::MAX), flags: Flags::SYN, window: 900, ..Segment::default() };
            cross(Side::Fixed, syn.clone());
            cross(Side::Mobile, Segment { flags: Flags::SYN | Flags::ACK, ..syn });
            cross(Side::Fixed, ack(0));
            for n in [0, 1, 2, 4, 6] {
                cross(Side::Fixed, data(n));
                cross(Side::Mobile, data(n));
            }
            for n in [1, 2, 2, 2] {
                cross(Side::Mobile, ack(n));
                cross(Side::Fixed, ack(n));
            }
            cross(Side::Fixed, data(0));
        }
        agent
    }

    #[test]
    fn of_a_flow_that_is_forgotten_nothing_stays_and_of_the_others_everything() {
        for kind in MiddleboxKind::all() {
            let name = kind.name();
            let mut agent = busy(kind);
            let before = agent.held();
            let remembers = before.flows > 0;
            assert_eq!(before.flows, if remembers { 3 } else { 0 }, "{name}");
            agent.forget(FlowId::new(7));
            assert_eq!(
                (agent.held().flows, agent.held().octets),
                (before.flows, before.octets),
                "{name}: a flow that it does not know"
            );
            agent.forget(FlowId::new(1));
            let after = agent.held();
            assert_eq!(
                [after.flows, after.segments, after.octets],
                [before.flows, before.segments, before.octets].map(|n| n / 3 * 2),
                "{name}"
            );
            for flow in [0, 1, 2] {
                agent.forget(FlowId::new(flow));
            }
            let held = agent.held();
            assert_eq!((held.flows, held.segments, held.octets, agent.next_timer()), (0, 0, 0, None), "{name}");
            let mut out = Outbox::default();
            agent.on_timer(at(100_000), &mut out);
            agent.on_link(at(100_000), false, &mut out);
            assert_eq!(out.take().len(), 0, "{name}");
        }
    }

    #[test]
    fn what_goes_to_another_station_is_not_kept_and_means_the_same_there() {
        for kind in MiddleboxKind::all() {
            let name = kind.name();
            let (mut old, mut new) = (busy(kind), Middlebox::new((), (), kind).agent().unwrap());
            let mut moved = 0;
            for flow in (0..3).map(FlowId::new) {
                let Some(handed) = old.hand_over(flow) else { continue };
                moved += 1;
                assert!(handed.octets > 0, "{name}");
                new.expect(flow);
                new.take_over(at(5), flow, handed.state, &mut Outbox::default());
            }
            assert_eq!((old.held().flows, old.held().octets, old.next_timer()), (0, 0, None), "{name}");
            assert_eq!(new.held().flows, moved, "{name}");
            assert_eq!(moved > 0, ["i-tcp", "m-tcp"].contains(&name), "{name}: all else is soft state");
            // What is no state of its own, it does not take.
            new.take_over(at(6), FlowId::new(9), Box::new("nonsense"), &mut Outbox::default());
            assert_eq!(new.held().flows, moved, "{name}");
        }
    }
}
