//! A network written out: nodes, links, and what is sent.

use crate::error::{nearest, InputError};
use crate::flows::FlowConfig;
use crate::format::{Input, Traffic};
use crate::ways::Way;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use whyloss_sim::Move;

/// A network written out.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Hosts and routers in the order of the scenario.
    pub nodes: Vec<NetworkNode>,
    /// Links in the order of the scenario.
    pub links: Vec<Link>,
    /// Agents at routers.
    pub middleboxes: Vec<Placed>,
    /// The configurations of the entries in the scenario's list of flows.
    pub(crate) flows: Vec<FlowConfig>,
    /// One entry for each thing that is sent: a TCP flow, a striped transfer, a stream of datagrams.
    pub transfers: Vec<Transfer>,
    /// Positions of the nodes by name.
    pub(crate) named: BTreeMap<String, usize>,
    /// Positions of the hosts of a kind, if there are several of it, by its name.
    pub(crate) kinds: BTreeMap<String, Range<usize>>,
}

/// A host or router.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkNode {
    /// Name, unique among the nodes.
    pub name: String,
    /// Whether flows can start and end here.
    pub host: bool,
    /// Its place in metres, if it is a radio station.
    pub position: Option<[f64; 2]>,
    /// What happens to packets that have arrived at a host.
    pub input: Input,
    /// How a host moves from one of its links to another, by position in [`Network::links`].
    pub moves: Vec<Move<usize>>,
}

/// A link between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Name, unique among the links.
    pub name: String,
    /// Its ends, by position in [`Network::nodes`].
    pub ends: [usize; 2],
    /// Forward and reverse, shared with links that are alike; `None` through the air.
    pub ways: Option<Arc<[Way; 2]>>,
}

/// A middlebox in its place: the router by position in [`Network::nodes`], the link by position in [`Network::links`].
pub type Placed = whyloss_sim::Middlebox<usize, usize>;

/// Something that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Its name, unique in the scenario.
    pub name: String,
    /// Position of its entry in the scenario's list of flows.
    pub flow: usize,
    /// The sending host, by position in [`Network::nodes`].
    pub from: usize,
    /// The receiving host, likewise.
    pub to: usize,
    /// The side that it is on where main traffic is compared with cross traffic.
    pub traffic: Option<Traffic>,
}

impl Network {
    /// The nodes with a radio, and their places in metres.
    pub fn stations(&self) -> impl Iterator<Item = (usize, [f64; 2])> + '_ {
        self.nodes.iter().enumerate().filter_map(|(number, node)| Some((number, node.position?)))
    }

    /// The node called `name` that `admit` takes.
    pub(crate) fn find(&self, name: &str, admit: fn(&NetworkNode) -> bool) -> Result<usize, InputError> {
        let found = self.named.get(name).copied();
        found.filter(|&node| admit(&self.nodes[node])).ok_or_else(|| {
            let names: Vec<_> = self.nodes.iter().filter(|node| admit(node)).map(|node| node.name.as_str()).collect();
            let problem = if found.is_some() { "a router, not a host" } else { "no such node" };
            InputError::new(problem)
                .found(format!("\"{name}\""))
                .nearest(nearest(name, names.iter().copied()))
                .allowed(if names.is_empty() { "a host, but there is none".to_owned() } else { names.join(", ") })
        })
    }

    /// Which hosts packets find a way between; hosts do not forward.
    pub(crate) fn reach(&self) -> Reach {
        let mut neighbours = vec![Vec::new(); self.nodes.len()];
        for link in &self.links {
            for (here, there) in [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])] {
                neighbours[here].push(there);
            }
        }
        let mut islands = vec![None; self.nodes.len()];
        for start in (0..self.nodes.len()).filter(|&node| !self.nodes[node].host) {
            let mut open = if islands[start].is_none() { vec![start] } else { Vec::new() };
            while let Some(node) = open.pop() {
                if !self.nodes[node].host && islands[node].replace(start).is_none() {
                    open.extend(&neighbours[node]);
                }
            }
        }
        Reach { neighbours, islands }
    }
}

/// Which hosts packets find a way between.
pub(crate) struct Reach {
    neighbours: Vec<Vec<usize>>,
    /// For each router, one of those that it is joined with.
    islands: Vec<Option<usize>>,
}

impl Reach {
    /// Whether packets find a way between two hosts.
    pub(crate) fn between(&self, from: usize, to: usize) -> bool {
        let joined = |node: &usize| self.islands[*node].is_some_and(|island| self.touches(to, island));
        self.neighbours[from].iter().any(|node| *node == to || joined(node))
    }

    fn touches(&self, host: usize, island: usize) -> bool {
        self.neighbours[host].iter().any(|node| self.islands[*node] == Some(island))
    }
}
