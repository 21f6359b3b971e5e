//! What a test bed consists of: names, addresses, devices and routes.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use whyloss_sim::{WireLink, WireNode};

/// The longest name of a network device.
const LONGEST_DEVICE: usize = 15;
/// More would not fit the plan of addresses.
const MOST_NODES: usize = 39_000;

/// Hosts and routers, and the links between them.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Hosts and routers; links name them by their place here.
    pub nodes: Vec<WireNode>,
    /// Links between them.
    pub links: Vec<WireLink>,
    /// The longest IP packet that a link takes, in octets.
    pub mtu: u16,
}

/// A device of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    pub name: String,
    /// The link, by position.
    pub link: usize,
    /// Which of its ends.
    pub side: usize,
}

/// Why a plan is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub(super) String);

impl Plan {
    /// Whether names and ends make sense.
    pub(super) fn check(&self) -> Result<(), PlanError> {
        let refuse = |problem: String| Err(PlanError(problem));
        if self.nodes.len() > MOST_NODES {
            return refuse(format!("there are {} hosts and routers; a test bed has up to {MOST_NODES}", self.nodes.len()));
        }
        if !(1280..=65535).contains(&self.mtu) {
            return refuse(format!("the MTU is {} octets; allowed is 1280 (RFC 8200, 5) to 65535", self.mtu));
        }
        let mut names = BTreeSet::new();
        for WireNode { name, .. } in &self.nodes {
            // They stand in a hosts file and become names of machines.
            let letters = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            if name.is_empty() || name.len() > 63 || !name.chars().all(letters) || name.starts_with('-') {
                return refuse(format!(
                    "a node is called `{name}`; in a test bed a name has 1 to 63 letters, digits, `-`, `.` and `_`"
                ));
            }
            if !names.insert(name.to_ascii_lowercase()) {
                return refuse(format!("two nodes are called `{name}`; names of machines do not differ by case alone"));
            }
        }
        match self.links.iter().find(|link| link.ends.iter().any(|&end| end >= self.nodes.len()) || link.ends[0] == link.ends[1])
        {
            Some(link) => refuse(format!("a link joins nodes {:?}; allowed are two of {} nodes", link.ends, self.nodes.len())),
            None => Ok(()),
        }
    }

    /// The IPv4 address of a node, out of 10.77.0.0/16.
    pub fn v4(&self, node: usize) -> Ipv4Addr {
        // No last octet of 0 or 255, which some programs take for a network or a broadcast.
        Ipv4Addr::new(10, 77, (node / 250) as u8, (node % 250) as u8 + 1)
    }

    /// The IPv6 address of a node, out of `fd77:7768:796c::/48` (a local prefix, RFC 4193).
    pub fn v6(&self, node: usize) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0x7768, 0x796c, 0, 0, 0, 0, node as u16 + 1)
    }

    /// The IPv4 addresses for guests of a node, which are hosts behind it: a /24 out of 10.100.0.0 and what follows.
    pub fn guests(&self, node: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 100 + (node >> 8) as u8, node as u8, 0)
    }

    /// Position of the node called `name`.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// A file for `/etc/hosts`.
    pub fn hosts_file(&self) -> String {
        let mut text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned();
        for (number, node) in self.nodes.iter().enumerate() {
            let _ = writeln!(text, "{} {}\n{} {}", self.v4(number), node.name, self.v6(number), node.name);
        }
        text
    }

    /// The devices of a node: called after the node at the other end where that gives a name.
    pub(super) fn devices(&self, node: usize) -> Vec<Device> {
        let mut taken = BTreeSet::new();
        let ends = self.links.iter().enumerate().flat_map(|(link, spec)| [0, 1].map(|side| (link, side, spec.ends)));
        ends.filter(|(_, side, ends)| ends[*side] == node)
            .map(|(link, side, ends)| {
                let wanted = format!("to-{}", self.nodes[ends[1 - side]].name);
                let name =
                    if wanted.len() <= LONGEST_DEVICE && !taken.contains(&wanted) { wanted } else { format!("link{link}") };
                taken.insert(name.clone());
                Device { name, link, side }
            })
            .collect()
    }

    /// By which link each node sends to `target`: the first of a way with the fewest links, as in the simulator. Hosts do not forward.
    fn ways_to(&self, target: usize) -> Vec<Option<usize>> {
        let mut distance = vec![usize::MAX; self.nodes.len()];
        distance[target] = 0;
        let mut queue = VecDeque::from([target]);
        let other = |link: &WireLink, node: usize| match link.ends {
            [a, b] if a == node => Some(b),
            [a, b] if b == node => Some(a),
            _ => None,
        };
        while let Some(near) = queue.pop_front() {
            if near != target && !self.nodes[near].router {
                continue;
            }
            for far in self.links.iter().filter_map(|link| other(link, near)) {
                if distance[far] == usize::MAX {
                    distance[far] = distance[near] + 1;
                    queue.push_back(far);
                }
            }
        }
        (0..self.nodes.len())
            .map(|from| {
                self.links.iter().position(|link| {
                    other(link, from).is_some_and(|to| {
                        let forwards = to == target || self.nodes[to].router;
                        forwards && distance[from] != usize::MAX && distance[to].checked_add(1) == Some(distance[from])
                    })
                })
            })
            .collect()
    }

    /// For each node, the commands of `ip` that give its devices their addresses and routes.
    pub(super) fn commands(&self, v6: bool) -> Vec<String> {
        let devices: Vec<_> = (0..self.nodes.len()).map(|node| self.devices(node)).collect();
        let mut commands = vec![String::new(); self.nodes.len()];
        for (node, text) in commands.iter_mut().enumerate() {
            for Device { name, .. } in &devices[node] {
                let _ = writeln!(text, "addr add {}/32 dev {name}", self.v4(node));
                if v6 {
                    let _ = writeln!(text, "addr add {}/128 dev {name} nodad", self.v6(node));
                }
                let _ = writeln!(text, "link set dev {name} mtu {} multicast off up", self.mtu);
            }
        }
        for target in 0..self.nodes.len() {
            for (node, link) in self.ways_to(target).into_iter().enumerate() {
                let Some(Device { name, .. }) = link.and_then(|link| devices[node].iter().find(|device| device.link == link))
                else {
                    continue;
                };
                let text = &mut commands[node];
                let _ = writeln!(text, "route add {}/32 dev {name} src {}", self.v4(target), self.v4(node));
                let _ = writeln!(text, "route add {}/24 dev {name} src {}", self.guests(target), self.v4(node));
                if v6 {
                    let _ = writeln!(text, "route add {}/128 dev {name} src {}", self.v6(target), self.v6(node));
                }
            }
        }
        commands
    }
}

/// Address of a node by IP version.
impl Plan {
    /// The address of a node: of IPv6 if `v6`.
    pub fn address(&self, node: usize, v6: bool) -> IpAddr {
        if v6 {
            self.v6(node).into()
        } else {
            self.v4(node).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(nodes: &[(&str, bool)], links: &[[usize; 2]]) -> Plan {
        let nodes = nodes.iter().map(|&(name, router)| WireNode { name: name.to_owned(), router }).collect();
        let links = links.iter().map(|&ends| WireLink { ends, ..WireLink::default() }).collect();
        Plan { nodes, links, mtu: 1500 }
    }

    #[test]
    fn routes_take_the_fewest_links_and_never_lead_through_hosts() {
        // a and b are joined by the host h (two links) and by the routers r and s (three links).
        let nodes = [("a", false), ("h", false), ("b", false), ("r", true), ("s", true)];
        let plan = plan(&nodes, &[[0, 1], [1, 2], [0, 3], [3, 4], [4, 2]]);
        assert_eq!(plan.ways_to(2), [Some(2), Some(1), None, Some(3), Some(4)]);
        assert_eq!(plan.ways_to(1), [Some(0), None, Some(1), None, None], "the way from r to h leads through a host");
        let commands = plan.commands(false);
        assert!(commands[0].contains("route add 10.77.0.3/32 dev to-r src 10.77.0.1\n"), "{}", commands[0]);
    }

    #[test]
    fn devices_have_names_that_the_kernel_takes() {
        let plan = plan(&[("a", false), ("a-router-with-a-long-name", true), ("r", true)], &[[0, 1], [0, 2], [2, 0]]);
        let names: Vec<_> = plan.devices(0).into_iter().map(|device| device.name).collect();
        assert_eq!(names, ["link0", "to-r", "link2"]);
    }

    #[test]
    fn every_node_has_its_own_addresses() {
        let many: Vec<_> = (0..600).map(|_| ("x", false)).collect();
        let plan = plan(&many, &[]);
        let v4: BTreeSet<_> = (0..600).map(|node| plan.v4(node)).collect();
        let v6: BTreeSet<_> = (0..600).map(|node| plan.v6(node)).collect();
        assert_eq!((v4.len(), v6.len()), (600, 600));
        assert!(v4.iter().all(|address| !matches!(address.octets()[3], 0 | 255)));
        assert_eq!(
            plan.check().unwrap_err().to_string(),
            "two nodes are called `x`; names of machines do not differ by case alone"
        );
    }
}
