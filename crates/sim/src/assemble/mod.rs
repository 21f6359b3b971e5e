//! From a [`Builder`] to a [`Simulation`]: everything is checked, then put in its place.

mod flows;

use crate::address::{AssistedId, DirectionId, EndpointId, HostId, LinkId, NodeId, Place, StationId, Way};
use crate::ahead::Lookahead;
use crate::build::{Air, Builder, FlowSpec, InputSpec, LineSpec, LinkEnds, NodeSpec};
use crate::capture::{CaptureSpec, Point, Taps, Vantage};
use crate::channel::Channel;
use crate::direction::{Direction, Line, LinkNames};
use crate::error::BuildError;
use crate::events::MAX_TARGETS;
use crate::hop::Hop;
use crate::hosts::Hosts;
use crate::meter::Meter;
use crate::middlebox::{Assisted, Attached, Middlebox};
use crate::moves::{self, Move};
use crate::network::{Moves, Network, PacketLog};
use crate::octets::MAX_HOSTS;
use crate::outage::{Downtime, Turns};
use crate::radio::{ChannelScope, RadioSpec};
use crate::random::Stream;
use crate::record::Records;
use crate::settle::Settling;
use crate::simulation::Simulation;
use crate::smoothness::Bins;
use std::collections::HashSet;
use std::sync::Arc;
use whyloss_transport::Duration;

const FIRST_PORT: u16 = 1024;

impl Builder {
    /// Checks everything and builds the simulation.
    pub fn build(self) -> Result<Simulation, BuildError> {
        let Self {
            seed,
            run,
            nodes,
            mut links,
            airs,
            flows,
            send_overhead,
            sampling,
            smoothness,
            log,
            captures,
            inputs,
            middleboxes,
            moves,
            playbacks,
        } = self;
        distinct("node", nodes.iter().map(|node| node.name.as_str()))?;
        distinct("flow", flows.iter().map(FlowSpec::name))?;
        let hosts: Vec<_> = (0..nodes.len()).filter(|&node| nodes[node].host).map(NodeId::new).collect();
        if hosts.len() > MAX_HOSTS || 2 * links.len() > MAX_TARGETS {
            let found = format!("{} hosts and {} links", hosts.len(), links.len());
            return Err(unfit("network", "size", found, "at most 16 million hosts and 2 million links"));
        }
        if sampling == Some(Duration::ZERO) {
            return Err(unfit("network", "sampling interval", "0 s".to_owned(), "a time longer than 0 s"));
        }
        if let Some((field, found, allowed)) = smoothness.flaw() {
            return Err(unfit("network", field, found, allowed));
        }
        let mut assembly = Assembly {
            seed,
            run,
            send_overhead,
            node_names: nodes.iter().map(|node| node.name.clone()).collect(),
            host_ids: vec![None; nodes.len()],
            next_ports: vec![FIRST_PORT; hosts.len()],
            net: Network::new(hosts.len()),
            link_names: Vec::new(),
            outages: Vec::new(),
            ends: Vec::new(),
            hosts: Hosts::default(),
        };
        for (number, node) in hosts.iter().enumerate() {
            assembly.host_ids[node.index()] = Some(HostId::new(number));
        }
        let mobile = assembly.mobile(&mut links, &moves)?;
        assembly.links(&links, &airs)?;
        let moves = Moves::new(nodes.len(), hosts, links.iter().map(|link| link.ends).collect(), &mobile);
        assembly.net.routes = moves.routes();
        assembly.net.moves = (!mobile.is_empty()).then(|| Box::new(moves));
        for (number, middlebox) in middleboxes.iter().enumerate() {
            assembly.middlebox(&nodes, &links, number, middlebox)?;
        }
        for (number, capture) in captures.into_iter().enumerate() {
            assembly.capture(number, capture, &links)?;
        }
        for input in &inputs {
            assembly.input(input)?;
        }
        assembly.flows(flows)?;
        for (flow, playback) in playbacks {
            assembly.playback(&flow, playback)?;
        }
        for router in 0..assembly.net.assisted.len() {
            assembly.net.arm_agents(AssistedId::new(router));
        }
        assembly.order_ends();
        let Assembly { mut net, hosts, link_names, .. } = assembly;
        net.arm_moves();
        if let Some(watch) = &mut net.watch {
            watch.begin(net.egress.len());
        }
        let watched = net.watch.is_some();
        for direction in &mut net.directions {
            direction.simple = !watched && direction.is_plain();
        }
        net.log = log.map(|spec| Box::new(PacketLog::new(spec, net.egress.len())));
        let ahead = Lookahead::new(&mut net);
        let bins = Bins::new(&smoothness, hosts.flows.all.iter().map(|flow| flow.start));
        Ok(Simulation {
            net,
            hosts,
            sampling,
            next_sample: if sampling.is_some() { 0 } else { u64::MAX },
            bins,
            events: 0,
            ahead,
            link_names,
            records: Records { seed, run, send_overhead, smoothness_bin: smoothness.bin, ..Records::default() },
            settling: Settling::default(),
        })
    }
}

struct Assembly {
    seed: u64,
    run: u64,
    send_overhead: Duration,
    node_names: Vec<String>,
    /// The host that each node is, if it is one.
    host_ids: Vec<Option<HostId>>,
    next_ports: Vec<u16>,
    net: Network,
    link_names: Vec<String>,
    /// When each direction is down.
    outages: Vec<Downtime>,
    /// The ends of all flows, in the order in which they were made; so lie what they send by and their sockets.
    ends: Vec<EndpointId>,
    hosts: Hosts,
}

/// A host that moves, its links, and its moves.
type MobileHost<'a> = (HostId, Vec<LinkId>, &'a [Move]);

impl Assembly {
    fn node_name(&self, node: NodeId) -> Result<&str, BuildError> {
        let name = self.node_names.get(node.index()).map(String::as_str);
        name.ok_or_else(|| unfit("network", "node", format!("number {}", node.index()), "a node of this builder"))
    }

    /// The hosts that move, with their links, which are down while they are attached to others.
    fn mobile<'a>(&self, links: &mut [LinkEnds], moves: &'a [(NodeId, Vec<Move>)]) -> Result<Vec<MobileHost<'a>>, BuildError> {
        let mut mobile: Vec<MobileHost<'a>> = Vec::new();
        for (node, moves) in moves {
            let item = format!("moves of {}", self.node_name(*node)?);
            let host = self.host_ids[node.index()].ok_or_else(|| unfit(&item, "node", "a router".to_owned(), "a host"))?;
            let own: Vec<_> = (0..links.len()).filter(|&link| links[link].ends.contains(node)).map(LinkId::new).collect();
            let Some(first) = own.first() else { return Err(unfit(&item, "links", "none".to_owned(), "at least one")) };
            if mobile.iter().any(|(other, ..)| *other == host) {
                return Err(unfit(&item, "moves", "two lists".to_owned(), "one list a host"));
            }
            if let Some(stray) = moves.iter().find(|step| !own.contains(&step.link)) {
                return Err(unfit(&item, "link", format!("number {}", stray.link.index()), "a link of this host"));
            }
            if let Some((_, flaw)) = Move::flaw(first, moves) {
                return Err(BuildError::unfit(&item, flaw));
            }
            for (link, outage) in moves::outages(&own, moves) {
                let LineSpec::Wire(specs) = &mut links[link.index()].line else {
                    return Err(unfit(&item, "link", "a radio link".to_owned(), "wires: links with a rate and a delay"));
                };
                for spec in Arc::make_mut(specs) {
                    spec.outage.push(outage);
                }
            }
            mobile.push((host, own, &moves[..]));
        }
        Ok(mobile)
    }

    /// Makes the directions of all links.
    fn links(&mut self, links: &[LinkEnds], airs: &[Air]) -> Result<(), BuildError> {
        let first_stations: Vec<_> = airs.iter().map(|air| self.air(air)).collect::<Result<_, _>>()?;
        let mut names = LinkNames::default();
        self.net.directions.reserve_exact(2 * links.len());
        self.outages.reserve_exact(2 * links.len());
        self.link_names.reserve_exact(2 * links.len());
        for link in links {
            let [a, b] = link.ends;
            for (way, (from, to)) in Way::BOTH.into_iter().zip([(a, b), (b, a)]) {
                let name = names.name(self.node_name(from)?, self.node_name(to)?);
                if from == to {
                    return Err(unfit(&format!("link {name}"), "ends", "one node twice".to_owned(), "two nodes"));
                }
                let direction = match &link.line {
                    LineSpec::Wire(specs) => Direction::of_wire(&specs[way.index()], self.seed, self.run, &name)?,
                    LineSpec::Air(air) => {
                        let stations = &airs[*air].stations;
                        let number = |node| stations.iter().position(|&(at, _)| at == node).unwrap_or_default();
                        let station = |node| StationId::new(first_stations[*air].index() + number(node));
                        let item = format!("link {name}");
                        let RadioSpec { channel, channel_scope, .. } = &airs[*air].spec;
                        let own = channel.clone().filter(|_| *channel_scope == ChannelScope::Pair);
                        let channel = Channel::new(&own.unwrap_or_default(), self.seed, self.run, &item);
                        let channel = channel.map_err(|error| BuildError::of_channel(&item, error))?;
                        Direction::new(channel, Line::Air(Hop::new(station(from), station(to))))
                    }
                };
                let place = self.host_ids[to.index()].map_or(Place::Router(to), Place::Host);
                self.net.directions.push(Direction { place, ..direction });
                self.outages.push(match &link.line {
                    LineSpec::Wire(specs) => Downtime::new(&specs[way.index()].outage, self.seed, self.run, &name),
                    LineSpec::Air(_) => Downtime::default(),
                });
                self.link_names.push(name);
            }
        }
        Ok(())
    }

    /// Puts the stations of a radio channel on the air; returns the first.
    fn air(&mut self, air: &Air) -> Result<StationId, BuildError> {
        air.spec.check().map_err(|error| BuildError::of_channel("radio", error))?;
        let mut names = Vec::with_capacity(air.stations.len());
        for &(node, position) in &air.stations {
            let name = self.node_name(node)?.to_owned();
            let item = format!("station {name}");
            if position.iter().any(|metres| metres.is_nan() || metres.abs() > 1e7) {
                return Err(unfit(&item, "position", format!("{position:?}"), "coordinates up to 10,000 km"));
            }
            if names.iter().any(|(other, _)| *other == name) {
                return Err(unfit(&item, "node", format!("`{name}` twice"), "one station a node on a radio channel"));
            }
            names.push((name, position));
        }
        let stations: Vec<_> = names.iter().map(|(name, position)| (name.as_str(), *position)).collect();
        let first = self.net.radio.add(&air.spec, self.seed, self.run, &stations);
        let first = first.map_err(|error| BuildError::of_channel("radio", error))?;
        if self.net.radio.len() > MAX_TARGETS {
            return Err(unfit("network", "size", format!("{} stations", self.net.radio.len()), "at most 4 million stations"));
        }
        Ok(first)
    }

    fn input(&mut self, input: &InputSpec) -> Result<(), BuildError> {
        let item = format!("input of {}", self.node_name(input.host)?);
        let host = self.host_ids[input.host.index()];
        let host = host.ok_or_else(|| unfit(&item, "node", "a router".to_owned(), "a host"))?;
        let component = format!("{item} {}", input.way.name());
        let channel = Channel::new(&input.channel, self.seed, self.run, &component);
        let channel = channel.map_err(|error| BuildError::of_channel(&item, error))?;
        let ingress = &mut self.net.ingress;
        ingress.resize_with(self.net.hosts, Default::default);
        ingress[host.index()][input.way.index()] = Some(channel);
        Ok(())
    }

    fn middlebox(
        &mut self,
        nodes: &[NodeSpec],
        links: &[LinkEnds],
        number: usize,
        middlebox: &Middlebox,
    ) -> Result<(), BuildError> {
        let Middlebox { at, link, .. } = *middlebox;
        let item = format!("middlebox at {}", self.node_name(at)?);
        if nodes[at.index()].host {
            return Err(unfit(&item, "node", "a host".to_owned(), "a router"));
        }
        let side = links.get(link.index()).and_then(|link| link.ends.iter().position(|end| *end == at));
        let Some(side) = side else {
            return Err(unfit(&item, "link", format!("number {}", link.index()), "a link of this router"));
        };
        let outgoing = DirectionId::of(link, Way::BOTH[side]);
        let attached = Attached::new(number, outgoing, middlebox, Turns::new(self.outages[outgoing.index()].clone()))
            .map_err(|error| BuildError::Middlebox { item: item.clone(), error })?;
        if let Some(window) = attached.agent.meter() {
            for direction in [outgoing, outgoing.peer()] {
                self.net.meters.entry(direction).or_insert_with(|| Meter::new(window));
            }
        }
        let assisted = &mut self.net.assisted;
        if let Some(router) = assisted.iter_mut().find(|router| router.node == at) {
            router.agents.push(attached);
            return Ok(());
        }
        assisted.push(Assisted { node: at, agents: vec![attached], armed: u64::MAX });
        let router = Place::Assisted(AssistedId::new(assisted.len() - 1));
        for direction in &mut self.net.directions {
            if matches!(direction.place, Place::Router(node) if node == at) {
                direction.place = router;
            }
        }
        Ok(())
    }

    fn capture(&mut self, number: usize, spec: CaptureSpec, links: &[LinkEnds]) -> Result<(), BuildError> {
        let item = format!("capture {}", spec.name);
        if !(0.0..1.0).contains(&spec.holes) {
            return Err(unfit(&item, "holes", spec.holes.to_string(), "a share from 0 to less than 1"));
        }
        if spec.digits > 9 {
            return Err(unfit(&item, "digits", spec.digits.to_string(), "at most 9: nanoseconds"));
        }
        let at_node = links.iter().enumerate().filter(|(_, link)| link.ends.contains(&spec.node));
        let watched: Vec<_> = at_node.filter(|(number, _)| spec.link.is_none_or(|only| only.index() == *number)).collect();
        if watched.is_empty() {
            return Err(unfit(&item, "link", "none".to_owned(), "a link of the node at which it is taken"));
        }
        let is_host = self.host_ids.get(spec.node.index()).is_some_and(Option::is_some);
        if spec.behind_queue && !is_host {
            return Err(unfit(
                &item,
                "behind_queue",
                "true at a router".to_owned(),
                "a host; at a router name the link behind it",
            ));
        }
        let (mut names, mut vantages) = (Vec::new(), Vec::new());
        for (interface, (number, link)) in watched.into_iter().enumerate() {
            let out = if link.ends[0] == spec.node { Way::Forward } else { Way::Reverse };
            let direction = DirectionId::of(LinkId::new(number), out);
            names.push(self.link_names[direction.index()].clone());
            vantages.push(Vantage { direction: direction.peer(), interface: interface as u32, point: Point::Exit });
            if is_host || spec.link.is_some() {
                let point = if spec.behind_queue { Point::Transmission } else { Point::Queue };
                let behind = &self.net.directions[direction.index()];
                // A queue that pushes packets out after it has taken them changes when others leave.
                let tells =
                    behind.line.tells_transmissions() && !(behind.manager.is_some() && matches!(behind.line, Line::Wire(_)));
                if spec.behind_queue && !tells {
                    let found = format!("true with the link {}", self.link_names[direction.index()]);
                    let allowed = "links of a rate, that are no radio and whose queue is drop-tail or manages what leaves it";
                    return Err(unfit(&item, "behind_queue", found, allowed));
                }
                vantages.push(Vantage { direction, interface: interface as u32, point });
            }
        }
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let taps = self.net.watch.get_or_insert_with(|| Box::new(Taps::new(self.link_names.clone())));
        // The file's name has no say in what it holds.
        let component = format!("capture {number} at {}", self.node_names[spec.node.index()]);
        let (name, stream) = (spec.name.clone(), Stream::new(self.seed, self.run, &component, "holes"));
        taps.add(spec, &names, &vantages, stream).map_err(|error| BuildError::Capture { name, message: error.to_string() })
    }
}

fn unfit(item: &str, field: &'static str, found: String, allowed: &'static str) -> BuildError {
    BuildError::unfit(item, (field, found, allowed))
}

fn distinct<'a>(kind: &'static str, names: impl Iterator<Item = &'a str>) -> Result<(), BuildError> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(BuildError::SameName { kind, name: name.to_owned() });
        }
    }
    Ok(())
}
