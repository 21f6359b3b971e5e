//! An internet host's TCP without I/O: many [`Endpoint`]s behind some addresses.
//!
//! A [`Stack`] finds the connection that a segment belongs to, opens new ones for listeners, answers segments of no connection with a reset
//! (RFC 9293, 3.10.7.1) and keeps the timers of all connections in order. Like an endpoint it has neither clock nor socket: its driver
//! hands in segments and the time, and takes out [`Datagram`]s, notices and the time at which it wants to be called again.

mod connections;
mod cookies;
mod fast_open;
mod identity;
mod listen;
#[cfg(test)]
mod tests;

use crate::receiver::LinkHint;
use crate::scheme::{Catalogue, Parts, Selection, SelectionError};
use crate::segment::{Integrity, Payload, Segment};
use crate::tcp::{Command, Config, ConfigError, Endpoint, Event, Input, Ports};
use crate::time::Instant;
use crate::wire::icmp::TooBig;
use crate::wire::ip::Addresses;
use connections::{Connection, Connections};
pub use connections::{ConnectionId, FourTuple};
pub use fast_open::FastOpenService;
use fast_open::Peers;
use identity::Identity;
pub use listen::Listener;
use listen::Listening;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// A TCP segment on its way between two hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagram {
    /// Who sends it and who shall get it.
    pub addresses: Addresses,
    /// The segment, with its ports.
    pub segment: Segment,
}

/// What a stack tells its driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A peer has connected to a listener; [`Stack::tuple`] says which. [`Event::Connected`] follows.
    Accepted(ConnectionId),
    /// An event of a connection.
    Event(ConnectionId, Event),
}

/// What never changes about a stack.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// The largest IP packet that the link takes, in octets.
    pub mtu: u16,
    /// A secret for initial sequence numbers, ports and nonces. On the Internet it has to be random.
    pub key: [u8; 16],
}

/// Why a stack cannot do what it is asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StackError {
    /// The address is not ours.
    #[error("{0} is no address of this host")]
    ForeignAddress(IpAddr),
    /// We have no address of the family of the destination.
    #[error("this host has no address to reach {0} from")]
    NoSource(IpAddr),
    /// Somebody listens there already.
    #[error("something listens on {0} already")]
    ListenerExists(SocketAddr),
    /// All ports towards the destination are in use.
    #[error("all local ports towards {0} are in use")]
    NoPort(SocketAddr),
    /// The algorithms cannot be built.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The configuration is none that a connection can have.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Counters of what concerned no connection. Segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackStats {
    /// Not addressed to us, or from an address that nobody can have.
    pub misaddressed: u64,
    /// Damaged and of no connection that we know.
    pub damaged_unmatched: u64,
    /// SYNs answered with a cookie because the backlog was full.
    pub cookies_sent: u64,
    /// Connections that came of one.
    pub cookies_taken: u64,
    /// Resets sent for segments of no connection.
    pub resets: u64,
}

/// The TCP of one host.
#[derive(Debug)]
pub struct Stack {
    settings: Settings,
    catalogue: Catalogue,
    identity: Identity,
    connections: Connections,
    listeners: BTreeMap<SocketAddr, Listening>,
    /// What listeners offer to those who open fast, and how many connections were accepted before their handshakes ended.
    services: BTreeMap<SocketAddr, (FastOpenService, usize)>,
    /// The key of our cookies, and the one before it.
    cookie_keys: Vec<[u8; 16]>,
    peers: Peers,
    /// What was said last of the link.
    link: Option<LinkHint>,
    notices: VecDeque<Notice>,
    replies: VecDeque<Datagram>,
    stats: StackStats,
}

impl Stack {
    /// A host without connections, whose algorithms are those of this crate.
    pub fn new(settings: Settings) -> Self {
        Self::with_catalogue(settings, Catalogue::default())
    }

    /// The same with the algorithms that `catalogue` has.
    pub fn with_catalogue(settings: Settings, catalogue: Catalogue) -> Self {
        let identity = Identity::new(settings.key);
        let cookie_keys = vec![identity.cookie_key()];
        Self {
            settings,
            catalogue,
            identity,
            connections: Connections::default(),
            listeners: BTreeMap::new(),
            services: BTreeMap::new(),
            cookie_keys,
            peers: Peers::default(),
            link: None,
            notices: VecDeque::new(),
            replies: VecDeque::new(),
            stats: StackStats::default(),
        }
    }

    /// Opens a connection from our first address of the right family and a free port.
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        config: Config,
        selection: &Selection,
    ) -> Result<ConnectionId, StackError> {
        let index = self.prepare(now, remote, config, selection)?;
        self.deliver(now, index, Input::Command(Command::Connect));
        Ok(self.connections.id(index))
    }

    /// A connection that is still closed.
    fn prepare(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        mut config: Config,
        selection: &Selection,
    ) -> Result<u32, StackError> {
        let same_family = |address: &&IpAddr| address.is_ipv4() == remote.is_ipv4();
        let source = *self.settings.addresses.iter().find(same_family).ok_or(StackError::NoSource(remote.ip()))?;
        let parts = selection.build_from(&self.catalogue, &mut config)?;
        config.check()?;
        let tuple = self
            .identity
            .ports(&(source, remote))
            .map(|port| FourTuple { local: SocketAddr::new(source, port), remote })
            .find(|tuple| self.connections.find(tuple).is_none())
            .ok_or(StackError::NoPort(remote))?;
        config.initial_seq = self.identity.initial_seq(&tuple, now);
        Ok(self.open(tuple, config, parts, None))
    }

    /// Takes a segment that arrived. If it is damaged, nothing in it is believed but that its addresses and ports
    /// name a connection: it never opens one and is never answered with a reset.
    pub fn handle(&mut self, now: Instant, addresses: Addresses, segment: &Segment, integrity: Integrity) {
        let (from, to) = (addresses.src(), addresses.dst());
        // RFC 1122, 4.2.3.10; and a segment from ourselves would have us talk to ourselves.
        if !self.settings.addresses.contains(&to) || !can_send(from) || self.settings.addresses.contains(&from) {
            self.stats.misaddressed += 1;
            return;
        }
        let tuple = FourTuple::of_received(addresses, segment);
        let mut predecessor = None;
        if let Some(index) = self.connections.find(&tuple) {
            let endpoint = &self.connections.at(index).endpoint;
            let ended_at = endpoint.path().nxt.into();
            let gives_way = integrity == Integrity::Intact && endpoint.gives_way_to(segment);
            if !gives_way || self.listener_for(tuple.local).is_none() {
                return self.deliver(now, index, Input::Segment(segment, integrity));
            }
            self.deliver(now, index, Input::Command(Command::Abort));
            predecessor = Some(ended_at);
        }
        if integrity == Integrity::Intact {
            self.handle_unmatched(now, addresses, segment, predecessor);
        } else {
            self.stats.damaged_unmatched += 1;
        }
    }

    /// Takes the word of a router that a packet of ours does not fit its next link. The connection checks whether it is to be believed.
    pub fn handle_too_big(&mut self, now: Instant, message: &TooBig) {
        let tuple = FourTuple {
            local: SocketAddr::new(message.addresses.src(), message.src_port),
            remote: SocketAddr::new(message.addresses.dst(), message.dst_port),
        };
        match self.connections.find(&tuple) {
            Some(index) => self.deliver(now, index, Input::PacketTooBig { seq: message.seq, mtu: message.mtu }),
            None => self.stats.misaddressed += 1,
        }
    }

    /// Carries out a command of the application. Harmless if the connection is gone.
    pub fn command(&mut self, now: Instant, id: ConnectionId, command: Command) {
        if let Some(index) = self.connections.index(id) {
            self.deliver(now, index, Input::Command(command));
        }
    }

    /// Tells the connections, and those to come, of the link that the host stands at.
    pub fn tell_link(&mut self, now: Instant, hint: LinkHint) {
        self.link = Some(hint);
        for index in self.connections.indices() {
            self.deliver(now, index, Input::Link(hint));
        }
    }

    /// The next piece of received data, at most `max` octets.
    pub fn read(&mut self, now: Instant, id: ConnectionId, max: usize) -> Option<Payload> {
        let index = self.connections.index(id)?;
        let data = self.connections.at(index).endpoint.read(now, max);
        // Reading can open the window, and the peer wants to know.
        self.update(index);
        data
    }

    /// The next datagram to send, if there is one. Connections take turns.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply);
        }
        while let Some(index) = self.connections.dequeue() {
            let connection = self.connections.at(index);
            let addresses = connection.addresses;
            let segment = connection.endpoint.poll_transmit(now);
            // Sending sets timers and can end a connection.
            self.process_events(index);
            if let Some(segment) = segment {
                self.connections.enqueue(index);
                return Some(Datagram { addresses, segment });
            }
            self.connections.reclaim(index);
        }
        None
    }

    /// When [`Stack::handle_timeout`] wants to be called. It may turn out to be early.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.connections.next_alarm()
    }

    /// Wakes the connections whose time has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(index) = self.connections.pop_alarm(now) {
            let connection = self.connections.at(index);
            if connection.endpoint.poll_timeout().is_some_and(|due| due <= now) {
                connection.endpoint.handle_timeout(now);
            }
            self.update(index);
        }
    }

    /// The next notice to the application.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Says that the application is done with a connection: it gets no further notice of it, and the stack forgets it once it is closed, TIME-WAIT
    /// included. A connection still open stays open; close or abort it first.
    pub fn release(&mut self, id: ConnectionId) {
        if let Some(index) = self.connections.index(id) {
            self.connections.at(index).released = true;
            self.notices.retain(|notice| !matches!(notice, Notice::Accepted(of) | Notice::Event(of, _) if *of == id));
            self.connections.reclaim(index);
        }
    }

    /// The endpoint of a connection, unless it was forgotten.
    pub fn endpoint(&self, id: ConnectionId) -> Option<&Endpoint> {
        self.connections.get(id).map(|connection| &connection.endpoint)
    }

    /// Both ends of a connection, unless it was forgotten.
    pub fn tuple(&self, id: ConnectionId) -> Option<FourTuple> {
        self.connections.get(id).map(|connection| connection.tuple)
    }

    /// How many connections the stack knows, in any state.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The addresses of the host.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.settings.addresses
    }

    /// What was counted since the stack was made.
    pub fn stats(&self) -> &StackStats {
        &self.stats
    }

    /// A closed endpoint for a connection, with what the host decides.
    fn endpoint_of(&mut self, tuple: FourTuple, mut config: Config, parts: Parts) -> Endpoint {
        config.ip_header = if tuple.local.is_ipv4() { 20 } else { 40 };
        config.mss = config.mss.min(self.settings.mtu.saturating_sub(u16::from(config.ip_header) + 20));
        config.nonce_key = self.identity.nonce_key(&tuple);
        let ports = Ports { local: tuple.local.port(), remote: tuple.remote.port() };
        let mut endpoint = Endpoint::new(config, parts, ports);
        if let Some(hint) = self.link {
            endpoint.handle(Instant::ZERO, Input::Link(hint));
        }
        endpoint
    }

    fn open(&mut self, tuple: FourTuple, config: Config, parts: Parts, pending: Option<SocketAddr>) -> u32 {
        let endpoint = self.endpoint_of(tuple, config, parts);
        self.connections.insert(Connection::new(endpoint, tuple, pending))
    }

    /// Hands an input to an endpoint.
    fn deliver(&mut self, now: Instant, index: u32, input: Input<'_>) {
        self.connections.at(index).endpoint.handle(now, input);
        self.update(index);
    }

    /// After anything was done with an endpoint.
    fn update(&mut self, index: u32) {
        self.process_events(index);
        self.connections.enqueue(index);
    }

    /// Passes on the events of an endpoint and sets its alarm.
    fn process_events(&mut self, index: u32) {
        let id = self.connections.id(index);
        let connection = self.connections.at(index);
        let mut closed = false;
        while let Some(event) = connection.endpoint.poll_event() {
            let done = matches!(event, Event::Closed(_));
            if done || event == Event::Connected {
                if let Some(address) = connection.pending.take() {
                    if let Some(listening) = self.listeners.get_mut(&address) {
                        listening.pending -= 1;
                    }
                }
                if !std::mem::replace(&mut connection.announced, true) {
                    // The application was never told of a connection that fails before it is established.
                    connection.released |= done;
                    if !done {
                        self.notices.push_back(Notice::Accepted(id));
                    }
                }
                if let (Some(request), Some(answer)) = (connection.request, connection.endpoint.fast_open_answer()) {
                    connection.request = None;
                    self.peers.learn(connection.endpoint.path().now, connection.tuple.remote.ip(), &request, &answer);
                }
            }
            closed |= done;
            let notice = Notice::Event(id, event);
            // What can be read is told once, not with every segment that adds to it.
            let told = matches!(notice, Notice::Event(_, Event::Readable)) && self.notices.back() == Some(&notice);
            if !connection.released && !told {
                self.notices.push_back(notice);
            }
        }
        if let Some(address) = connection.early.filter(|_| !connection.endpoint.is_half_open()) {
            connection.early = None;
            if let Some((_, early)) = self.services.get_mut(&address) {
                *early -= 1;
            }
        }
        if closed {
            self.connections.close(index);
        }
        self.connections.set_alarm(index);
    }
}

/// Whether a host can have this address as its own.
fn can_send(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !(v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast() || v4.is_loopback()),
        IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_multicast() || v6.is_loopback()),
    }
}
