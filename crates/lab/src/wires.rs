//! The wires of a scenario by themselves, for those who put them between real hosts.

use crate::error::{Error, InputError};
use crate::network::{Network, Placed};
use crate::patterns::{Files, LinkFiles};
use crate::scenario::Scenario;
use whyloss_sim::{LinkNames, MiddleboxKind, Stretch, WireAgent, WireLink, WireNode};
use whyloss_transport::Duration;

/// Hosts, routers and the wires between them.
#[derive(Clone, Debug)]
pub struct Wires {
    /// Hosts and routers, in the order of the scenario.
    pub nodes: Vec<WireNode>,
    /// Wires between them, in the order of the scenario.
    pub links: Vec<WireLink>,
    /// The seed that random streams follow from.
    pub seed: u64,
    /// The run that they follow from.
    pub run: u64,
}

/// What one direction of a wire and its stretches are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direction {
    /// From the first end to the last: `from>to`.
    pub name: String,
    /// The names of the links that it is made of, in order.
    pub links: Vec<String>,
}

impl Wires {
    /// Both directions of each wire, in the order of the wires.
    pub fn directions(&self) -> Vec<Direction> {
        self.links.iter().flat_map(|link| &link.ways).map(|way| Direction::of(way)).collect()
    }
}

impl Direction {
    fn of(way: &[Stretch]) -> Self {
        let links: Vec<_> = way.iter().map(|stretch| stretch.name.clone()).collect();
        let ends = |name: Option<&String>| {
            let (from, to) = name.and_then(|name| name.split_once('>')).unwrap_or_default();
            (from.to_owned(), to.to_owned())
        };
        let ((from, _), (_, to)) = (ends(links.first()), ends(links.last()));
        Self { name: format!("{from}>{to}"), links }
    }
}

impl Scenario {
    /// The wires of run `run`. Of a `[path]` the router in the middle is taken out: `access` and `path` become one wire of two
    /// stretches between `server` and `client`. What is not a wire is refused.
    pub fn wires(&self, run: u32) -> Result<Wires, Error> {
        self.refuse_what_is_no_wire()?;
        let network = self.network();
        let files = self.files(run, &Files::default())?;
        let mut names = LinkNames::default();
        let mut links = Vec::with_capacity(network.links.len());
        for (index, link) in network.links.iter().enumerate() {
            let Some(ways) = &link.ways else { continue };
            let stretch = |way: usize| {
                let (from, to) = (link.ends[way], link.ends[1 - way]);
                let files = LinkFiles::of(&files, index, way);
                (from, to, ways[way].spec(files))
            };
            let ways = [stretch(0), stretch(1)].map(|(from, to, spec)| {
                let name = names.name(&network.nodes[from].name, &network.nodes[to].name);
                vec![Stretch { name, spec }]
            });
            let agent = self.network().agent_at(index).map(|middlebox| WireAgent {
                away: usize::from(link.ends[0] != middlebox.at),
                hop: 0,
                middlebox,
            });
            links.push(WireLink { name: link.name.clone(), ends: link.ends, ways, agent });
        }
        let mut nodes: Vec<_> =
            network.nodes.iter().map(|node| WireNode { name: node.name.clone(), router: !node.host }).collect();
        if self.document().path.is_some() {
            // server, emulator, client; access, path.
            let [path, access] = [links.pop(), links.pop()].map(|link| link.expect("a path has two links"));
            nodes.remove(1);
            let agent = match (access.agent, path.agent) {
                // Packets leave the router in the middle over the second stretch of their way, whichever that is.
                (Some(agent), None) | (None, Some(agent)) => {
                    Some(WireAgent { away: usize::from(agent.middlebox.link == 0), hop: 1, ..agent })
                }
                _ => None,
            };
            let ([there_first, back_last], [there_last, back_first]) = (access.ways, path.ways);
            let ways = [[there_first, there_last].concat(), [back_first, back_last].concat()];
            links = vec![WireLink { name: path.name, ends: [0, 1], ways, agent }];
        }
        Ok(Wires { nodes, links, seed: self.document().scenario.seed, run: u64::from(run) })
    }

    /// Real packets cross wires; the air and what stands in hosts and routers exist in the simulator only.
    fn refuse_what_is_no_wire(&self) -> Result<(), Error> {
        let document = self.document();
        let refuse = |field: &str, what: &str| {
            let problem = format!("{what} in the simulator only, not between real hosts");
            Err(self.place(InputError::new(problem).at(field).allowed("a network of wires")).into())
        };
        if document.chain.is_some() {
            return refuse("chain", "radio chains exist");
        }
        if let Some((number, _)) = self.network().stations().next() {
            return refuse("radio", &format!("radio stations such as `{}` exist", self.network().nodes[number].name));
        }
        for (index, middlebox) in self.network().middleboxes.iter().enumerate() {
            let field = format!("middlebox[{index}]");
            let (kind, link) = (middlebox.kind, &self.network().links[middlebox.link].name);
            if let Some(reason) = kind.useless_on_packets() {
                let names = MiddleboxKind::all().filter(|kind| kind.useless_on_packets().is_none()).map(MiddleboxKind::name);
                let problem = format!("the agent {} exists in the simulator only, not between real hosts: {reason}", kind.name());
                let allowed = names.collect::<Vec<_>>().join(", ");
                return Err(self.place(InputError::new(problem).at(format!("{field}.kind")).allowed(allowed)).into());
            }
            let same = |other: &Placed| document.path.is_some() || other.link == middlebox.link;
            if self.network().middleboxes[..index].iter().any(same) {
                return refuse(&field, &format!("a second agent at link {link} exists"));
            }
        }
        if let Some(index) = document.host.iter().position(|host| host.input.is_some()) {
            return refuse(&format!("host[{index}].input"), "channels in front of a host's transport exist");
        }
        if let Some(index) = document.host.iter().position(|host| !host.moves.is_empty()) {
            return refuse(&format!("host[{index}].move"), "hosts that move exist");
        }
        if document.scenario.send_overhead > Duration::ZERO {
            return refuse("scenario.send_overhead", "made-up delays of hosts exist");
        }
        Ok(())
    }
}

impl Network {
    /// The agent that sees what crosses a link.
    fn agent_at(&self, link: usize) -> Option<Placed> {
        self.middleboxes.iter().find(|middlebox| middlebox.link == link).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "[path]\nrate = '1 Mbps'\ndelay = '10 ms'\nqueue = '99 pkt'\nforward.channel.ber = 1e-5\n";

    #[test]
    fn a_path_is_one_wire_of_two_stretches() {
        let scenario = Scenario::from_toml(&format!("{PATH}[[flow]]\nsize = '1 MB'\n"), "t").unwrap();
        let wires = scenario.wires(3).unwrap();
        assert_eq!(
            wires.nodes.iter().map(|node| (node.name.as_str(), !node.router)).collect::<Vec<_>>(),
            [("server", true), ("client", true)]
        );
        let [link] = &wires.links[..] else { panic!("{wires:?}") };
        let names = |way: usize| link.ways[way].iter().map(|stretch| stretch.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names(0), ["server>emulator", "emulator>client"]);
        assert_eq!(names(1), ["client>emulator", "emulator>server"]);
        let directions = wires.directions();
        assert_eq!(directions.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["server>client", "client>server"]);
        assert_eq!(directions[0].links, ["server>emulator", "emulator>client"]);
        assert_eq!(link.ways[0][1].spec.channel.error_probability(100), link.ways[0][1].spec.channel.error_probability(100));
        assert!(link.ways[0][1].spec.channel.error_probability(100) > Some(0.0));
        assert_eq!(link.ways[1][0].spec.channel.error_probability(100), Some(0.0));
        assert_eq!((wires.seed, wires.run), (scenario.document().scenario.seed, 3));
    }

    #[test]
    fn an_agent_stands_where_packets_leave_its_router() {
        let agent = |text: &str, link: usize| Scenario::from_toml(text, "t").unwrap().wires(0).unwrap().links[link].agent.clone();
        let place = |agent: Option<WireAgent>| agent.map(|agent| (agent.away, agent.hop));
        for (link, away) in [("access", 1), ("path", 0)] {
            let boxed = format!("{PATH}[[middlebox]]\nat = 'emulator'\nlink = '{link}'\nkind = 'snoop'\n");
            assert_eq!(place(agent(&boxed, 0)), Some((away, 1)), "{link}");
        }
        let free = "[[host]]\nname = 'a'\n[[router]]\nname = 'r'\n[[host]]\nname = 'b'\n\
            [[link]]\nname = 'l'\nbetween = ['a', 'r']\nrate = '1 Mbps'\n\
            [[link]]\nname = 'm'\nbetween = ['r', 'b']\nrate = '1 Mbps'\n";
        assert_eq!(agent(free, 1), None);
        for (link, number, away) in [("l", 0, 1), ("m", 1, 0)] {
            let boxed = format!("{free}[[middlebox]]\nat = 'r'\nlink = '{link}'\nkind = 'packet-control'\n");
            assert_eq!(place(agent(&boxed, number)), Some((away, 0)), "{link}");
            assert_eq!(agent(&boxed, 1 - number), None);
        }
    }

    #[test]
    fn what_is_no_wire_is_refused_with_its_place() {
        for (text, message) in [
            ("[chain]\nhops = 2\n[[flow]]\nsize = '1 MB'\n", "t:1: chain: radio chains exist in the simulator only"),
            (
                "[scenario]\nsend_overhead = '1 ms'\n[path]\nrate = '1 Mbps'\n[[flow]]\nsize = '1 MB'\n",
                "t:2: scenario.send_overhead: made-up delays of hosts exist in the simulator only",
            ),
            (
                "[[host]]\nname = 'm'\nmove = [{ at = '1 s', link = 'b' }]\n[[router]]\nname = 'r'\n\
                 [[link]]\nname = 'a'\nbetween = ['m', 'r']\nrate = '1 Mbps'\n[[link]]\nname = 'b'\nbetween = ['m', 'r']\nrate = '1 Mbps'\n",
                "t:3: host[0].move: hosts that move exist in the simulator only",
            ),
        ] {
            let error = Scenario::from_toml(text, "t").unwrap().wires(0).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
