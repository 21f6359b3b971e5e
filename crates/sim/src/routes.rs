//! Static routes: the first link of the shortest way to each host.

use crate::address::{DirectionId, HostId, LinkId, NodeId, Way};
use std::collections::VecDeque;

/// No way leads there.
const NOWHERE: DirectionId = DirectionId::new(u32::MAX as usize);

/// Not a node.
const NOBODY: NodeId = NodeId::new(u32::MAX as usize);

/// Next link directions, in memory that grows with the hosts and not with their square: hosts with one link to the same router are
/// one target, and a node with one link needs no table.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    nodes: Vec<Exit>,
    hosts: Vec<Goal>,
    targets: usize,
    /// A row for each node with several links, with an entry for each target.
    table: Vec<DirectionId>,
}

#[derive(Clone, Copy, Debug)]
enum Exit {
    /// The only link direction that leads away.
    Only(DirectionId),
    /// The row in the table.
    Row(usize),
}

/// How a host is reached.
#[derive(Clone, Copy, Debug)]
struct Goal {
    /// The entry in a row of the table: its router's, or its own.
    target: usize,
    /// Its router, if it has one link only.
    router: NodeId,
    /// The link direction by which that reaches it.
    last: DirectionId,
}

type Leaving = Vec<Vec<(DirectionId, NodeId)>>;

impl Routes {
    /// Shortest ways by number of links; on a tie the link that was added first. `hosts` are the nodes that do not forward, `links`
    /// the links that lead anywhere, with their ends.
    pub fn new(nodes: usize, hosts: &[NodeId], links: impl Iterator<Item = (LinkId, [NodeId; 2])>) -> Self {
        let mut leaving: Leaving = vec![Vec::new(); nodes];
        for (link, [a, b]) in links {
            leaving[a.index()].push((DirectionId::of(link, Way::Forward), b));
            leaving[b.index()].push((DirectionId::of(link, Way::Reverse), a));
        }
        let mut forwards = vec![true; nodes];
        for host in hosts {
            forwards[host.index()] = false;
        }
        let mut rows = Vec::new();
        let mut exits = Vec::with_capacity(nodes);
        for (node, directions) in leaving.iter().enumerate() {
            exits.push(match directions[..] {
                [] => Exit::Only(NOWHERE),
                [(direction, _)] => Exit::Only(direction),
                _ => {
                    rows.push(NodeId::new(node));
                    Exit::Row(rows.len() - 1)
                }
            });
        }
        let mut targets = Vec::new();
        let mut target_of = vec![None; nodes];
        let goals = hosts.iter().map(|&host| {
            let (router, last) = match leaving[host.index()][..] {
                [(direction, router)] if forwards[router.index()] => (router, direction.peer()),
                _ => (NOBODY, NOWHERE),
            };
            let towards = if router == NOBODY { host } else { router };
            let target = *target_of[towards.index()].get_or_insert_with(|| {
                targets.push(towards);
                targets.len() - 1
            });
            Goal { target, router, last }
        });
        let hosts: Vec<_> = goals.collect();
        // No way leads through a host, so those with one link are in the way of a search.
        let dead_end =
            |node: NodeId| !forwards[node.index()] && leaving[node.index()].len() == 1 && target_of[node.index()].is_none();
        let core: Leaving =
            leaving.iter().map(|directions| directions.iter().copied().filter(|&(_, to)| !dead_end(to)).collect()).collect();
        let mut table = vec![NOWHERE; rows.len() * targets.len()];
        let mut distance = vec![u32::MAX; nodes];
        let mut reached = VecDeque::new();
        let mut met = Vec::new();
        for (target, &node) in targets.iter().enumerate() {
            distance[node.index()] = 0;
            reached.push_back(node);
            while let Some(near) = reached.pop_front() {
                met.push(near);
                if near != node && !forwards[near.index()] {
                    continue;
                }
                for &(_, far) in &core[near.index()] {
                    if distance[far.index()] == u32::MAX {
                        distance[far.index()] = distance[near.index()] + 1;
                        reached.push_back(far);
                    }
                }
            }
            for &from in &met {
                let Exit::Row(row) = exits[from.index()] else { continue };
                let nearer = |&(_, to): &(DirectionId, NodeId)| {
                    let passes = to == node || forwards[to.index()];
                    passes && distance[to.index()].wrapping_add(1) == distance[from.index()]
                };
                if let Some((direction, _)) = core[from.index()].iter().copied().find(nearer) {
                    table[row * targets.len() + target] = direction;
                }
            }
            for node in met.drain(..) {
                distance[node.index()] = u32::MAX;
            }
        }
        Self { nodes: exits, hosts, targets: targets.len(), table }
    }

    /// The link direction by which `node` sends to `host`, if a way leads there.
    #[inline]
    pub fn next(&self, node: NodeId, host: HostId) -> Option<DirectionId> {
        let next = match self.nodes[node.index()] {
            Exit::Only(direction) => direction,
            Exit::Row(row) => {
                let goal = &self.hosts[host.index()];
                if goal.router == node {
                    goal.last
                } else {
                    self.table[row * self.targets + goal.target]
                }
            }
        };
        (next != NOWHERE).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A search of all nodes for each host: what [`Routes`] must agree with.
    fn by_searching(nodes: usize, hosts: &[NodeId], links: &[[NodeId; 2]]) -> Vec<Vec<Option<DirectionId>>> {
        let mut leaving: Leaving = vec![Vec::new(); nodes];
        for (number, [a, b]) in links.iter().enumerate() {
            leaving[a.index()].push((DirectionId::of(LinkId::new(number), Way::Forward), *b));
            leaving[b.index()].push((DirectionId::of(LinkId::new(number), Way::Reverse), *a));
        }
        let passes = |node: NodeId, to: NodeId| to == node || !hosts.contains(&to);
        let ways = |node: NodeId| {
            let mut distance = vec![usize::MAX; nodes];
            distance[node.index()] = 0;
            for _ in 0..nodes {
                for near in (0..nodes).filter(|&near| passes(node, NodeId::new(near))).collect::<Vec<_>>() {
                    for &(_, far) in &leaving[near] {
                        distance[far.index()] = distance[far.index()].min(distance[near].saturating_add(1));
                    }
                }
            }
            let first = |from: usize| {
                let nearer = |(_, to): &&(DirectionId, NodeId)| {
                    passes(node, *to)
                        && distance[from] != usize::MAX
                        && distance[to.index()].checked_add(1) == Some(distance[from])
                };
                match leaving[from][..] {
                    [(direction, _)] => Some(direction),
                    _ => leaving[from].iter().find(nearer).map(|(direction, _)| *direction),
                }
            };
            (0..nodes).map(first).collect()
        };
        hosts.iter().map(|&host| ways(host)).collect()
    }

    fn routes(nodes: usize, hosts: &[NodeId], links: &[[NodeId; 2]]) -> Routes {
        Routes::new(nodes, hosts, links.iter().enumerate().map(|(number, ends)| (LinkId::new(number), *ends)))
    }

    fn network() -> impl Strategy<Value = (usize, Vec<NodeId>, Vec<[NodeId; 2]>)> {
        (2..10_usize).prop_flat_map(|nodes| {
            let hosts = proptest::sample::subsequence((0..nodes).collect::<Vec<_>>(), 1..=nodes);
            let ends = (0..nodes, 1..nodes).prop_map(move |(a, step)| [a, (a + step) % nodes].map(NodeId::new));
            let links = proptest::collection::vec(ends, 0..2 * nodes);
            (Just(nodes), hosts.prop_map(|hosts| hosts.into_iter().map(NodeId::new).collect()), links)
        })
    }

    proptest! {
        #[test]
        fn every_way_is_that_of_a_search_for_each_host((nodes, hosts, links) in network()) {
            let routes = routes(nodes, &hosts, &links);
            for (host, ways) in by_searching(nodes, &hosts, &links).into_iter().enumerate() {
                let found: Vec<_> = (0..nodes).map(|node| routes.next(NodeId::new(node), HostId::new(host))).collect();
                prop_assert_eq!(found, ways, "to host {}", host);
            }
        }
    }

    #[test]
    fn a_dumbbell_has_two_targets_however_many_hosts_it_has() {
        for pairs in [2, 20_000] {
            let [left, right] = [0, 1].map(NodeId::new);
            let hosts: Vec<_> = (2..2 + 2 * pairs).map(NodeId::new).collect();
            let mut links = vec![[left, right]];
            links.extend(hosts.iter().enumerate().map(|(number, &host)| [host, if number < pairs { left } else { right }]));
            let routes = routes(2 + 2 * pairs, &hosts, &links);
            assert_eq!((routes.targets, routes.table.len()), (2, 4));
            assert_eq!(routes.next(left, HostId::new(2 * pairs - 1)), Some(DirectionId::of(LinkId::new(0), Way::Forward)));
            assert_eq!(routes.next(right, HostId::new(pairs)), Some(DirectionId::of(LinkId::new(1 + pairs), Way::Reverse)));
        }
    }
}
