//! Static routes: the first link of the shortest way to each host.

use crate::address::{DirectionId, HostId, LinkId, NodeId, Way};
use std::collections::VecDeque;

/// No way leads there.
const NOWHERE: DirectionId = DirectionId::new(u32::MAX as usize);

/// Next link directions. A node with one link needs no table; the others have a row with one entry a host.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    hosts: usize,
    nodes: Vec<Exit>,
    table: Vec<DirectionId>,
}

#[derive(Clone, Copy, Debug)]
enum Exit {
    /// The only link direction that leads away.
    Only(DirectionId),
    /// The row in the table.
    Row(usize),
}

impl Routes {
    /// Shortest ways by number of links; on a tie the link that was added first. `hosts` are the nodes that do not forward, `links`
    /// the links that lead anywhere, with their ends.
    pub fn new(nodes: usize, hosts: &[NodeId], links: impl Iterator<Item = (LinkId, [NodeId; 2])>) -> Self {
        let mut leaving = vec![Vec::new(); nodes];
        for (link, [a, b]) in links {
            leaving[a.index()].push((DirectionId::of(link, Way::Forward), b));
            leaving[b.index()].push((DirectionId::of(link, Way::Reverse), a));
        }
        let mut forwards = vec![true; nodes];
        for host in hosts {
            forwards[host.index()] = false;
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
        let mut distance = vec![u32::MAX; nodes];
        let mut queue = VecDeque::new();
        for (host, &node) in hosts.iter().enumerate() {
            distance.fill(u32::MAX);
            distance[node.index()] = 0;
            queue.push_back(node);
            while let Some(near) = queue.pop_front() {
                if near != node && !forwards[near.index()] {
                    continue;
                }
                for &(_, far) in &leaving[near.index()] {
                    if distance[far.index()] == u32::MAX {
                        distance[far.index()] = distance[near.index()] + 1;
                        queue.push_back(far);
                    }
                }
            }
            for (from, exit) in exits.iter().enumerate() {
                let Exit::Row(row) = exit else { continue };
                let nearer = |&(_, to): &(DirectionId, NodeId)| {
                    let passes = to == node || forwards[to.index()];
                    passes && distance[from] != u32::MAX && distance[to.index()].wrapping_add(1) == distance[from]
                };
                if let Some((direction, _)) = leaving[from].iter().copied().find(nearer) {
                    table[row * hosts.len() + host] = direction;
                }
            }
        }
        Self { hosts: hosts.len(), nodes: exits, table }
    }

    /// The link direction by which `node` sends to `host`, if a way leads there.
    #[inline]
    pub fn next(&self, node: NodeId, host: HostId) -> Option<DirectionId> {
        let next = match self.nodes[node.index()] {
            Exit::Only(direction) => direction,
            Exit::Row(row) => self.table[row * self.hosts + host.index()],
        };
        (next != NOWHERE).then_some(next)
    }
}
