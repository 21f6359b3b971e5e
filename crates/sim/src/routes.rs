//! Static routes: the first link of the shortest way to each host.

use crate::build::{Link, Node};
use std::collections::VecDeque;

/// No way leads there.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Next link directions. A node with one link needs no table; the others have a row with one entry a host.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    hosts: usize,
    nodes: Vec<Exit>,
    table: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Exit {
    /// The only link direction that leads away.
    Only(u32),
    /// The row in the table.
    Row(usize),
}

impl Routes {
    /// Shortest ways by number of links; on a tie the link that was added first. Hosts do not forward.
    pub fn new(nodes: &[Node], links: &[Link], hosts: &[u32]) -> Self {
        // Direction 2k leads from the first end of link k to the second, direction 2k+1 back.
        let mut leaving = vec![Vec::new(); nodes.len()];
        for (index, link) in links.iter().enumerate() {
            let [a, b] = link.ends.map(|node| node.0);
            leaving[a as usize].push((2 * index as u32, b));
            leaving[b as usize].push((2 * index as u32 + 1, a));
        }
        let mut rows = 0;
        let exits = leaving.iter().map(|directions| match directions[..] {
            [] => Exit::Only(NOWHERE),
            [(direction, _)] => Exit::Only(direction),
            _ => {
                rows += 1;
                Exit::Row(rows - 1)
            }
        });
        let exits: Vec<_> = exits.collect();
        let mut table = vec![NOWHERE; rows * hosts.len()];
        let mut distance = vec![u32::MAX; nodes.len()];
        let mut queue = VecDeque::new();
        for (host, &node) in hosts.iter().enumerate() {
            distance.fill(u32::MAX);
            distance[node as usize] = 0;
            queue.push_back(node);
            while let Some(near) = queue.pop_front() {
                if near != node && nodes[near as usize].host {
                    continue;
                }
                for &(_, far) in &leaving[near as usize] {
                    if distance[far as usize] == u32::MAX {
                        distance[far as usize] = distance[near as usize] + 1;
                        queue.push_back(far);
                    }
                }
            }
            for (from, exit) in exits.iter().enumerate() {
                let Exit::Row(row) = exit else { continue };
                let nearer = |&(_, to): &(u32, u32)| {
                    let forwards = to == node || !nodes[to as usize].host;
                    forwards && distance[from] != u32::MAX && distance[to as usize].wrapping_add(1) == distance[from]
                };
                if let Some((direction, _)) = leaving[from].iter().copied().find(nearer) {
                    table[row * hosts.len() + host] = direction;
                }
            }
        }
        Self { hosts: hosts.len(), nodes: exits, table }
    }

    /// The link direction by which `node` sends to `host`, or [`NOWHERE`].
    pub fn next(&self, node: u32, host: u32) -> u32 {
        match self.nodes[node as usize] {
            Exit::Only(direction) => direction,
            Exit::Row(row) => self.table[row * self.hosts + host as usize],
        }
    }
}
