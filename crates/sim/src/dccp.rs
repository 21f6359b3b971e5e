//! DCCP connections at their hosts.

use crate::events::{Event, Target};
use crate::hosts::{mismatches, Hosts, NEVER};
use crate::network::Network;
use crate::octets::Route;
use crate::packet::PacketId;
use crate::record::{FlowSample, TimeoutRow};
use crate::truth::Cause;
use crate::Supply;
use whyloss_transport::datagram::dccp::{self, Command, Endpoint, Input};
use whyloss_transport::wire::dccp::{Data, Packet};
use whyloss_transport::Instant;

/// One end of a DCCP connection. As with TCP, the sender of flow data has an even number among them, its receiver the next one.
#[derive(Debug)]
pub(crate) struct Socket {
    pub end: Endpoint,
    /// When the next timer event that counts is due. An event of another time is stale.
    armed: u64,
    /// What the sender is to do first.
    opening: Option<Supply>,
    /// Octets that reached the application with another value than they were sent with.
    pub corrupted: u64,
}

impl Socket {
    /// `opens` says when the sender opens the connection, and what it sends; the receiver waits for it.
    pub fn new(mut end: Endpoint, opens: Option<(Instant, Supply)>) -> Self {
        if opens.is_none() {
            end.handle(Instant::ZERO, Input::Command(Command::Listen));
        }
        Self { end, armed: opens.map_or(NEVER, |(at, _)| at.as_nanos()), opening: opens.map(|(_, supply)| supply), corrupted: 0 }
    }
}

impl Hosts {
    /// Whether an outlet is that of a DCCP socket.
    pub fn is_dccp(&self, outlet: u32) -> bool {
        (outlet as usize).checked_sub(self.sockets.len()).is_some_and(|number| number < self.dccp.len())
    }

    fn dccp_socket(&mut self, outlet: u32) -> &mut Socket {
        &mut self.dccp[outlet as usize - self.sockets.len()]
    }

    /// The two ends of a connection; `outlet` is the sender's.
    pub fn dccp_pair(&self, outlet: u32) -> Option<&[Socket]> {
        let first = (outlet as usize).checked_sub(self.sockets.len())?;
        self.dccp.get(first..first + 2)
    }

    /// A packet arrives as it was sent.
    pub fn deliver_dccp(&mut self, net: &mut Network, id: PacketId) {
        let packet = net.packets.get_mut(id);
        let origin = packet.origin;
        let Some(dccp) = packet.dccp.take() else { return };
        self.dccp_socket(origin ^ 1).end.handle(Instant::from_nanos(net.now), Input::Packet(&dccp, Data::Intact));
        net.outlets[origin as usize].counts.delivered += 1;
        net.packets.remove(id);
        self.dccp_pump(net, origin ^ 1, None);
    }

    /// A damaged packet arrives whose header checksum holds. `place` is where it is damaged; `None` if it is as it was sent.
    pub fn deliver_damaged_dccp(
        &mut self,
        net: &mut Network,
        id: PacketId,
        route: Route,
        packet: &Packet,
        data: Data,
        place: Option<Cause>,
    ) {
        let Some(to) = self.ports.get(&route).copied().filter(|&to| self.is_dccp(to)) else {
            return net.discard_damaged(id, Cause::NoFlow);
        };
        let origin = net.packets.get(id).origin as usize;
        let (offset, _) = net.data(id);
        let socket = self.dccp_socket(to);
        socket.end.handle(Instant::from_nanos(net.now), Input::Packet(packet, data));
        let used = data == Data::Intact || socket.end.config().accept_corrupt;
        match place {
            Some(cause) if !used => net.discard_damaged(id, cause),
            place => {
                let counts = &mut net.outlets[origin].counts;
                counts.delivered += 1;
                counts.damaged_unnoticed += u64::from(place.is_some() && data == Data::Intact);
                net.packets.remove(id);
            }
        }
        self.dccp_pump(net, to, Some(offset));
    }

    /// A timer event of a socket.
    pub fn dccp_timer(&mut self, net: &mut Network, outlet: u32) {
        let socket = self.dccp_socket(outlet);
        if socket.armed != net.now {
            return;
        }
        socket.armed = NEVER;
        let now = Instant::from_nanos(net.now);
        if let Some(supply) = socket.opening.take() {
            socket.end.handle(now, Input::Command(Command::Connect));
            if supply == Supply::Saturated {
                let octets = socket.end.config().packet;
                socket.end.handle(now, Input::Command(Command::Produce { octets, packets: u64::MAX }));
            }
        } else {
            socket.end.handle_timeout(now);
        }
        self.dccp_pump(net, outlet, None);
    }

    /// The application of a sender gives data, or closes.
    pub fn supply(&mut self, net: &mut Network, index: u32) {
        let source = &mut self.sources[index as usize];
        let (outlet, octets) = (source.outlet, source.octets);
        let command = if net.now >= source.stop {
            Command::Close
        } else {
            source.sent += 1;
            let next = (net.now + source.pace.serialise(octets)).min(source.stop);
            let event = Event::new(next, net.events.next_order(), Target::Source(index));
            net.events.push(event);
            Command::Produce { octets, packets: 1 }
        };
        self.dccp_socket(outlet).end.handle(Instant::from_nanos(net.now), Input::Command(command));
        self.dccp_pump(net, outlet, None);
    }

    /// Lets a socket do what it has to do after something happened to it. `offset` is where the data of a damaged packet was sent.
    fn dccp_pump(&mut self, net: &mut Network, outlet: u32, offset: Option<u64>) {
        let now = Instant::from_nanos(net.now);
        let number = net.outlets[outlet as usize].flow;
        let sends = net.outlets[outlet as usize].way == crate::Way::Forward;
        while let Some(datagram) = self.dccp_socket(outlet).end.read() {
            let len = datagram.payload.len() as u64;
            if let Some(offset) = offset {
                self.dccp_socket(outlet).corrupted += mismatches(&datagram.payload, 0, len, offset);
            }
            let flow = &mut self.flows[number as usize];
            flow.octets += len;
            flow.first_data = flow.first_data.or(Some(now));
            flow.last_data = Some(now);
        }
        let first = self.sockets.len();
        let socket = &mut self.dccp[outlet as usize - first];
        while let Some(packet) = socket.end.poll_transmit(now) {
            net.send_dccp(outlet, packet);
        }
        while let Some(event) = self.dccp_socket(outlet).end.poll_event() {
            match event {
                dccp::Event::Connected if sends => self.flows[number as usize].connected = Some(now),
                dccp::Event::Closed(closing) => self.on_closed(number, sends, closing),
                dccp::Event::Loss(record) if sends => self.losses.push((number, *record)),
                dccp::Event::Timeout(record) if sends => {
                    self.timeouts.push(TimeoutRow::new(number, *record));
                }
                _ => {}
            }
        }
        let socket = self.dccp_socket(outlet);
        let Some(due) = socket.end.poll_timeout() else { return };
        let due = due.as_nanos().max(net.now);
        // As with TCP, an event that comes too early is found out when it comes.
        if due < socket.armed {
            socket.armed = due;
            let event = Event::new(due, net.events.next_order(), Target::Timer(outlet));
            net.events.push(event);
        }
    }

    /// A sender at a moment.
    pub fn dccp_sample(&self, at: Instant, number: usize) -> FlowSample {
        let flow = &self.flows[number];
        let view = self.dccp[flow.outlet as usize - self.sockets.len()].end.view();
        FlowSample {
            at,
            flow: number,
            cwnd: view.cwnd,
            ssthresh: view.ssthresh,
            srtt: view.srtt,
            pipe: view.pipe,
            octets_delivered: flow.octets,
        }
    }
}
