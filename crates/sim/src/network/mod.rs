//! Everything between the hosts: links, routers, and the packets on them.
//!
//! [`packets`] keeps the books of every packet and ends its journey; [`forward`] takes it from one link to the next, [`assisted`] past
//! the agents of a router; [`moves`] has hosts change their links; [`log`] writes down each of them for those who ask, [`watch`] shows them to
//! captures; [`touch`] reads what packets will touch before they do.

mod assisted;
mod dropped;
mod forward;
mod log;
mod moves;
mod packets;
mod touch;
mod watch;

pub(crate) use dropped::Dropped;
pub(crate) use log::PacketLog;
pub(crate) use moves::Moves;

use crate::address::{DirectionId, EndpointId};
use crate::capture::Taps;
use crate::channel::Channel;
use crate::direction::Direction;
use crate::events::{Event, Events};
use crate::meter::Meter;
use crate::middlebox::Assisted;
use crate::octets::Route;
use crate::packet::{PacketId, Packets, SentData};
use crate::radio::Radio;
use crate::random::Stream;
use crate::record::{DropRecord, PacketCounts};
use crate::routes::Routes;
use std::collections::{HashMap, HashSet, VecDeque};
use whyloss_transport::path;

/// What travels in the packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Dccp,
    /// Plain datagrams of a source.
    Udp,
}

/// Where the packets of one endpoint enter the network, and what has become of them. What every packet touches lies in the first cache
/// line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Egress {
    /// Position of the segment sent last: sequence numbers are near it.
    pub position: u64,
    pub overhead: Option<Box<Overhead>>,
    /// The direction of the first link on the way to the peer.
    pub exit: DirectionId,
    /// Octets of the IP header.
    pub ip_header: u32,
    /// From the endpoint to its peer.
    pub route: Route,
    pub counts: PacketCounts,
    /// Sequence number of the first octet of data.
    pub first: u64,
    pub protocol: Protocol,
    /// Its endpoint wants to hear what really became of its packets.
    pub wants_truth: bool,
}

/// Random delays of a host's packets before they enter its link, in order.
#[derive(Debug)]
pub(crate) struct Overhead {
    /// Nanoseconds below which each delay lies.
    max: u64,
    stream: Stream,
    /// When the packet that came last enters the link.
    last: u64,
    /// Packets with the events of their ends of the delay and their octets.
    waiting: VecDeque<(Event, PacketId, u32)>,
}

impl Overhead {
    pub fn new(max: u64, stream: Stream) -> Self {
        Self { max, stream, last: 0, waiting: VecDeque::new() }
    }
}

impl Egress {
    /// That of an endpoint whose first sequence number is `initial_seq`.
    pub fn new(protocol: Protocol, route: Route, exit: DirectionId, initial_seq: u32) -> Self {
        Self {
            protocol,
            route,
            exit,
            ip_header: if route.v6 { 40 } else { 20 },
            first: u64::from(initial_seq) + 1,
            position: u64::from(initial_seq),
            overhead: None,
            wants_truth: false,
            counts: PacketCounts::default(),
        }
    }
}

/// The copies of one transmission of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    /// The packet that was sent, and those that links made of it.
    pub made: u32,
    /// Those that were lost.
    lost: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Network {
    pub now: u64,
    pub events: Events,
    pub directions: Vec<Direction>,
    pub radio: Radio,
    /// How often channels damage or erase, where someone wants to know.
    pub meters: HashMap<DirectionId, Meter>,
    pub assisted: Vec<Assisted>,
    pub packets: Packets,
    pub routes: Routes,
    /// What becomes of the routes when hosts move, if any does.
    pub moves: Option<Box<Moves>>,
    /// One for each endpoint, at its number.
    pub egress: Vec<Egress>,
    pub drops: Vec<DropRecord>,
    /// What was lost of it, by transmission.
    pub dropped: Dropped,
    /// Number of hosts.
    pub hosts: usize,
    /// Losses that senders want to hear of.
    pub fates: Vec<(EndpointId, path::TransmissionFate)>,
    /// The channels in front of each host's transport, by the way of its flows; empty if no host has any.
    pub ingress: Vec<[Option<Channel>; 2]>,
    /// Packet captures, if there are any.
    pub watch: Option<Box<Taps>>,
    /// What is written down of every packet, if anybody asked.
    pub log: Option<Box<PacketLog>>,
    /// Transmissions of data of which links have made copies.
    pub copies: HashMap<SentData, Copies>,
    /// Transmissions of data that middleboxes have taken out of the way.
    pub suppressed: HashSet<SentData>,
    /// Scratch space for packets that had to make room.
    displaced: VecDeque<PacketId>,
    /// Scratch space for the positions of flipped bits.
    flips: Vec<u32>,
}

impl Network {
    /// An empty network with this many hosts.
    pub fn new(hosts: usize) -> Self {
        Self { hosts, ..Self::default() }
    }
}
