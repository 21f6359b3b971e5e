//! What works at the hosts: connections, applications and datagram sources.

mod datagrams;
mod flows;
mod gaps;
mod source;
mod tcp;

pub(crate) use datagrams::DatagramSocket;
pub(crate) use flows::{FileState, FlowState, Flows};
pub(crate) use source::Source;
pub(crate) use tcp::{Opening, TcpSocket, Waiting};

use crate::address::{EndpointId, FlowId, SourceId, Way};
use crate::events::{Event, Target};
use crate::network::Network;
use crate::octets::{Content, Route, DATAGRAM_HEADERS};
use crate::packet::PacketId;
use crate::record::FlowSample;
use crate::truth::Cause;
use std::collections::HashMap;
use whyloss_transport::datagram::{dccp, Command, Endpoint};
use whyloss_transport::differentiation::GapDifferentiator;
use whyloss_transport::tcp::Stats;
use whyloss_transport::wire::dccp::{Data, Packet};
use whyloss_transport::{path, Input, Instant, Integrity, Parts, Segment};

/// What an endpoint is: who gets the packets that are sent to it.
#[derive(Debug)]
pub(crate) enum Socket {
    /// An end of a TCP connection that nothing has happened to yet.
    Waiting(Box<Waiting>),
    Tcp(Box<TcpSocket>),
    Datagrams(Box<DatagramSocket>),
    /// Plain datagrams: the receiver only counts them.
    Udp,
}

impl Socket {
    /// Something happens to the socket: if it has waited, its connection is made.
    #[inline(never)]
    fn wake(&mut self) -> &mut Self {
        if matches!(self, Self::Waiting(_)) {
            if let Self::Waiting(waiting) = std::mem::replace(self, Self::Udp) {
                *self = Self::Tcp(Box::new(TcpSocket::new(*waiting)));
            }
        }
        self
    }

    /// The algorithms of a TCP connection.
    fn parts(&self) -> Option<&Parts> {
        match self {
            Self::Waiting(waiting) => Some(&waiting.end.parts),
            Self::Tcp(socket) => Some(socket.tcp.parts()),
            Self::Datagrams(_) | Self::Udp => None,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// One for each endpoint, at its number.
    pub sockets: Vec<Socket>,
    pub sources: Vec<Source>,
    pub flows: Flows,
    /// Which endpoint a packet on a route is meant for. Only damaged packets are looked up.
    pub ports: HashMap<Route, EndpointId>,
}

impl Hosts {
    /// Delivers a packet that has arrived at a host.
    #[inline]
    pub fn deliver(&mut self, net: &mut Network, id: PacketId) {
        if id.is_damaged() {
            return self.deliver_damaged(net, id);
        }
        let packet = net.packets.get(&id);
        let to = packet.origin.peer();
        let mut socket = &mut self.sockets[to.index()];
        if !matches!(socket, Socket::Tcp(_)) {
            socket = socket.wake();
        }
        let Socket::Tcp(socket) = socket else { return self.deliver_as_sent(net, id, false) };
        socket.tcp.handle(Instant::from_nanos(net.now), Input::Segment(&packet.segment, Integrity::Intact));
        net.complete(id, false);
        socket.pump_inline(to, &mut self.flows, net);
    }

    /// A packet of a transport of datagrams whose checksum holds. If damage to it went `unnoticed`, it counts as what was sent.
    #[inline(never)]
    fn deliver_as_sent(&mut self, net: &mut Network, id: PacketId, unnoticed: bool) {
        let packet = net.packets.get_mut(&id);
        let to = packet.origin.peer();
        let Socket::Datagrams(socket) = &mut self.sockets[to.index()] else { return self.deliver_datagram(net, id, unnoticed) };
        if let Some(datagram) = packet.datagram.take() {
            socket.end.on_packet(Instant::from_nanos(net.now), &datagram);
        }
        net.complete(id, unnoticed);
        socket.pump(to, &mut self.flows, net, None);
    }

    fn deliver_datagram(&mut self, net: &mut Network, id: PacketId, unnoticed: bool) {
        let packet = net.packets.get(&id);
        let flow = self.flows.of(packet.origin);
        flow.note_data(flow.octets + u64::from(packet.octets - DATAGRAM_HEADERS), Instant::from_nanos(net.now));
        net.complete(id, unnoticed);
    }

    /// The host takes from a damaged packet what it can.
    #[inline(never)]
    fn deliver_damaged(&mut self, net: &mut Network, id: PacketId) {
        let (content, place) = net.content(&id);
        match content {
            Content::Tcp(route, segment, integrity) => self.deliver_damaged_segment(net, id, route, &segment, integrity, place),
            Content::Dccp(route, packet, data) => self.deliver_damaged_dccp(net, id, route, &packet, data, place),
            Content::Datagram(route, intact) => match place {
                Some(_) if !self.ports.contains_key(&route) => net.discard_damaged(id, Cause::NoFlow),
                Some(cause) if !intact => net.discard_damaged(id, cause),
                place => self.deliver_as_sent(net, id, place.is_some()),
            },
            Content::Garbage => net.discard_damaged(id, place.unwrap_or(Cause::NoFlow)),
        }
    }

    /// A damaged segment arrives of which something is known. `place` is where it is damaged; `None` if it is as it was sent.
    fn deliver_damaged_segment(
        &mut self,
        net: &mut Network,
        id: PacketId,
        route: Route,
        segment: &Segment,
        integrity: Integrity,
        place: Option<Cause>,
    ) {
        let Some(&to) = self.ports.get(&route) else { return net.discard_damaged(id, Cause::NoFlow) };
        let Socket::Tcp(socket) = self.sockets[to.index()].wake() else { return net.discard_damaged(id, Cause::NoFlow) };
        socket.tcp.handle(Instant::from_nanos(net.now), Input::Segment(segment, integrity));
        match place {
            Some(cause) if integrity != Integrity::Intact => net.discard_damaged(id, cause),
            _ => net.complete(id, place.is_some()),
        }
        socket.pump(to, &mut self.flows, net);
    }

    /// A damaged packet arrives whose header checksum holds. `place` is where it is damaged; `None` if it is as it was sent.
    fn deliver_damaged_dccp(
        &mut self,
        net: &mut Network,
        id: PacketId,
        route: Route,
        packet: &Packet,
        data: Data,
        place: Option<Cause>,
    ) {
        let Some(&to) = self.ports.get(&route) else { return net.discard_damaged(id, Cause::NoFlow) };
        let Socket::Datagrams(socket) = &mut self.sockets[to.index()] else { return net.discard_damaged(id, Cause::NoFlow) };
        let (offset, _) = net.data(&id);
        let Endpoint::Dccp(end) = &mut socket.end else { return net.discard_damaged(id, Cause::NoFlow) };
        end.handle(Instant::from_nanos(net.now), dccp::Input::Packet(packet, data));
        let used = data == Data::Intact || end.config().accept_corrupt;
        // The Data Checksum may tell of the data alone: a header that is damaged, too, was believed.
        let unnoticed = place.is_some_and(|cause| data == Data::Intact || cause != Cause::PayloadDamaged);
        let origin = net.packets.get(&id).origin;
        net.egress[origin.index()].counts.damaged_unnoticed += u64::from(unnoticed);
        match place {
            Some(cause) if !used => net.discard_damaged(id, cause),
            _ => net.complete(id, false),
        }
        socket.pump(to, &mut self.flows, net, Some(offset));
    }

    /// The timer event of an endpoint.
    pub fn handle_timer(&mut self, net: &mut Network, end: EndpointId) {
        match &mut self.sockets[end.index()] {
            Socket::Tcp(socket) => socket.timer(end, &mut self.flows, net),
            Socket::Datagrams(socket) => socket.timer(end, &mut self.flows, net),
            Socket::Udp => {}
            waiting @ Socket::Waiting(_) => {
                waiting.wake();
                self.handle_timer(net, end);
            }
        }
    }

    /// The event of a source: it sends its next datagram, or gives data to its socket, or closes it.
    pub fn handle_source(&mut self, net: &mut Network, id: SourceId) {
        let source = &mut self.sources[id.index()];
        let Source { endpoint, octets, stop, sent: number, .. } = *source;
        let socket = self.sockets[endpoint.index()].wake();
        if let (Some((_, browser)), Socket::Tcp(socket)) = (&mut self.flows.of(endpoint).browser, &mut *socket) {
            let octets = browser.ask(Instant::from_nanos(net.now));
            return socket.produce(endpoint, &mut self.flows, net, Some(octets));
        }
        let over = net.now >= stop;
        if !over {
            let next = source.send(net.now).min(stop);
            // At its end it closes its socket.
            if next < stop || !matches!(socket, Socket::Udp) {
                let event = Event::new(next, net.events.next_order(), Target::Source(id));
                net.events.push(event);
            }
        }
        match socket {
            Socket::Tcp(socket) => socket.produce(endpoint, &mut self.flows, net, Some(octets.into()).filter(|_| !over)),
            Socket::Datagrams(socket) => {
                let command = if over { Command::Close } else { Command::Produce { octets, packets: 1 } };
                socket.command(endpoint, &mut self.flows, net, command);
            }
            Socket::Waiting(_) | Socket::Udp => net.send_datagram(endpoint, number, octets),
        }
    }

    /// Tells a sender what really became of data that it sent.
    pub fn reveal(&mut self, end: EndpointId, fate: &path::TransmissionFate) {
        if let Socket::Tcp(socket) = &mut self.sockets[end.index()] {
            socket.tcp.reveal(fate);
        }
    }

    /// A flow's sender at a moment; `None` for plain datagrams.
    pub fn sample(&mut self, at: Instant, flow: FlowId) -> Option<FlowSample> {
        let octets_delivered = self.flows.all[flow.index()].octets;
        let end = EndpointId::of(flow, Way::Forward);
        self.sockets[end.index()].wake();
        let stats = self.stats(end);
        let [data_octets_sent, losses, timeouts] =
            stats.map_or([0; 3], |stats| [stats.data_octets_sent, stats.losses, stats.timeouts]);
        let sample = |cwnd, ssthresh, srtt, pipe| FlowSample {
            at,
            flow: flow.index(),
            cwnd,
            ssthresh,
            srtt,
            pipe,
            octets_delivered,
            data_octets_sent,
            losses,
            timeouts,
        };
        match &self.sockets[end.index()] {
            Socket::Tcp(socket) => {
                let tcp = &socket.tcp;
                Some(sample(tcp.window().cwnd(), tcp.window().ssthresh(), tcp.path().srtt, tcp.pipe()))
            }
            Socket::Datagrams(socket) => {
                let view = socket.end.view();
                Some(sample(view.cwnd, view.ssthresh, view.srtt, view.pipe))
            }
            Socket::Waiting(_) | Socket::Udp => None,
        }
    }

    /// Counters of an endpoint; `None` for plain datagrams.
    pub fn stats(&self, end: EndpointId) -> Option<Stats> {
        match &self.sockets[end.index()] {
            Socket::Waiting(_) => Some(Stats::default()),
            Socket::Tcp(socket) => Some(*socket.tcp.stats()),
            Socket::Datagrams(socket) => Some(*socket.end.stats()),
            Socket::Udp => None,
        }
    }

    /// Offset in the data of an endpoint below which it will tell of no more losses; `u64::MAX` if it will tell of none.
    pub fn losses_told_below(&self, end: EndpointId) -> u64 {
        match &self.sockets[end.index()] {
            Socket::Waiting(_) => 0,
            Socket::Tcp(socket) if socket.is_over() => u64::MAX,
            Socket::Tcp(socket) => socket.tcp.losses_told_below(),
            Socket::Datagrams(socket) => socket.end.losses_told_below(),
            Socket::Udp => u64::MAX,
        }
    }

    /// Octets that reached a flow's receiver with another value than they were sent with.
    pub fn corrupted(&self, flow: FlowId) -> u64 {
        match &self.sockets[EndpointId::of(flow, Way::Reverse).index()] {
            Socket::Tcp(socket) => socket.corrupted,
            Socket::Datagrams(socket) => socket.corrupted,
            Socket::Waiting(_) | Socket::Udp => 0,
        }
    }

    /// The differentiators in shadow at a flow's receiver.
    pub fn receiver_shadows(&self, flow: FlowId) -> &[(String, Box<dyn GapDifferentiator>)] {
        let parts = self.sockets[EndpointId::of(flow, Way::Reverse).index()].parts();
        parts.map_or(&[][..], |parts| &parts.receiver_shadows)
    }

    /// Names of a flow's differentiators in shadow, those at the sender before those at the receiver.
    pub fn shadow_names(&self, flow: FlowId) -> Vec<String> {
        let Some(sender) = self.sockets[EndpointId::of(flow, Way::Forward).index()].parts() else { return Vec::new() };
        let at_sender = sender.differentiators.shadows.iter().map(|(name, _)| name);
        at_sender.chain(self.receiver_shadows(flow).iter().map(|(name, _)| name)).cloned().collect()
    }
}
