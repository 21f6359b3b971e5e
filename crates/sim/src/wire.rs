//! The wires of a network by themselves: what those need who put them between real hosts.

use crate::middlebox::Middlebox;
use crate::shape::Stretch;

/// A host or router at the ends of wires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireNode {
    /// Name in the scenario.
    pub name: String,
    /// Whether it forwards packets; else it is a host.
    pub router: bool,
}

/// A wire between two nodes.
#[derive(Clone, Debug, Default)]
pub struct WireLink {
    /// Name in the scenario.
    pub name: String,
    /// Its ends, by position among the nodes.
    pub ends: [usize; 2],
    /// What packets cross from the first end to the second, one stretch after the other, and back.
    pub ways: [Vec<Stretch>; 2],
    /// The agent at one of its ends, or between its stretches.
    pub agent: Option<WireAgent>,
}

/// An agent and its place at a wire.
#[derive(Clone, Debug, PartialEq)]
pub struct WireAgent {
    /// What it does, with its router and its link as the network of the scenario numbers them; to the wire these do not matter.
    pub middlebox: Middlebox<usize, usize>,
    /// The way in which packets leave the agent over its link: 0 or 1.
    pub away: usize,
    /// Its link among the stretches of that way.
    pub hop: usize,
}
