//! Hosts that move: routes that change, and what agents hand over to those of another station.

use super::{Network, Protocol};
use crate::address::{AssistedId, EndpointId, FlowId, HostId, LinkId, NodeId, Way};
use crate::events::{Event, Target};
use crate::middlebox::{Handed, Outbox};
use crate::moves::Move;
use crate::routes::Routes;
use std::collections::VecDeque;
use whyloss_transport::{BitRate, Duration, Instant};

/// What is to come of all hosts' moves.
#[derive(Debug)]
pub(crate) struct Moves {
    nodes: usize,
    /// The node of each host.
    hosts: Vec<NodeId>,
    /// The ends of all links, and whether routes lead over them.
    links: Vec<([NodeId; 2], bool)>,
    /// Ascending by time.
    steps: VecDeque<Step>,
    /// Ascending by time.
    under_way: Vec<Parcel>,
}

/// A host attaches to another link.
#[derive(Clone, Debug)]
struct Step {
    at: u64,
    host: HostId,
    from: LinkId,
    to: LinkId,
    delay: Duration,
    rate: Option<BitRate>,
}

/// An agent, by its router and its place there.
type Place = (AssistedId, usize);

/// What an agent has handed over, on its way to another.
#[derive(Debug)]
struct Parcel {
    at: u64,
    host: HostId,
    flow: FlowId,
    handed: Handed,
    to: Place,
}

impl Moves {
    /// Those of hosts with their links, first the one that they are attached to at the beginning. `hosts` are the nodes of all hosts, `links`
    /// the ends of all links.
    pub fn new(nodes: usize, hosts: Vec<NodeId>, links: Vec<[NodeId; 2]>, all: &[(HostId, Vec<LinkId>, &[Move])]) -> Self {
        let mut links: Vec<_> = links.into_iter().map(|ends| (ends, true)).collect();
        let mut steps = Vec::new();
        for (host, own, moves) in all {
            let mut from = own[0];
            for other in &own[1..] {
                links[other.index()].1 = false;
            }
            for step in *moves {
                let (at, to) = (step.attached().as_nanos(), step.link);
                steps.push(Step { at, host: *host, from, to, delay: step.state_delay, rate: step.state_rate });
                from = to;
            }
        }
        steps.sort_by_key(|step| step.at);
        Self { nodes, hosts, links, steps: steps.into(), under_way: Vec::new() }
    }

    /// The routes as the hosts stand now.
    pub fn routes(&self) -> Routes {
        let links = self.links.iter().enumerate().filter(|(_, (_, usable))| *usable);
        Routes::new(self.nodes, &self.hosts, links.map(|(number, (ends, _))| (LinkId::new(number), *ends)))
    }

    fn next_at(&self) -> Option<u64> {
        self.steps.front().map(|step| step.at).into_iter().chain(self.under_way.first().map(|parcel| parcel.at)).min()
    }

    fn send(&mut self, parcel: Parcel) {
        let place = self.under_way.partition_point(|other| other.at <= parcel.at);
        self.under_way.insert(place, parcel);
    }
}

impl Network {
    /// Sees to it that the next move comes in time.
    pub(crate) fn arm_moves(&mut self) {
        if let Some(at) = self.moves.as_ref().and_then(|moves| moves.next_at()) {
            let event = Event::new(at, self.events.next_order(), Target::Moves);
            self.events.push(event);
        }
    }

    /// A host has come to another link, or what one agent has handed over has come to another.
    pub fn handle_moves(&mut self) {
        let Some(mut moves) = self.moves.take() else { return };
        while moves.steps.front().is_some_and(|step| step.at <= self.now) {
            let Some(step) = moves.steps.pop_front() else { break };
            self.attach(&mut moves, &step);
        }
        while moves.under_way.first().is_some_and(|parcel| parcel.at <= self.now) {
            let Parcel { flow, handed, to: (router, number), .. } = moves.under_way.remove(0);
            let attached = &mut self.assisted[router.index()].agents[number];
            let mut out = Outbox::default();
            attached.agent.take_over(Instant::from_nanos(self.now), flow, handed.state, &mut out);
            attached.note_held();
            let work = out.take().into_iter().map(|outgoing| (number, outgoing)).collect();
            self.send_all(router, work);
        }
        self.moves = Some(moves);
        self.arm_moves();
    }

    fn attach(&mut self, moves: &mut Moves, step: &Step) {
        moves.links[step.from.index()].1 = false;
        moves.links[step.to.index()].1 = true;
        self.routes = moves.routes();
        for egress in &mut self.egress {
            let [from, to] = egress.route.hosts;
            // Where no way leads any more, the old one is the way to nowhere.
            egress.exit = self.routes.next(moves.hosts[from.index()], to).unwrap_or(egress.exit);
        }
        let [old, new] = [step.from, step.to].map(|link| self.agents_of(link));
        for (nth, &place) in old.iter().enumerate() {
            let name = |(router, number): Place| self.assisted[router.index()].agents[number].name;
            let before = old[..nth].iter().filter(|other| name(**other) == name(place)).count();
            let heir = new.iter().copied().filter(|other| name(*other) == name(place)).nth(before);
            self.hand_over(moves, step, place, heir);
        }
    }

    /// The agents of a link, at either of its ends.
    fn agents_of(&self, link: LinkId) -> Vec<Place> {
        let routers = self.assisted.iter().enumerate();
        let all = routers.flat_map(|(router, assisted)| {
            assisted.agents.iter().enumerate().map(move |(number, agent)| ((AssistedId::new(router), number), agent))
        });
        all.filter(|(_, agent)| agent.outgoing.link() == link).map(|(place, _)| place).collect()
    }

    /// An agent hands over what it remembers of a host's flows, and what is on its way to it follows the host.
    fn hand_over(&mut self, moves: &mut Moves, step: &Step, place: Place, heir: Option<Place>) {
        let mut octets = 0;
        let mut arrives = |now: u64, handed: &Handed| {
            if handed.ahead {
                return now;
            }
            octets += handed.octets;
            let sending = step.rate.map_or(Duration::ZERO, |rate| rate.serialise(octets, 0).0);
            now.saturating_add(step.delay.as_nanos()).saturating_add(sending.as_nanos())
        };
        let (followers, others) =
            std::mem::take(&mut moves.under_way).into_iter().partition(|parcel| parcel.to == place && parcel.host == step.host);
        moves.under_way = others;
        let followers: Vec<Parcel> = followers;
        let mut found = Vec::new();
        for Parcel { at, flow, handed, .. } in followers {
            self.assisted[place.0.index()].agents[place.1].agent.forget(flow);
            found.push((arrives(at, &handed), flow, handed));
        }
        for flow in self.flows_of(step.host) {
            let attached = &mut self.assisted[place.0.index()].agents[place.1];
            let Some(handed) = attached.agent.hand_over(flow) else { continue };
            let at = arrives(self.now, &handed);
            attached.counts.moved_flows += 1;
            attached.counts.moved_octets += handed.octets;
            attached.counts.longest_move = attached.counts.longest_move.max(at - self.now);
            found.push((at, flow, handed));
        }
        self.arm_agents(place.0);
        let Some(to) = heir else { return };
        for (at, flow, handed) in found {
            self.assisted[to.0.index()].agents[to.1].agent.expect(flow);
            moves.send(Parcel { at, host: step.host, flow, handed, to });
        }
    }

    /// TCP flows of a host.
    fn flows_of(&self, host: HostId) -> Vec<FlowId> {
        let flows = (0..self.egress.len() / 2).map(FlowId::new);
        let own = flows.filter(|flow| {
            let egress = &self.egress[EndpointId::of(*flow, Way::Forward).index()];
            egress.protocol == Protocol::Tcp && egress.route.hosts.contains(&host)
        });
        own.collect()
    }
}
