//! Flows: the ends of connections, what gives them data, and who takes it.

use super::{unfit, Assembly};
use crate::address::{EndpointId, FileId, FlowId, HostId, NodeId, Place, SourceId, Way};
use crate::build::{Amount, CbrFlow, DatagramFlow, End, FlowSpec, StripedTransfer, Supply, TcpFlow};
use crate::error::BuildError;
use crate::events::{Event, Target};
use crate::hosts::{DatagramSocket, FileState, FlowState, Opening, Socket, Source, Waiting};
use crate::network::{Egress, Overhead, Protocol};
use crate::octets::{Route, DATAGRAM_HEADERS};
use crate::pacing::{Pacing, Rhythm};
use crate::playback::{Playback, Player};
use crate::random::Stream;
use crate::striped::Striped;
use crate::web::Browser;
use whyloss_transport::tcp::Granularity;
use whyloss_transport::{datagram, BitRate, Duration, Instant, Ports};

/// A pair of hosts that a flow connects.
#[derive(Clone, Copy)]
struct Pair {
    nodes: [NodeId; 2],
    route: Route,
}

impl Pair {
    /// The node at which the packets of this way begin, and their route.
    const fn end(&self, way: Way) -> (NodeId, Route) {
        match way {
            Way::Forward => (self.nodes[0], self.route),
            Way::Reverse => (self.nodes[1], self.route.reversed()),
        }
    }
}

/// The ports of the end whose packets take this route.
const fn ports(route: Route) -> Ports {
    Ports { local: route.ports[0], remote: route.ports[1] }
}

impl Assembly {
    /// Makes the ends of all flows.
    pub fn flows(&mut self, flows: Vec<FlowSpec>) -> Result<(), BuildError> {
        // Events of one time come in the order in which they are made, and ports are given in that order: those of TCP flows first, then
        // those of flows with congestion control, then those of plain datagrams.
        let (mut controlled, mut datagrams) = (Vec::new(), Vec::new());
        let ends = 2 * flows.iter().map(FlowSpec::connections).sum::<usize>();
        self.ends.reserve_exact(ends);
        self.net.egress.reserve_exact(ends);
        self.hosts.sockets.reserve_exact(ends);
        self.hosts.flows.all.reserve_exact(ends / 2);
        for flow in flows {
            match flow {
                FlowSpec::Tcp(flow) => self.tcp(*flow)?,
                FlowSpec::Striped(transfer) => self.striped(transfer)?,
                FlowSpec::Datagrams(flow) => {
                    let id = self.flow(FlowState::new(flow.name.clone(), flow.start, Protocol::Dccp));
                    controlled.push((id, flow));
                }
                FlowSpec::Cbr(flow) => {
                    let id = self.flow(FlowState::new(flow.name.clone(), flow.start, Protocol::Udp));
                    datagrams.push((id, flow));
                }
            }
        }
        for (id, flow) in controlled {
            self.controlled(id, *flow)?;
        }
        for (id, flow) in datagrams {
            self.cbr(id, &flow)?;
        }
        Ok(())
    }

    fn end(&mut self, id: EndpointId, egress: Egress, socket: Socket) {
        self.ends.push(id);
        self.net.egress.push(egress);
        self.hosts.sockets.push(socket);
    }

    /// Puts the ends into the order of their numbers, in place: there may be many, and they are large.
    pub fn order_ends(&mut self) {
        for place in 0..self.ends.len() {
            while self.ends[place].index() != place {
                let own = self.ends[place].index();
                self.ends.swap(place, own);
                self.net.egress.swap(place, own);
                self.hosts.sockets.swap(place, own);
            }
        }
    }

    fn flow(&mut self, flow: FlowState) -> FlowId {
        self.hosts.flows.all.push(flow);
        FlowId::new(self.hosts.flows.all.len() - 1)
    }

    /// Checks that two nodes are hosts with ways to each other and gives them ports for a connection.
    fn pair(&mut self, flow: &str, from: NodeId, to: NodeId, v6: bool) -> Result<Pair, BuildError> {
        let item = format!("flow {flow}");
        let names = [self.node_name(from)?.to_owned(), self.node_name(to)?.to_owned()];
        let mut hosts = [HostId::new(0); 2];
        for (at, node) in [from, to].into_iter().enumerate() {
            hosts[at] =
                self.host_ids[node.index()].ok_or_else(|| unfit(&item, "end", format!("router `{}`", names[at]), "a host"))?;
        }
        if from == to {
            return Err(unfit(&item, "ends", format!("`{}` twice", names[0]), "two hosts"));
        }
        for (a, b, node) in [(0, 1, from), (1, 0, to)] {
            if !self.reaches(node, hosts[b]) {
                return Err(BuildError::NoWay { flow: flow.to_owned(), from: names[a].clone(), to: names[b].clone() });
            }
        }
        let mut ports = [0; 2];
        for at in 0..2 {
            let next = &mut self.next_ports[hosts[at].index()];
            ports[at] = *next;
            *next = next
                .checked_add(1)
                .ok_or_else(|| unfit(&item, "ports", format!("none left at `{}`", names[at]), "64,511 connections a host"))?;
        }
        Ok(Pair { nodes: [from, to], route: Route { hosts, ports, v6 } })
    }

    /// Whether the routes lead from a node to a host.
    fn reaches(&self, mut node: NodeId, host: HostId) -> bool {
        for _ in 0..=self.node_names.len() {
            let Some(direction) = self.net.routes.next(node, host) else { return false };
            match self.net.directions[direction.index()].place {
                Place::Router(next) => node = next,
                Place::Assisted(router) => node = self.net.assisted[router.index()].node,
                Place::Host(end) => return end == host,
            }
        }
        false
    }

    /// Where the packets of an end of `flow` at `node` enter the network.
    fn egress(&self, flow: &str, way: Way, node: NodeId, protocol: Protocol, route: Route, initial_seq: u32) -> Egress {
        let exit = self.net.routes.next(node, route.hosts[1]).expect("a pair of hosts has ways to each other");
        let mut egress = Egress::new(protocol, route, exit, initial_seq);
        if self.send_overhead > Duration::ZERO {
            let purpose = format!("send overhead {}", way.name());
            let stream = Stream::new(self.seed, self.run, &format!("flow {flow}"), &purpose);
            egress.overhead = Some(Box::new(Overhead::new(self.send_overhead.as_nanos(), stream)));
        }
        egress
    }

    /// When the clock of a host ticks first, if its timers follow one: by chance, but for all its connections alike.
    fn clock_phase(&self, host: NodeId, granularity: Granularity) -> Option<Duration> {
        let tick = granularity.host_tick()?;
        let component = format!("host {}", self.node_names[host.index()]);
        let bits = Stream::new(self.seed, self.run, &component, "clock phase").bits();
        Some(Duration::from_nanos(bits % tick.as_nanos().max(1)))
    }

    /// Makes both ends of a connection and lets it open at `start`.
    fn connect(
        &mut self,
        flow: FlowState,
        [from, to]: [NodeId; 2],
        ends: (End, End),
        opening: Opening,
        striped: Option<(FileId, usize)>,
    ) -> Result<(), BuildError> {
        let item = format!("flow {}", flow.name);
        for end in [&ends.0, &ends.1] {
            end.config.check().map_err(|error| unfit(&item, error.field, error.found, error.allowed))?;
        }
        let header = ends.0.config.ip_header;
        if ends.1.config.ip_header != header {
            let found = format!("{header} and {}", ends.1.config.ip_header);
            return Err(unfit(&item, "ip_header", found, "20 (IPv4) or 40 (IPv6), the same at both ends"));
        }
        let pair = self.pair(&flow.name, from, to, header == 40)?;
        let mut nonces = Stream::new(self.seed, self.run, &item, "nonce key");
        let (name, start) = (flow.name.clone(), flow.start);
        let number = self.flow(flow);
        for (way, end) in Way::BOTH.into_iter().zip([ends.0, ends.1]) {
            let nonce_key = nonces.bits();
            let (node, route) = pair.end(way);
            let clock_phase = end.config.clock_phase.or_else(|| self.clock_phase(node, end.config.granularity));
            let id = EndpointId::of(number, way);
            let mut egress = self.egress(&name, way, node, Protocol::Tcp, route, end.config.initial_seq);
            self.hosts.ports.insert(route, id.peer());
            let sends = way == Way::Forward;
            egress.wants_truth = sends && end.parts.differentiators.want_truth();
            let [there, back] = [egress.exit, egress.exit.peer()].map(|direction| self.outages[direction.index()].clone());
            let opens = sends.then_some((start, opening));
            let outages = there.and(back);
            let waiting = Waiting { end, nonce_key, clock_phase, ports: ports(route), opens, striped, outages };
            self.end(id, egress, Socket::Waiting(Box::new(waiting)));
            if sends {
                let event = Event::new(start.as_nanos(), self.net.events.next_order(), Target::Timer(id));
                self.net.events.push(event);
            }
        }
        Ok(())
    }

    fn tcp(&mut self, spec: TcpFlow) -> Result<(), BuildError> {
        let TcpFlow { name, from, to, start, amount, sender, receiver } = spec;
        let item = format!("flow {name}");
        let flow = FlowState::new(name, start, Protocol::Tcp);
        let (flow, opening) = match amount {
            Amount::Unlimited => (flow, Opening::Produce(u64::MAX)),
            Amount::Octets(0) => return Err(unfit(&item, "octets", "0".to_owned(), "at least 1")),
            Amount::Octets(octets) => {
                self.hosts.flows.transfers += 1;
                (FlowState { amount: Some(octets), ..flow }, Opening::Produce(octets))
            }
            Amount::Paced(pacing) => {
                check_pacing(&item, &pacing, start)?;
                (FlowState { stop: pacing.stop, ..flow }, Opening::Wait)
            }
            Amount::Web(web) => match web.flaw() {
                Some(flaw) => return Err(BuildError::unfit(&item, flaw)),
                None => (flow, Opening::Wait),
            },
        };
        self.connect(flow, [from, to], (sender, receiver), opening, None)?;
        let number = FlowId::new(self.hosts.flows.all.len() - 1);
        let endpoint = EndpointId::of(number, Way::Forward);
        match amount {
            Amount::Paced(pacing) => self.source(&item, endpoint, start, &pacing),
            Amount::Web(web) => {
                let Self { seed, run, .. } = *self;
                let stream = |purpose: &str| Stream::new(seed, run, &item, &format!("web {purpose}"));
                let source = self.begin(Source::of_pages(endpoint), start);
                self.hosts.flows.all[number.index()].browser = Some((source, Box::new(Browser::new(web, stream))));
            }
            Amount::Unlimited | Amount::Octets(_) => {}
        }
        Ok(())
    }

    fn striped(&mut self, spec: StripedTransfer) -> Result<(), BuildError> {
        let StripedTransfer { name, from, to, start, octets, chunk, connections } = spec;
        let item = format!("flow {name}");
        if octets == 0 || chunk == 0 || connections.is_empty() {
            let found = format!("{octets} octets in chunks of {chunk} over {} connections", connections.len());
            return Err(unfit(&item, "size", found, "at least 1 of each"));
        }
        let file = FileId::new(self.hosts.flows.files.len());
        let stripes = Striped::new(octets, chunk, connections.len());
        for (number, ends) in connections.into_iter().enumerate() {
            let room = ends.0.config.send_buffer;
            if u64::from(chunk) > room {
                let found = format!("{chunk} octets");
                return Err(unfit(&item, "chunk", found, "no more than the send buffer of each connection"));
            }
            let flow = FlowState { file: Some(file), ..FlowState::new(format!("{name}/{number}"), start, Protocol::Tcp) };
            self.connect(flow, [from, to], ends, Opening::Stripe, Some((file, number)))?;
        }
        self.hosts.flows.files.push(FileState { name, start, octets, finished: None, failed: false, stripes });
        self.hosts.flows.transfers += 1;
        Ok(())
    }

    fn controlled(&mut self, number: FlowId, spec: DatagramFlow) -> Result<(), BuildError> {
        let DatagramFlow { name, from, to, start, stop, supply, sender, receiver } = spec;
        let item = format!("flow {name}");
        let (packet, coverage, header) = (sender.packet(), sender.coverage(), sender.ip_header());
        if packet == 0 || packet > 64_000 {
            return Err(unfit(&item, "packet", packet.to_string(), "1 to 64,000 octets of data"));
        }
        if coverage > 15 || usize::from(coverage.saturating_sub(1)) * 4 > packet as usize {
            return Err(unfit(&item, "coverage", coverage.to_string(), "0 to 15, and no more than the data of a packet"));
        }
        if supply == Supply::Rate(BitRate::from_bps(0)) {
            return Err(unfit(&item, "rate", "0 bps".to_owned(), "a rate above 0 bps"));
        }
        if start >= stop {
            return Err(unfit(&item, "stop", stop.to_string(), "a time after its start"));
        }
        if ![20, 40].contains(&header) || receiver.ip_header() != header {
            let found = format!("{header} and {}", receiver.ip_header());
            return Err(unfit(&item, "ip_header", found, "20 (IPv4) or 40 (IPv6), the same at both ends"));
        }
        let protocol = match (&sender, &receiver) {
            (datagram::Config::Dccp(_), datagram::Config::Dccp(_)) => Protocol::Dccp,
            (datagram::Config::Tfrc(_), datagram::Config::Tfrc(_)) => Protocol::Udp,
            _ => return Err(unfit(&item, "receiver", "another transport".to_owned(), "the transport of the sender")),
        };
        let pair = self.pair(&name, from, to, header == 40)?;
        for (way, config) in Way::BOTH.into_iter().zip([sender, receiver]) {
            let (node, route) = pair.end(way);
            let id = EndpointId::of(number, way);
            let egress = self.egress(&name, way, node, protocol, route, 0);
            self.hosts.ports.insert(route, id.peer());
            let end = datagram::Endpoint::new(config, ports(route));
            let socket = DatagramSocket::new(end, (way == Way::Forward).then_some((start, supply)));
            self.end(id, egress, Socket::Datagrams(Box::new(socket)));
        }
        let endpoint = EndpointId::of(number, Way::Forward);
        let event = Event::new(start.as_nanos(), self.net.events.next_order(), Target::Timer(endpoint));
        self.net.events.push(event);
        // The application: it supplies data at its rate, and it closes.
        let (rate, begin) = match supply {
            Supply::Rate(rate) => (rate, start),
            Supply::Saturated => (BitRate::from_bps(u64::MAX), stop),
        };
        self.hosts.flows.all[number.index()].stop = stop;
        self.source(&item, endpoint, begin, &Pacing { rate, octets: packet, stop, rhythm: Rhythm::default() });
        Ok(())
    }

    /// Makes what gives data to `endpoint`, from `begin` on.
    fn source(&mut self, item: &str, endpoint: EndpointId, begin: Instant, pacing: &Pacing) {
        let Self { seed, run, .. } = *self;
        let source = Source::new(endpoint, pacing, |purpose| Stream::new(seed, run, item, &format!("source {purpose}")));
        self.begin(source, begin);
    }

    /// Lets a source give at `begin` for the first time.
    fn begin(&mut self, source: Source, begin: Instant) -> SourceId {
        self.hosts.sources.push(source);
        let source = SourceId::new(self.hosts.sources.len() - 1);
        if begin < Instant::MAX {
            let event = Event::new(begin.as_nanos(), self.net.events.next_order(), Target::Source(source));
            self.net.events.push(event);
        }
        source
    }

    /// Puts a player at the receiver of a flow.
    pub fn playback(&mut self, flow: &str, playback: Playback) -> Result<(), BuildError> {
        let item = format!("playback of {flow}");
        if let Some(flaw) = playback.flaw() {
            return Err(BuildError::unfit(&item, flaw));
        }
        let Some(flow) = self.hosts.flows.all.iter_mut().find(|state| state.name == flow && state.file.is_none()) else {
            return Err(unfit(&item, "flow", format!("`{flow}`"), "the name of a flow that is not striped"));
        };
        flow.player = Some(Box::new(Player::new(playback, flow.start.as_nanos())));
        Ok(())
    }

    fn cbr(&mut self, number: FlowId, spec: &CbrFlow) -> Result<(), BuildError> {
        let item = format!("flow {}", spec.name);
        if spec.octets <= DATAGRAM_HEADERS || spec.octets > u32::from(u16::MAX) {
            return Err(unfit(&item, "octets", spec.octets.to_string(), "29 to 65,535"));
        }
        let CbrFlow { rate, octets, start, stop, rhythm, .. } = *spec;
        let pacing = Pacing { rate, octets, stop, rhythm };
        check_pacing(&item, &pacing, start)?;
        let pair = self.pair(&spec.name, spec.from, spec.to, false)?;
        for way in Way::BOTH {
            let (node, route) = pair.end(way);
            let egress = self.egress(&spec.name, way, node, Protocol::Udp, route, 0);
            self.end(EndpointId::of(number, way), egress, Socket::Udp);
        }
        let endpoint = EndpointId::of(number, Way::Forward);
        self.hosts.ports.insert(pair.route, endpoint.peer());
        self.hosts.flows.all[number.index()].stop = stop;
        self.source(&item, endpoint, start, &pacing);
        Ok(())
    }
}

fn check_pacing(item: &str, pacing: &Pacing, start: Instant) -> Result<(), BuildError> {
    let Pacing { rate, octets, stop, rhythm } = pacing;
    if *rate == BitRate::from_bps(0) {
        return Err(unfit(item, "rate", rate.to_string(), "a rate above 0 bps"));
    }
    if *octets == 0 {
        return Err(unfit(item, "octets", "0".to_owned(), "at least 1"));
    }
    if start >= *stop {
        return Err(unfit(item, "stop", stop.to_string(), "a time after its start"));
    }
    rhythm.flaw().map_or(Ok(()), |flaw| Err(BuildError::unfit(item, flaw)))
}
