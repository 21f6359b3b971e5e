//! What happens at the hosts: connections, applications and datagram sources.

use crate::dccp;
use crate::events::{Event, Target};
use crate::link::Transmitter;
use crate::network::{Network, Protocol};
use crate::octets::{Content, Route, DATAGRAM_HEADERS};
use crate::packet::PacketId;
use crate::record::TimeoutRow;
use crate::striped::Striped;
use crate::truth::Cause;
use std::collections::HashMap;
use whyloss_transport::differentiation::GapDifferentiator;
use whyloss_transport::segment::synthetic_octet;
use whyloss_transport::tcp::{self, Closing, GapRecord, LossRecord, State};
use whyloss_transport::{Command, Endpoint, Input, Instant, Integrity, Payload};

pub(crate) const NEVER: u64 = u64::MAX;

/// One end of a TCP connection at its host. The sender of flow data has an even number, its receiver the next one; both numbers are
/// also those of their outlets.
#[derive(Debug)]
pub(crate) struct Socket {
    pub tcp: Endpoint,
    /// When the next timer event that counts is due. An event of another time is stale.
    pub armed: u64,
    /// What to do when the connection is to be opened; taken when it is.
    pub opening: Option<Opening>,
    /// The striped transfer that it belongs to and its number among the connections.
    pub striped: Option<(u32, u32)>,
    /// It sends chunks of a file and may take more.
    pub feeding: bool,
    /// Octets that were in order at the last look.
    pub delivered: u64,
    /// Octets read by the application.
    pub read: u64,
    pub corrupted: u64,
}

/// What a sender's application does with a new connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Opening {
    /// Sends this many octets of the synthetic stream and closes; `u64::MAX` never ends.
    Produce(u64),
    /// Sends chunks of a file.
    Stripe,
}

/// A source of datagrams: plain ones, or data for a DCCP socket.
#[derive(Debug)]
pub(crate) struct Source {
    pub outlet: u32,
    pub octets: u32,
    pub stop: u64,
    pub sent: u64,
    pub pace: Transmitter,
}

/// What is known of a flow while it runs.
#[derive(Debug)]
pub(crate) struct Flow {
    pub name: String,
    pub start: Instant,
    /// Octets to deliver, if that is a number.
    pub amount: Option<u64>,
    pub striped: Option<u32>,
    /// The sender's socket, or the source's outlet.
    pub outlet: u32,
    pub protocol: Protocol,
    pub connected: Option<Instant>,
    pub first_data: Option<Instant>,
    pub last_data: Option<Instant>,
    pub finished: Option<Instant>,
    pub closing: Option<Closing>,
    pub failed: bool,
    pub octets: u64,
    /// Its timeouts of which nobody knows yet whether they were right, by their position in [`Hosts::timeouts`].
    pub unassessed: Vec<usize>,
}

/// A striped transfer while it runs.
#[derive(Debug)]
pub(crate) struct File {
    pub name: String,
    pub start: Instant,
    pub octets: u64,
    pub finished: Option<Instant>,
    pub failed: bool,
    pub stripes: Striped,
}

#[derive(Debug, Default)]
pub(crate) struct Hosts {
    pub sockets: Vec<Socket>,
    /// Ends of DCCP connections; their outlets come behind those of `sockets`.
    pub dccp: Vec<dccp::Socket>,
    pub sources: Vec<Source>,
    pub flows: Vec<Flow>,
    pub files: Vec<File>,
    /// Which outlet's owner a packet on a route is meant for. Only damaged packets are looked up.
    pub ports: HashMap<Route, u32>,
    pub losses: Vec<(u32, LossRecord)>,
    pub timeouts: Vec<TimeoutRow>,
    /// What differentiators at the receivers thought of gaps, with the flow.
    pub gaps: Vec<(u32, GapRecord)>,
    pub transfers: usize,
    pub transfers_over: usize,
}

impl Hosts {
    /// A packet has arrived at a host.
    pub fn deliver(&mut self, net: &mut Network, id: PacketId) {
        if id.is_damaged() {
            self.deliver_damaged(net, id);
            return;
        }
        let packet = net.packets.get(id);
        let origin = packet.origin;
        let to = origin ^ 1;
        // DCCP sockets have numbers beyond those of the TCP sockets, and sources beyond those.
        let Some(socket) = self.sockets.get_mut(to as usize) else {
            return if self.is_dccp(to) { self.deliver_dccp(net, id) } else { self.deliver_datagram(net, id) };
        };
        socket.tcp.handle(Instant::from_nanos(net.now), Input::Segment(&packet.segment, Integrity::Intact));
        net.outlets[origin as usize].counts.delivered += 1;
        net.packets.remove(id);
        self.pump(net, to);
    }

    fn deliver_datagram(&mut self, net: &mut Network, id: PacketId) {
        let packet = net.packets.get(id);
        let from = &mut net.outlets[packet.origin as usize];
        from.counts.delivered += 1;
        let flow = &mut self.flows[from.flow as usize];
        flow.octets += u64::from(packet.octets - DATAGRAM_HEADERS);
        let now = Some(Instant::from_nanos(net.now));
        flow.first_data = flow.first_data.or(now);
        flow.last_data = now;
        net.packets.remove(id);
    }

    /// The host takes from a damaged packet what it can.
    fn deliver_damaged(&mut self, net: &mut Network, id: PacketId) {
        let now = Instant::from_nanos(net.now);
        let origin = net.packets.get(id).origin as usize;
        let (content, place) = net.content(id);
        match content {
            Content::Tcp(route, segment, integrity) => {
                let Some(&to) = self.ports.get(&route).filter(|&&to| (to as usize) < self.sockets.len()) else {
                    return net.discard_damaged(id, Cause::NoFlow);
                };
                self.sockets[to as usize].tcp.handle(now, Input::Segment(&segment, integrity));
                match place {
                    Some(cause) if integrity != Integrity::Intact => net.discard_damaged(id, cause),
                    _ => {
                        let counts = &mut net.outlets[origin].counts;
                        counts.delivered += 1;
                        counts.damaged_unnoticed += u64::from(place.is_some());
                        net.packets.remove(id);
                    }
                }
                self.pump(net, to);
            }
            Content::Dccp(route, packet, data) => self.deliver_damaged_dccp(net, id, route, &packet, data, place),
            Content::Datagram(route, intact) => match place {
                Some(_) if !self.ports.contains_key(&route) => net.discard_damaged(id, Cause::NoFlow),
                Some(cause) if !intact => net.discard_damaged(id, cause),
                place => {
                    net.outlets[origin].counts.damaged_unnoticed += u64::from(place.is_some());
                    self.deliver_datagram(net, id);
                }
            },
            Content::Garbage => net.discard_damaged(id, place.unwrap_or(Cause::NoFlow)),
        }
    }

    /// A timer event of a socket.
    pub fn timer(&mut self, net: &mut Network, index: u32) {
        let Some(socket) = self.sockets.get_mut(index as usize) else { return self.dccp_timer(net, index) };
        if socket.armed != net.now {
            return;
        }
        socket.armed = NEVER;
        let now = Instant::from_nanos(net.now);
        if let Some(opening) = socket.opening.take() {
            socket.tcp.handle(now, Input::Command(Command::Connect));
            match opening {
                Opening::Produce(octets) => {
                    socket.tcp.handle(now, Input::Command(Command::Produce(octets)));
                }
                // Chunks are dealt out to connections that stand: see `Connected`.
                Opening::Stripe => {}
            }
            self.pump(net, index);
        } else if socket.tcp.poll_timeout().is_some_and(|due| due <= now) {
            socket.tcp.handle_timeout(now);
            self.pump(net, index);
        } else {
            self.arm(net, index);
        }
    }

    /// Sees to it that a timer event comes in time. One that comes too early is found out when it comes: acknowledgements put the
    /// timer off all the time, and moving its event as often would cost more.
    fn arm(&mut self, net: &mut Network, index: u32) {
        let socket = &mut self.sockets[index as usize];
        let Some(due) = socket.tcp.poll_timeout() else { return };
        let due = due.as_nanos().max(net.now);
        if due < socket.armed {
            socket.armed = due;
            let event = Event::new(due, net.events.next_order(), Target::Timer(index));
            net.events.push(event);
        }
    }

    /// Lets a socket do what it has to do after something happened to it.
    fn pump(&mut self, net: &mut Network, index: u32) {
        let now = Instant::from_nanos(net.now);
        if index % 2 == 1 {
            let socket = &self.sockets[index as usize];
            if socket.tcp.stats().octets_delivered != socket.delivered {
                self.receive(net, index);
            }
        }
        loop {
            let socket = &mut self.sockets[index as usize];
            let fed = socket.feeding && feed(&mut self.files, socket, now);
            while let Some(segment) = socket.tcp.poll_transmit(now) {
                net.send(index, segment);
            }
            if fed {
                continue;
            }
            let Some(event) = socket.tcp.poll_event() else { break };
            self.on_event(net, index, event);
        }
        self.arm(net, index);
    }

    fn on_event(&mut self, net: &Network, index: u32, event: tcp::Event) {
        let now = Instant::from_nanos(net.now);
        let number = net.outlets[index as usize].flow;
        let flow = &mut self.flows[number as usize];
        let sends = index % 2 == 0;
        match event {
            tcp::Event::Connected if sends => {
                flow.connected = Some(now);
                // Not before: closing in SYN-SENT gives up what is to be sent (RFC 9293, 3.10.4).
                let socket = &mut self.sockets[index as usize];
                if flow.amount.is_some() {
                    socket.tcp.handle(now, Input::Command(Command::Close));
                }
                socket.feeding = socket.striped.is_some();
            }
            tcp::Event::PeerClosed if !sends => {
                self.sockets[index as usize].tcp.handle(now, Input::Command(Command::Close));
            }
            tcp::Event::Closed(closing) => self.on_closed(number, sends, closing),
            tcp::Event::Loss(record) if sends => self.losses.push((number, *record)),
            tcp::Event::Timeout(record) if sends => {
                flow.unassessed.push(self.timeouts.len());
                self.timeouts.push(TimeoutRow::new(number, *record));
            }
            tcp::Event::TimeoutAssessed(outcome) if sends => {
                for index in flow.unassessed.drain(..) {
                    let row = &mut self.timeouts[index];
                    (row.outcome, row.assessed) = (outcome, Some(now));
                }
            }
            tcp::Event::Gap(record) if !sends => self.gaps.push((number, *record)),
            _ => {}
        }
    }

    /// A connection is over. If its data has not arrived by then, it never will.
    pub fn on_closed(&mut self, number: u32, sends: bool, closing: Closing) {
        let flow = &mut self.flows[number as usize];
        if sends || closing != Closing::Normal {
            flow.closing = flow.closing.or(Some(closing));
        }
        if closing == Closing::Normal {
            return;
        }
        if let Some(file) = flow.striped.map(|file| &mut self.files[file as usize]) {
            if file.finished.is_none() && !file.failed {
                file.failed = true;
                self.transfers_over += 1;
            }
        } else if flow.amount.is_some() && flow.finished.is_none() && !flow.failed {
            flow.failed = true;
            self.transfers_over += 1;
        }
    }

    /// The application at the receiving end reads what is in order.
    fn receive(&mut self, net: &Network, index: u32) {
        let now = Instant::from_nanos(net.now);
        let socket = &mut self.sockets[index as usize];
        let flow = &mut self.flows[net.outlets[index as usize].flow as usize];
        while let Some(piece) = socket.tcp.read(now, usize::MAX) {
            if let Some((file, connection)) = socket.striped {
                let mut at = 0;
                let stripes = &mut self.files[file as usize].stripes;
                stripes.deliver(connection as usize, piece.len() as u64, |len, position| {
                    socket.corrupted += mismatches(&piece, at, len, position);
                    at += len;
                });
            } else {
                socket.corrupted += mismatches(&piece, 0, piece.len() as u64, socket.read);
            }
            socket.read += piece.len() as u64;
        }
        socket.delivered = socket.tcp.stats().octets_delivered;
        flow.octets = socket.delivered;
        flow.first_data = flow.first_data.or(Some(now));
        flow.last_data = Some(now);
        if flow.amount == Some(socket.delivered) {
            flow.finished = Some(now);
            self.transfers_over += 1;
        }
        if let Some(file) = flow.striped.map(|file| &mut self.files[file as usize]) {
            if file.stripes.complete() && file.finished.is_none() {
                file.finished = Some(now);
                self.transfers_over += 1;
            }
        }
    }

    /// A source sends its next datagram.
    pub fn emit(&mut self, net: &mut Network, index: u32) {
        if self.is_dccp(self.sources[index as usize].outlet) {
            return self.supply(net, index);
        }
        let source = &mut self.sources[index as usize];
        let (outlet, octets, number) = (source.outlet, source.octets, source.sent);
        source.sent += 1;
        let next = net.now + source.pace.serialise(octets);
        if next < source.stop {
            let event = Event::new(next, net.events.next_order(), Target::Source(index));
            net.events.push(event);
        }
        net.send_datagram(outlet, number, octets);
    }

    /// The differentiators in shadow at a flow's receiver.
    pub fn receiver_shadows(&self, flow: &Flow) -> &[(String, Box<dyn GapDifferentiator>)] {
        let receiver = if flow.protocol == Protocol::Tcp { self.sockets.get(flow.outlet as usize + 1) } else { None };
        receiver.map_or(&[], |socket| &socket.tcp.parts().receiver_shadows)
    }

    /// Flows that are not over although nothing is left to happen.
    pub fn stalled(&self) -> Vec<String> {
        let over = |flow: &&Flow| match flow.striped.map(|file| &self.files[file as usize]) {
            _ if flow.protocol != Protocol::Tcp || flow.closing.is_some() => false,
            Some(file) => file.finished.is_none() && !file.failed,
            None => flow.finished.is_none(),
        };
        self.flows.iter().filter(over).map(|flow| flow.name.clone()).collect()
    }
}

/// Gives a connection of a striped transfer its next chunk, if it can soon send it: as long as a chunk waits in its buffer, another
/// connection may be faster. Returns whether it took one.
fn feed(files: &mut [File], socket: &mut Socket, now: Instant) -> bool {
    let Some((file, connection)) = socket.striped else { return false };
    // Not before: closing in SYN-SENT gives up what is to be sent (RFC 9293, 3.10.4).
    if matches!(socket.tcp.state(), State::Closed | State::SynSent) {
        return false;
    }
    let stripes = &mut files[file as usize].stripes;
    if stripes.exhausted() {
        socket.feeding = false;
        socket.tcp.handle(now, Input::Command(Command::Close));
        return false;
    }
    if socket.tcp.unsent() >= u64::from(stripes.chunk()) {
        return false;
    }
    let Some((offset, len)) = stripes.take(connection as usize, socket.tcp.send_space()) else { return false };
    // Octets, not a synthetic range: a connection numbers its own stream, and the file's octets are to be checked at the end.
    let octets = Payload::Synthetic { offset, len }.to_bytes();
    socket.tcp.handle(now, Input::Command(Command::Send(Payload::Bytes(octets))));
    true
}

/// How many of the `len` octets from `at` on in `piece` are not those of the synthetic stream from `position` on.
pub(crate) fn mismatches(piece: &Payload, at: u64, len: u64, position: u64) -> u64 {
    let wrong = |octet: &dyn Fn(u64) -> u8| (0..len).filter(|&i| octet(at + i) != synthetic_octet(position + i)).count() as u64;
    match piece {
        Payload::Empty => 0,
        Payload::Synthetic { offset, .. } if offset + at == position => 0,
        Payload::Synthetic { offset, .. } => wrong(&|i| synthetic_octet(offset + i)),
        Payload::Bytes(bytes) => wrong(&|i| bytes[i as usize]),
    }
}
