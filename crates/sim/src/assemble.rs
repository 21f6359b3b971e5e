//! From a [`Builder`] to a [`Simulation`]: everything is checked, then put in its place.

use crate::build::{
    Air, Amount, BuildError, Builder, CbrFlow, DccpFlow, End, Flow as FlowSpec, Input as HostInput, LineSpec, Link, LinkId, Node,
    NodeId, StripedTransfer, Supply, TcpFlow, Way,
};
use crate::capture::{Capture, Tap};
use crate::channel::{Channel, ChannelError};
use crate::dccp;
use crate::direction::{Direction, Line, LinkNames};
use crate::events::{Event, Target, MAX_TARGETS};
use crate::hosts::{File, Flow, Hosts, Opening, Socket, Source};
use crate::link::Transmitter;
use crate::middlebox::{Assisted, Attached, Meter, Middlebox};
use crate::network::{Network, Outlet, Overhead, Place, Protocol};
use crate::octets::{Route, DATAGRAM_HEADERS, MAX_HOSTS};
use crate::queue::Discipline;
use crate::radio::Hop;
use crate::random::Stream;
use crate::record::Records;
use crate::routes::{Routes, NOWHERE};
use crate::simulation::Simulation;
use crate::striped::Striped;
use std::collections::HashSet;
use whyloss_transport::{datagram, BitRate, Command, Duration, Endpoint, Input, Instant, Ports};

const FIRST_PORT: u16 = 1024;

pub(crate) fn assemble(builder: Builder) -> Result<Simulation, BuildError> {
    let Builder { seed, run, nodes, links, airs, flows, send_overhead, sampling, captures, inputs, disciplines, middleboxes } =
        builder;
    distinct("node", nodes.iter().map(|node| node.name.as_str()))?;
    distinct("flow", flows.iter().map(FlowSpec::name))?;
    let hosts: Vec<u32> = (0..nodes.len() as u32).filter(|&node| nodes[node as usize].host).collect();
    if hosts.len() > MAX_HOSTS || 2 * links.len() > MAX_TARGETS {
        let found = format!("{} hosts and {} links", hosts.len(), links.len());
        return Err(unfit("network", "size", found, "at most 16 million hosts and 2 million links"));
    }
    if sampling == Some(Duration::ZERO) {
        return Err(unfit("network", "sampling interval", "0 s".to_owned(), "a time longer than 0 s"));
    }
    let mut assembly = Assembly {
        seed,
        run,
        send_overhead,
        node_names: nodes.iter().map(|node| node.name.clone()).collect(),
        host_numbers: vec![None; nodes.len()],
        next_ports: vec![FIRST_PORT; hosts.len()],
        net: Network::new(hosts.len() as u32),
        link_names: Vec::new(),
        state: Hosts::default(),
    };
    for (number, &node) in hosts.iter().enumerate() {
        assembly.host_numbers[node as usize] = Some(number as u32);
    }
    let first_stations: Vec<_> = airs.iter().map(|air| assembly.air(air)).collect::<Result<_, _>>()?;
    let mut names = LinkNames::default();
    for (number, link) in links.iter().enumerate() {
        let [a, b] = link.ends;
        for (way, (from, to)) in [(a, b), (b, a)].into_iter().enumerate() {
            let name = names.name(assembly.node_name(from)?, assembly.node_name(to)?);
            if from == to {
                return Err(unfit(&format!("link {name}"), "ends", "one node twice".to_owned(), "two nodes"));
            }
            assembly.net.directions.push(match &link.line {
                LineSpec::Wire(specs) => {
                    let own = |(link, own, _): &&(LinkId, Way, Discipline)| link.0 as usize == number && *own as usize == way;
                    let discipline = disciplines.iter().rfind(own).map(|(.., discipline)| *discipline);
                    Direction::of_wire(&specs[way], discipline, seed, run, &name)?
                }
                LineSpec::Air(air) => {
                    let stations = &airs[*air].stations;
                    let number = |node| stations.iter().position(|&(at, _)| at == node).unwrap_or_default() as u32;
                    let first = first_stations[*air];
                    let item = format!("link {name}");
                    let channel =
                        Channel::new(&airs[*air].spec.channel, seed, run, &item).map_err(|error| of_item(&item, error))?;
                    Direction::new(channel, Line::Air(Hop::new(first + number(from), first + number(to))))
                }
            });
            let place = assembly.host_numbers[to.0 as usize].map_or(Place::Router(to.0), Place::Host);
            assembly.net.places.push(place);
            assembly.link_names.push(name);
        }
    }
    assembly.net.routes = Routes::new(&nodes, &links, &hosts);
    assembly.net.taps = vec![Vec::new(); assembly.net.directions.len()];
    for (link, way, _) in disciplines {
        assembly.check_discipline(link, way)?;
    }
    for (at, link, middlebox) in middleboxes {
        assembly.middlebox(&nodes, &links, at, link, middlebox)?;
    }
    for capture in captures {
        assembly.capture(capture)?;
    }
    for input in &inputs {
        assembly.input(input)?;
    }
    // DCCP sockets have their outlets behind those of the TCP sockets, sources behind those.
    let (mut dccp, mut datagrams) = (Vec::new(), Vec::new());
    for flow in flows {
        match flow {
            FlowSpec::Tcp(flow) => assembly.tcp(*flow)?,
            FlowSpec::Striped(transfer) => assembly.striped(transfer)?,
            FlowSpec::Dccp(flow) => {
                assembly.state.flows.push(Flow { protocol: Protocol::Dccp, ..blank(flow.name.clone(), flow.start, 0) });
                dccp.push((assembly.state.flows.len() - 1, flow));
            }
            FlowSpec::Cbr(flow) => {
                assembly.state.flows.push(blank(flow.name.clone(), flow.start, 0));
                datagrams.push((assembly.state.flows.len() - 1, flow));
            }
        }
    }
    for (number, flow) in dccp {
        assembly.dccp(number, *flow)?;
    }
    for (number, flow) in datagrams {
        assembly.cbr(number, &flow)?;
    }
    let Assembly { net, state, link_names, .. } = assembly;
    Ok(Simulation {
        net,
        hosts: state,
        sampling,
        next_sample: if sampling.is_some() { 0 } else { u64::MAX },
        events: 0,
        link_names,
        records: Records { seed, run, send_overhead, ..Records::default() },
    })
}

struct Assembly {
    seed: u64,
    run: u64,
    send_overhead: Duration,
    node_names: Vec<String>,
    /// Number of each node among the hosts.
    host_numbers: Vec<Option<u32>>,
    next_ports: Vec<u16>,
    net: Network,
    link_names: Vec<String>,
    state: Hosts,
}

/// A pair of hosts that a flow connects.
#[derive(Clone, Copy)]
struct Pair {
    nodes: [NodeId; 2],
    route: Route,
}

impl Assembly {
    fn node_name(&self, node: NodeId) -> Result<&str, BuildError> {
        let name = self.node_names.get(node.0 as usize).map(String::as_str);
        name.ok_or_else(|| unfit("network", "node", format!("number {}", node.0), "a node of this builder"))
    }

    /// Puts the stations of a radio channel on the air; returns the number of the first.
    fn air(&mut self, air: &Air) -> Result<u32, BuildError> {
        air.spec.check().map_err(|error| of_item("radio", error))?;
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
        if self.net.radio.len() > MAX_TARGETS {
            return Err(unfit("network", "size", format!("{} stations", self.net.radio.len()), "at most 4 million stations"));
        }
        Ok(first)
    }

    fn input(&mut self, input: &HostInput) -> Result<(), BuildError> {
        let item = format!("input of {}", self.node_name(input.host)?);
        let host = self.host_numbers[input.host.0 as usize];
        let host = host.ok_or_else(|| unfit(&item, "node", "a router".to_owned(), "a host"))?;
        let component = format!("{item} {}", input.way.name());
        let channel = Channel::new(&input.channel, self.seed, self.run, &component).map_err(|error| of_item(&item, error))?;
        let inputs = &mut self.net.inputs;
        inputs.resize_with(self.net.hosts as usize, Default::default);
        inputs[host as usize][usize::from(input.way == Way::Reverse)] = Some(channel);
        Ok(())
    }

    /// A discipline belongs to a wire.
    fn check_discipline(&self, link: LinkId, way: Way) -> Result<(), BuildError> {
        let direction = 2 * link.0 as usize + usize::from(way == Way::Reverse);
        let line = self.net.directions.get(direction).map(|direction| &direction.line);
        if let Some(Line::Wire(_) | Line::Varying(_)) = line {
            return Ok(());
        }
        let name = self.link_names.get(direction);
        let item = format!("queue of link {}", name.map_or_else(|| format!("number {}", link.0), String::clone));
        Err(unfit(&item, "link", "no wire".to_owned(), "a wire of this builder"))
    }

    fn middlebox(&mut self, nodes: &[Node], links: &[Link], at: NodeId, link: LinkId, kind: Middlebox) -> Result<(), BuildError> {
        let item = format!("middlebox at {}", self.node_name(at)?);
        if nodes[at.0 as usize].host {
            return Err(unfit(&item, "node", "a host".to_owned(), "a router"));
        }
        let side = links.get(link.0 as usize).and_then(|link| link.ends.iter().position(|end| *end == at));
        let Some(side) = side else {
            return Err(unfit(&item, "link", format!("number {}", link.0), "a link of this router"));
        };
        let outgoing = 2 * link.0 + side as u32;
        if let Middlebox::Survival { window } = kind {
            if window == 0 {
                return Err(unfit(&item, "window", "0 packets".to_owned(), "at least 1 packet"));
            }
            for direction in [outgoing, outgoing ^ 1] {
                self.net.directions[direction as usize].meter.get_or_insert_with(|| Box::new(Meter::new(window)));
            }
        }
        let attached = Attached { outgoing, agent: kind.agent() };
        let assisted = &mut self.net.assisted;
        if let Some(router) = assisted.iter_mut().find(|router| router.node == at.0) {
            router.agents.push(attached);
            return Ok(());
        }
        assisted.push(Assisted { node: at.0, agents: vec![attached] });
        let router = Place::Assisted(assisted.len() as u32 - 1);
        for place in &mut self.net.places {
            if matches!(place, Place::Router(node) if *node == at.0) {
                *place = router;
            }
        }
        Ok(())
    }

    fn capture(&mut self, capture: crate::build::Capture) -> Result<(), BuildError> {
        let number = self.net.captures.len();
        let first = capture.link.0 as usize * 2;
        let directions: Vec<_> = capture.ways.iter().map(|way| first + usize::from(*way == Way::Reverse)).collect();
        let names = directions.iter().map(|&at| self.link_names.get(at).map(String::as_str)).collect::<Option<Vec<_>>>();
        let Some(names) = names.filter(|names| !names.is_empty()) else {
            return Err(unfit(
                "capture",
                "link",
                format!("number {}", capture.link.0),
                "a link of this builder, and a direction",
            ));
        };
        let link = names.join(", ");
        let begun = Capture::new(link.clone(), &names, capture.out);
        self.net.captures.push(begun.map_err(|error| BuildError::Capture { link, message: error.to_string() })?);
        for (interface, direction) in directions.into_iter().enumerate() {
            self.net.taps[direction].push(Tap { capture: number, interface: interface as u32 });
        }
        Ok(())
    }

    /// Checks that two nodes are hosts with ways to each other and gives them ports for a connection.
    fn pair(&mut self, flow: &str, from: NodeId, to: NodeId, v6: bool) -> Result<Pair, BuildError> {
        let item = format!("flow {flow}");
        let names = [self.node_name(from)?.to_owned(), self.node_name(to)?.to_owned()];
        let mut hosts = [0; 2];
        for (at, node) in [from, to].into_iter().enumerate() {
            hosts[at] = self.host_numbers[node.0 as usize]
                .ok_or_else(|| unfit(&item, "end", format!("router `{}`", names[at]), "a host"))?;
        }
        if from == to {
            return Err(unfit(&item, "ends", format!("`{}` twice", names[0]), "two hosts"));
        }
        for (a, b, node) in [(0, 1, from), (1, 0, to)] {
            if !self.reaches(node.0, hosts[b]) {
                return Err(BuildError::NoWay { flow: flow.to_owned(), from: names[a].clone(), to: names[b].clone() });
            }
        }
        let mut ports = [0; 2];
        for at in 0..2 {
            let next = &mut self.next_ports[hosts[at] as usize];
            ports[at] = *next;
            *next = next
                .checked_add(1)
                .ok_or_else(|| unfit(&item, "ports", format!("none left at `{}`", names[at]), "64,511 connections a host"))?;
        }
        Ok(Pair { nodes: [from, to], route: Route { hosts, ports, v6 } })
    }

    /// Whether the routes lead from a node to a host.
    fn reaches(&self, mut node: u32, host: u32) -> bool {
        for _ in 0..=self.node_names.len() {
            let direction = self.net.routes.next(node, host);
            if direction == NOWHERE {
                return false;
            }
            match self.net.places[direction as usize] {
                Place::Router(next) => node = next,
                Place::Assisted(router) => node = self.net.assisted[router as usize].node,
                Place::Host(end) => return end == host,
            }
        }
        false
    }

    /// Adds an outlet at `node` to the network; its number is the next one.
    fn outlet(&mut self, name: &str, node: NodeId, mut outlet: Outlet) {
        if self.send_overhead > Duration::ZERO {
            let purpose = format!("send overhead {}", outlet.way.name());
            let stream = Stream::new(self.seed, self.run, &format!("flow {name}"), &purpose);
            outlet.overhead = Some(Box::new(Overhead::new(self.send_overhead.as_nanos(), stream)));
        }
        outlet.exit = self.net.routes.next(node.0, outlet.route.hosts[1]);
        self.net.outlets.push(outlet);
    }

    /// Makes both ends of a connection and lets it open at `start`.
    fn connect(
        &mut self,
        flow: Flow,
        [from, to]: [NodeId; 2],
        ends: (End, End),
        opening: Opening,
        striped: Option<(u32, u32)>,
    ) -> Result<(), BuildError> {
        let item = format!("flow {}", flow.name);
        let header = ends.0.config.ip_header;
        if ![20, 40].contains(&header) || ends.1.config.ip_header != header {
            let found = format!("{header} and {}", ends.1.config.ip_header);
            return Err(unfit(&item, "ip_header", found, "20 (IPv4) or 40 (IPv6), the same at both ends"));
        }
        let pair = self.pair(&flow.name, from, to, header == 40)?;
        let number = self.state.flows.len() as u32;
        let mut nonces = Stream::new(self.seed, self.run, &item, "nonce key");
        let [local, remote] = pair.route.ports;
        let sides = [(ends.0, Way::Forward, pair.route, Ports { local, remote })];
        let other = (ends.1, Way::Reverse, pair.route.reversed(), Ports { local: remote, remote: local });
        for (side, (mut end, way, route, ports)) in sides.into_iter().chain([other]).enumerate() {
            end.config.nonce_key = nonces.bits();
            // The application reads at once all the same, but it looks at what it reads.
            end.config.auto_read = false;
            let index = self.net.outlets.len() as u32;
            let mut outlet = Outlet::new(number, way, route, end.config.initial_seq);
            self.state.ports.insert(route, index ^ 1);
            let mut tcp = Endpoint::new(end.config, end.parts, ports);
            let sends = way == Way::Forward;
            outlet.wants_truth = sends && tcp.wants_truth();
            self.outlet(&flow.name, pair.nodes[side], outlet);
            if !sends {
                tcp.handle(Instant::ZERO, Input::Command(Command::Listen));
            }
            self.state.sockets.push(Socket {
                tcp,
                armed: if sends { flow.start.as_nanos() } else { u64::MAX },
                opening: sends.then_some(opening),
                striped,
                feeding: false,
                delivered: 0,
                read: 0,
                corrupted: 0,
            });
            if sends {
                let event = Event::new(flow.start.as_nanos(), self.net.events.next_order(), Target::Timer(index));
                self.net.events.push(event);
            }
        }
        self.state.flows.push(flow);
        Ok(())
    }

    fn tcp(&mut self, spec: TcpFlow) -> Result<(), BuildError> {
        let TcpFlow { name, from, to, start, amount, sender, receiver } = spec;
        let amount = match amount {
            Amount::Unlimited => None,
            Amount::Octets(0) => return Err(unfit(&format!("flow {name}"), "octets", "0".to_owned(), "at least 1")),
            Amount::Octets(octets) => Some(octets),
        };
        self.state.transfers += usize::from(amount.is_some());
        let opening = Opening::Produce(amount.unwrap_or(u64::MAX));
        let outlet = self.net.outlets.len() as u32;
        let flow = Flow { amount, protocol: Protocol::Tcp, ..blank(name, start, outlet) };
        self.connect(flow, [from, to], (sender, receiver), opening, None)
    }

    fn striped(&mut self, spec: StripedTransfer) -> Result<(), BuildError> {
        let StripedTransfer { name, from, to, start, octets, chunk, connections } = spec;
        let item = format!("flow {name}");
        if octets == 0 || chunk == 0 || connections.is_empty() {
            let found = format!("{octets} octets in chunks of {chunk} over {} connections", connections.len());
            return Err(unfit(&item, "size", found, "at least 1 of each"));
        }
        let file = self.state.files.len() as u32;
        let stripes = Striped::new(octets, chunk, connections.len());
        for (number, ends) in connections.into_iter().enumerate() {
            let room = ends.0.config.send_buffer;
            if u64::from(chunk) > room {
                let found = format!("{chunk} octets");
                return Err(unfit(&item, "chunk", found, "no more than the send buffer of each connection"));
            }
            let outlet = self.net.outlets.len() as u32;
            let flow = Flow { striped: Some(file), protocol: Protocol::Tcp, ..blank(format!("{name}/{number}"), start, outlet) };
            self.connect(flow, [from, to], ends, Opening::Stripe, Some((file, number as u32)))?;
        }
        self.state.files.push(File { name, start, octets, finished: None, failed: false, stripes });
        self.state.transfers += 1;
        Ok(())
    }

    fn dccp(&mut self, number: usize, spec: DccpFlow) -> Result<(), BuildError> {
        let DccpFlow { name, from, to, start, stop, supply, sender, receiver } = spec;
        let item = format!("flow {name}");
        let packet = sender.packet;
        if packet == 0 || packet > 64_000 {
            return Err(unfit(&item, "packet", packet.to_string(), "1 to 64,000 octets of data"));
        }
        if sender.coverage > 15 || usize::from(sender.coverage.saturating_sub(1)) * 4 > packet as usize {
            return Err(unfit(&item, "coverage", sender.coverage.to_string(), "0 to 15, and no more than the data of a packet"));
        }
        if supply == Supply::Rate(BitRate::from_bps(0)) {
            return Err(unfit(&item, "rate", "0 bps".to_owned(), "a rate above 0 bps"));
        }
        if start >= stop {
            return Err(unfit(&item, "stop", stop.to_string(), "a time after its start"));
        }
        let header = sender.ip_header;
        if ![20, 40].contains(&header) || receiver.ip_header != header {
            let found = format!("{header} and {}", receiver.ip_header);
            return Err(unfit(&item, "ip_header", found, "20 (IPv4) or 40 (IPv6), the same at both ends"));
        }
        let pair = self.pair(&name, from, to, header == 40)?;
        let [local, remote] = pair.route.ports;
        let first = self.net.outlets.len() as u32;
        self.state.flows[number].outlet = first;
        let sides = [
            (Way::Forward, pair.route, datagram::dccp::Endpoint::new(sender, Ports { local, remote })),
            (
                Way::Reverse,
                pair.route.reversed(),
                datagram::dccp::Endpoint::new(receiver, Ports { local: remote, remote: local }),
            ),
        ];
        for (side, (way, route, end)) in sides.into_iter().enumerate() {
            let index = first + side as u32;
            let outlet = Outlet { protocol: Protocol::Dccp, ..Outlet::new(number as u32, way, route, 0) };
            self.outlet(&name, pair.nodes[side], outlet);
            self.state.ports.insert(route, index ^ 1);
            self.state.dccp.push(dccp::Socket::new(end, (way == Way::Forward).then_some((start, supply))));
        }
        let event = Event::new(start.as_nanos(), self.net.events.next_order(), Target::Timer(first));
        self.net.events.push(event);
        // The application: it supplies data at its rate, and it closes.
        let pace = Transmitter::new(match supply {
            Supply::Rate(rate) => rate,
            Supply::Saturated => BitRate::from_bps(u64::MAX),
        });
        let (begin, stop) = (if supply == Supply::Saturated { stop } else { start }, stop.as_nanos());
        self.state.sources.push(Source { outlet: first, octets: packet, stop, sent: 0, pace });
        if begin.as_nanos() < u64::MAX {
            let source = self.state.sources.len() as u32 - 1;
            let event = Event::new(begin.as_nanos(), self.net.events.next_order(), Target::Source(source));
            self.net.events.push(event);
        }
        Ok(())
    }

    fn cbr(&mut self, number: usize, spec: &CbrFlow) -> Result<(), BuildError> {
        let item = format!("flow {}", spec.name);
        if spec.octets <= DATAGRAM_HEADERS || spec.octets > u32::from(u16::MAX) {
            return Err(unfit(&item, "octets", spec.octets.to_string(), "29 to 65,535"));
        }
        if spec.rate == BitRate::from_bps(0) {
            return Err(unfit(&item, "rate", spec.rate.to_string(), "a rate above 0 bps"));
        }
        if spec.start >= spec.stop {
            return Err(unfit(&item, "stop", spec.stop.to_string(), "a time after its start"));
        }
        let pair = self.pair(&spec.name, spec.from, spec.to, false)?;
        let outlet = self.net.outlets.len() as u32;
        let from = Outlet { protocol: Protocol::Udp, ..Outlet::new(number as u32, Way::Forward, pair.route, 0) };
        self.outlet(&spec.name, spec.from, from);
        self.state.ports.insert(pair.route, outlet);
        self.state.flows[number].outlet = outlet;
        let index = self.state.sources.len() as u32;
        let pace = Transmitter::new(spec.rate);
        self.state.sources.push(Source { outlet, octets: spec.octets, stop: spec.stop.as_nanos(), sent: 0, pace });
        let event = Event::new(spec.start.as_nanos(), self.net.events.next_order(), Target::Source(index));
        self.net.events.push(event);
        Ok(())
    }
}

fn blank(name: String, start: Instant, outlet: u32) -> Flow {
    Flow {
        name,
        start,
        amount: None,
        striped: None,
        outlet,
        protocol: Protocol::Udp,
        connected: None,
        first_data: None,
        last_data: None,
        finished: None,
        closing: None,
        failed: false,
        octets: 0,
        unassessed: Vec::new(),
    }
}

fn of_item(item: &str, error: ChannelError) -> BuildError {
    BuildError::Unfit { item: item.to_owned(), field: error.field, found: error.found, allowed: error.allowed }
}

fn unfit(item: &str, field: &'static str, found: String, allowed: &'static str) -> BuildError {
    BuildError::Unfit { item: item.to_owned(), field, found, allowed }
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
