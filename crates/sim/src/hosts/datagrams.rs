//! Ends of flows of datagrams with congestion control.

use super::flows::{mismatches, Flows};
use crate::address::{EndpointId, Way};
use crate::build::Supply;
use crate::events::{Event, Target};
use crate::network::Network;
use crate::record::TimeoutRow;
use whyloss_transport::datagram::{self, Command, Endpoint};
use whyloss_transport::Instant;

/// When a timer event is due that nobody waits for.
const NEVER: u64 = u64::MAX;

/// One end at its host.
#[derive(Debug)]
pub(crate) struct DatagramSocket {
    pub end: Endpoint,
    /// When the next timer event that counts is due. An event of another time is stale.
    armed: u64,
    /// What the sender is to do first.
    opening: Option<Supply>,
    /// Octets that reached the application with another value than they were sent with.
    pub corrupted: u64,
}

impl DatagramSocket {
    /// `opens` says when the sender opens the connection, and what it sends; the receiver waits for it.
    pub fn new(mut end: Endpoint, opens: Option<(Instant, Supply)>) -> Self {
        if opens.is_none() {
            end.command(Instant::ZERO, Command::Listen);
        }
        Self { end, armed: opens.map_or(NEVER, |(at, _)| at.as_nanos()), opening: opens.map(|(_, supply)| supply), corrupted: 0 }
    }

    /// A timer event of the socket.
    pub fn timer(&mut self, end: EndpointId, flows: &mut Flows, net: &mut Network) {
        if self.armed != net.now {
            return;
        }
        self.armed = NEVER;
        let now = Instant::from_nanos(net.now);
        if let Some(supply) = self.opening.take() {
            self.end.command(now, Command::Connect);
            if supply == Supply::Saturated {
                let octets = self.end.packet();
                self.end.command(now, Command::Produce { octets, packets: u64::MAX });
            }
        } else {
            self.end.handle_timeout(now);
        }
        self.pump(end, flows, net, None);
    }

    /// The application gives data, or closes.
    pub fn command(&mut self, end: EndpointId, flows: &mut Flows, net: &mut Network, command: Command) {
        self.end.command(Instant::from_nanos(net.now), command);
        self.pump(end, flows, net, None);
    }

    /// Lets the socket do what it has to do after a packet, a timer or a command. `offset` is where the data of a damaged packet was
    /// sent.
    pub fn pump(&mut self, end: EndpointId, flows: &mut Flows, net: &mut Network, offset: Option<u64>) {
        let now = Instant::from_nanos(net.now);
        let number = end.flow();
        let sends = end.way() == Way::Forward;
        while let Some(datagram) = self.end.read() {
            let len = datagram.payload.len() as u64;
            if let Some(offset) = offset {
                self.corrupted += mismatches(&datagram.payload, 0, len, offset);
            }
            let flow = flows.of(end);
            flow.note_data(flow.octets + len, now);
        }
        while let Some(packet) = self.end.poll_transmit(now) {
            net.send_packet(end, packet);
        }
        while let Some(event) = self.end.poll_event() {
            match event {
                datagram::Event::Connected if sends => flows.of(end).connected = Some(now),
                datagram::Event::Closed(closing) => flows.on_closed(end, closing),
                datagram::Event::Loss(record) if sends => flows.losses.push((number, *record)),
                datagram::Event::Timeout(record) if sends => {
                    flows.timeouts.push(TimeoutRow::new(number, *record));
                }
                _ => {}
            }
        }
        let Some(due) = self.end.poll_timeout() else { return };
        let due = due.as_nanos().max(net.now);
        // As with TCP, an event that comes too early is found out when it comes.
        if due < self.armed {
            self.armed = due;
            let event = Event::new(due, net.events.next_order(), Target::Timer(end));
            net.events.push(event);
        }
    }
}
