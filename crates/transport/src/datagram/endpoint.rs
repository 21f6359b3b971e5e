//! One end of a flow of datagrams, whatever transport carries them.

use super::words::{Command, Datagram, Event, View};
use super::{dccp, tfrc};
use crate::segment::{Ecn, Payload};
use crate::tcp::{Ports, Stats};
use crate::time::Instant;
use crate::wire;

/// What an end is configured with.
#[derive(Clone, Debug, PartialEq)]
pub enum Config {
    /// DCCP.
    Dccp(dccp::Config),
    /// TFRC over UDP.
    Tfrc(tfrc::Config),
}

impl From<dccp::Config> for Config {
    fn from(config: dccp::Config) -> Self {
        Self::Dccp(config)
    }
}

impl From<tfrc::Config> for Config {
    fn from(config: tfrc::Config) -> Self {
        Self::Tfrc(config)
    }
}

impl Config {
    /// The same for packets of `octets` octets of data.
    #[must_use]
    pub fn with_packet(mut self, octets: u32) -> Self {
        match &mut self {
            Self::Dccp(config) => config.packet = octets,
            Self::Tfrc(config) => config.packet = octets,
        }
        self
    }

    /// Data in a full packet, in octets.
    pub const fn packet(&self) -> u32 {
        match self {
            Self::Dccp(config) => config.packet,
            Self::Tfrc(config) => config.packet,
        }
    }

    /// Checksum coverage of data packets: see [`dccp::Config::coverage`]. 0, which is all data, where there is no choice.
    pub const fn coverage(&self) -> u8 {
        match self {
            Self::Dccp(config) => config.coverage,
            Self::Tfrc(_) => 0,
        }
    }

    /// Octets of the IP header.
    pub const fn ip_header(&self) -> u32 {
        match self {
            Self::Dccp(config) => config.ip_header,
            Self::Tfrc(_) => 20,
        }
    }
}

/// A packet of any of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Of DCCP.
    Dccp(wire::dccp::Packet),
    /// Of TFRC, in UDP.
    Tfrc(wire::tfrc::Packet),
}

impl Packet {
    /// The ECN field of its IP header.
    pub const fn ecn_mut(&mut self) -> &mut Ecn {
        match self {
            Self::Dccp(packet) => &mut packet.ecn,
            Self::Tfrc(packet) => &mut packet.ecn,
        }
    }

    /// The application's data.
    pub fn payload(&self) -> &Payload {
        match self {
            Self::Dccp(packet) => &packet.payload,
            Self::Tfrc(packet) => packet.payload(),
        }
    }
}

/// One end of a flow.
#[derive(Debug)]
pub enum Endpoint {
    /// Of DCCP.
    Dccp(Box<dccp::Endpoint>),
    /// Of TFRC.
    Tfrc(Box<tfrc::Endpoint>),
}

macro_rules! both {
    ($self:ident, $end:ident => $what:expr) => {
        match $self {
            Self::Dccp($end) => $what,
            Self::Tfrc($end) => $what,
        }
    };
}

impl Endpoint {
    /// An end that has not begun, between `ports`.
    pub fn new(config: Config, ports: Ports) -> Self {
        match config {
            Config::Dccp(config) => Self::Dccp(Box::new(dccp::Endpoint::new(config, ports))),
            Config::Tfrc(config) => Self::Tfrc(Box::new(tfrc::Endpoint::new(config))),
        }
    }

    /// Takes in a packet that arrived undamaged. One of another transport is ignored.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet) {
        match (self, packet) {
            (Self::Dccp(end), Packet::Dccp(packet)) => end.handle(now, dccp::Input::Packet(packet, wire::dccp::Data::Intact)),
            (Self::Tfrc(end), Packet::Tfrc(packet)) => end.on_packet(now, packet),
            _ => {}
        }
    }

    /// Takes in a command of the application.
    pub fn command(&mut self, now: Instant, command: Command) {
        match self {
            Self::Dccp(end) => end.handle(now, dccp::Input::Command(command)),
            Self::Tfrc(end) => end.command(command),
        }
    }

    /// The next packet to send, if there is one.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        match self {
            Self::Dccp(end) => end.poll_transmit(now).map(Packet::Dccp),
            Self::Tfrc(end) => end.poll_transmit(now).map(Packet::Tfrc),
        }
    }

    /// When [`Endpoint::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        both!(self, end => end.poll_timeout())
    }

    /// Lets timers expire.
    pub fn handle_timeout(&mut self, now: Instant) {
        both!(self, end => end.handle_timeout(now));
    }

    /// The next event for the application and its driver.
    pub fn poll_event(&mut self) -> Option<Event> {
        both!(self, end => end.poll_event())
    }

    /// Data that arrived, in the order of arrival.
    pub fn read(&mut self) -> Option<Datagram> {
        both!(self, end => end.read())
    }

    /// Offset of the data sent so far below which no more losses will be told of; `u64::MAX` if none will.
    pub fn losses_told_below(&self) -> u64 {
        match self {
            Self::Dccp(end) => end.losses_told_below(),
            // It tells of loss events by its rate alone.
            Self::Tfrc(_) => u64::MAX,
        }
    }

    /// Counters.
    pub fn stats(&self) -> &Stats {
        both!(self, end => end.stats())
    }

    /// Window or rate, as they are now.
    pub fn view(&self) -> View {
        both!(self, end => end.view())
    }

    /// Data in a full packet, in octets.
    pub fn packet(&self) -> u32 {
        both!(self, end => end.config().packet)
    }
}
