//! An internet host's TCP without I/O: many [`Endpoint`]s behind some addresses.
//!
//! A [`Stack`] finds the connection that a segment belongs to, opens new ones for listeners, answers strangers with a reset
//! (RFC 9293, 3.10.7.1) and keeps the timers of all connections in order. Like an endpoint it has neither clock nor socket: its driver
//! hands in segments and the time, and takes out [`Datagram`]s, notices and the time at which it wants to be called again.

mod cookies;
mod fast_open;
mod identity;
#[cfg(test)]
mod tests;

use crate::scheme::{Catalogue, Parts, Selection, SelectionError};
use crate::segment::{Flags, Integrity, Payload, Segment};
use crate::seq::Seq;
use crate::tcp::{Command, Config, ConfigError, Endpoint, Event, FastOpenRequest, Input, Ports};
use crate::time::Instant;
use crate::wire::icmp::TooBig;
use crate::wire::ip::Addresses;
pub use fast_open::FastOpenService;
use fast_open::Peers;
use identity::Identity;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// A TCP segment on its way between two hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagram {
    /// Who sends it and who shall get it.
    pub addresses: Addresses,
    /// The segment, with its ports.
    pub segment: Segment,
}

/// The name of a connection: both ends of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FourTuple {
    /// Our end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
}

impl FourTuple {
    /// The connection that a segment which we receive belongs to.
    fn of_arrival(addresses: Addresses, segment: &Segment) -> Self {
        Self {
            local: SocketAddr::new(addresses.dst(), segment.dst_port),
            remote: SocketAddr::new(addresses.src(), segment.src_port),
        }
    }
}

/// A connection of a [`Stack`]. Never used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    index: u32,
    generation: u32,
}

/// What a stack tells its driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A peer has connected to a listener; [`Stack::tuple`] says which. [`Event::Connected`] follows.
    Accepted(ConnectionId),
    /// Something happened on a connection.
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

/// How connections of one listener shall be.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Their configuration. First sequence number, nonce key and IP header length are filled in, the segment size is limited to the
    /// MTU.
    pub config: Config,
    /// Their algorithms.
    pub selection: Selection,
    /// Handshakes that are kept at a time. Further SYNs are answered with a cookie (RFC 4987) and take no memory.
    pub backlog: usize,
}

impl Listener {
    /// Configuration and algorithms of one more connection.
    fn build(&self, catalogue: &Catalogue) -> (Config, Parts) {
        let mut config = self.config.clone();
        let parts = self.selection.build_from(catalogue, &mut config).expect("checked when listening began");
        (config, parts)
    }
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
    pub damaged_strangers: u64,
    /// SYNs answered with a cookie because the backlog was full.
    pub cookies_sent: u64,
    /// Connections that came of one.
    pub cookies_taken: u64,
    /// Resets sent to strangers.
    pub resets: u64,
}

/// The TCP of one host.
#[derive(Debug)]
pub struct Stack {
    settings: Settings,
    catalogue: Catalogue,
    identity: Identity,
    slots: Vec<Slot>,
    free: Vec<u32>,
    tuples: BTreeMap<FourTuple, u32>,
    listeners: BTreeMap<SocketAddr, Listening>,
    /// What listeners offer to those who open fast, and how many connections were accepted before their handshakes ended.
    services: BTreeMap<SocketAddr, (FastOpenService, usize)>,
    /// The key of our cookies, and the one before it.
    cookie_keys: Vec<[u8; 16]>,
    peers: Peers,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    /// Wake-up times, some of them no longer meant: a connection is looked at when its time comes, and put back if it wants to sleep on.
    alarms: BinaryHeap<Reverse<(Instant, u32)>>,
    notices: VecDeque<Notice>,
    replies: VecDeque<Datagram>,
    stats: StackStats,
}

/// A listener at work.
#[derive(Debug)]
struct Listening {
    listener: Listener,
    /// Handshakes that are kept.
    pending: usize,
    /// Cookies may come back until then.
    cookies_until: Instant,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

#[derive(Debug)]
struct Connection {
    endpoint: Endpoint,
    tuple: FourTuple,
    /// From us to the peer.
    addresses: Addresses,
    /// The listener whose backlog counts it, until it is established.
    pending: Option<SocketAddr>,
    /// The application knows of it.
    told: bool,
    /// It was accepted before its handshake ended, which has not ended yet, by this listener.
    early: Option<SocketAddr>,
    /// How it was opened fast, until the answer comes.
    request: Option<FastOpenRequest>,
    /// Whether it stands in `ready`.
    queued: bool,
    /// The earliest alarm that is set for it.
    alarm: Option<Instant>,
    /// The application wants to hear no more of it.
    released: bool,
    closed: bool,
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
            slots: Vec::new(),
            free: Vec::new(),
            tuples: BTreeMap::new(),
            listeners: BTreeMap::new(),
            services: BTreeMap::new(),
            cookie_keys,
            peers: Peers::default(),
            ready: VecDeque::new(),
            alarms: BinaryHeap::new(),
            notices: VecDeque::new(),
            replies: VecDeque::new(),
            stats: StackStats::default(),
        }
    }

    /// Accepts connections to `local`, from now on. An unspecified address (`0.0.0.0`, `::`) stands for all of its family.
    pub fn listen(&mut self, local: SocketAddr, listener: Listener) -> Result<(), StackError> {
        if !local.ip().is_unspecified() && !self.settings.addresses.contains(&local.ip()) {
            return Err(StackError::ForeignAddress(local.ip()));
        }
        if self.listeners.contains_key(&local) {
            return Err(StackError::ListenerExists(local));
        }
        // Wrong names, parameters and settings are told now and not when the first peer knocks.
        let mut config = listener.config.clone();
        listener.selection.build_from(&self.catalogue, &mut config)?;
        config.check()?;
        self.listeners.insert(local, Listening { listener, pending: 0, cookies_until: Instant::ZERO });
        Ok(())
    }

    /// Stops listening. Connections that were accepted go on.
    pub fn unlisten(&mut self, local: SocketAddr) {
        self.listeners.remove(&local);
        self.services.remove(&local);
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
        self.hand(now, index, Input::Command(Command::Connect));
        Ok(self.id(index))
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
            .find(|tuple| !self.tuples.contains_key(tuple))
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
        let tuple = FourTuple::of_arrival(addresses, segment);
        let mut predecessor = None;
        if let Some(&index) = self.tuples.get(&tuple) {
            let endpoint = &self.connection_mut(index).endpoint;
            let ended_at = endpoint.path().nxt.into();
            let gives_way = integrity == Integrity::Intact && endpoint.gives_way_to(segment);
            if !gives_way || self.listener_for(tuple.local).is_none() {
                return self.hand(now, index, Input::Segment(segment, integrity));
            }
            self.hand(now, index, Input::Command(Command::Abort));
            predecessor = Some(ended_at);
        }
        if integrity == Integrity::Intact {
            self.greet(now, addresses, segment, predecessor);
        } else {
            self.stats.damaged_strangers += 1;
        }
    }

    /// A segment of no connection: RFC 9293, 3.10.7.1 (CLOSED) and 3.10.7.2 (LISTEN). If it takes the place of a connection in
    /// TIME-WAIT, `predecessor` is where the sequence numbers of that one ended.
    fn greet(&mut self, now: Instant, addresses: Addresses, segment: &Segment, predecessor: Option<Seq>) {
        let tuple = FourTuple::of_arrival(addresses, segment);
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let Some(address) = self.listener_for(tuple.local) else { return self.reset(addresses, segment) };
        if segment.flags.contains(Flags::ACK) {
            if !self.take_cookie(now, address, tuple, segment) {
                self.reset(addresses, segment);
            }
            return;
        }
        // Nobody begins and ends at once: what does looks for a way past a filter.
        if !segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::FIN) {
            return;
        }
        let listening = self.listeners.get_mut(&address).expect("just found");
        if listening.pending >= listening.listener.backlog {
            return self.answer_with_cookie(now, address, addresses, segment);
        }
        listening.pending += 1;
        let (mut config, parts) = listening.listener.build(&self.catalogue);
        config.initial_seq = self.identity.initial_seq(&tuple, now);
        if let Some(end) = predecessor.filter(|end| !end.precedes(Seq(config.initial_seq))) {
            // RFC 9293, 3.10.7.4: beyond everything that the old connection used.
            config.initial_seq = (end + 0x1_0000).0;
        }
        let index = self.open(tuple, config, parts, Some(address));
        self.hand(now, index, Input::Command(Command::Listen));
        let accepted = self.answer_fast_open(now, index, address, segment);
        self.hand(now, index, Input::Segment(segment, Integrity::Intact));
        self.connection_mut(index).early = accepted.then_some(address);
    }

    /// Answers a SYN and forgets it: all that is needed to go on comes back with the third packet.
    fn answer_with_cookie(&mut self, now: Instant, listener: SocketAddr, addresses: Addresses, syn: &Segment) {
        let tuple = FourTuple::of_arrival(addresses, syn);
        let listening = self.listeners.get_mut(&listener).expect("the caller has found it");
        listening.cookies_until = now + cookies::LIFETIME;
        let (mut config, parts) = listening.listener.build(&self.catalogue);
        let syn = cookies::plain(syn, config.timestamps);
        config.initial_seq = cookies::bake(&self.identity, &tuple, &syn, now);
        let mut endpoint = self.endpoint_of(tuple, config, parts);
        endpoint.handle(now, Input::Command(Command::Listen));
        endpoint.handle(now, Input::Segment(&syn, Integrity::Intact));
        if let Some(mut segment) = endpoint.poll_transmit(now) {
            cookies::mark(&mut segment, &syn);
            self.stats.cookies_sent += 1;
            self.replies.push_back(Datagram { addresses: addresses.reversed(), segment });
        }
    }

    /// Opens the connection that `segment` completes with a cookie of ours, if it does.
    fn take_cookie(&mut self, now: Instant, listener: SocketAddr, tuple: FourTuple, segment: &Segment) -> bool {
        let listening = self.listeners.get_mut(&listener).expect("the caller has found it");
        if segment.flags.contains(Flags::SYN) || now >= listening.cookies_until {
            return false;
        }
        let Some((syn, initial_seq)) = cookies::redeem(&self.identity, &tuple, segment, now) else { return false };
        listening.pending += 1;
        let (config, parts) = listening.listener.build(&self.catalogue);
        let index = self.open(tuple, Config { initial_seq, ..config }, parts, Some(listener));
        self.stats.cookies_taken += 1;
        self.hand(now, index, Input::Command(Command::Listen));
        for segment in [&syn, segment] {
            self.hand(now, index, Input::Segment(segment, Integrity::Intact));
        }
        true
    }

    /// Takes the word of a router that a packet of ours does not fit its next link. The connection checks whether it is to be believed.
    pub fn handle_too_big(&mut self, now: Instant, message: &TooBig) {
        let tuple = FourTuple {
            local: SocketAddr::new(message.addresses.src(), message.src_port),
            remote: SocketAddr::new(message.addresses.dst(), message.dst_port),
        };
        match self.tuples.get(&tuple) {
            Some(&index) => self.hand(now, index, Input::PacketTooBig { seq: message.seq, mtu: message.mtu }),
            None => self.stats.misaddressed += 1,
        }
    }

    fn listener_for(&self, local: SocketAddr) -> Option<SocketAddr> {
        let any: IpAddr = if local.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        [local, SocketAddr::new(any, local.port())].into_iter().find(|address| self.listeners.contains_key(address))
    }

    fn reset(&mut self, addresses: Addresses, to: &Segment) {
        let (seq, ack, flags) = if to.flags.contains(Flags::ACK) {
            (to.ack, Seq(0), Flags::RST)
        } else {
            (Seq(0), to.seq + to.seq_len(), Flags::RST | Flags::ACK)
        };
        let segment = Segment { src_port: to.dst_port, dst_port: to.src_port, seq, ack, flags, ..Segment::default() };
        self.stats.resets += 1;
        self.replies.push_back(Datagram { addresses: addresses.reversed(), segment });
    }

    /// Carries out a command of the application. Harmless if the connection is gone.
    pub fn command(&mut self, now: Instant, id: ConnectionId, command: Command) {
        if let Some(index) = self.index(id) {
            self.hand(now, index, Input::Command(command));
        }
    }

    /// The next piece of received data, at most `max` octets.
    pub fn read(&mut self, now: Instant, id: ConnectionId, max: usize) -> Option<Payload> {
        let index = self.index(id)?;
        let data = self.connection_mut(index).endpoint.read(now, max);
        // Reading can open the window, and the peer wants to know.
        self.touched(index);
        data
    }

    /// The next datagram to send, if there is one. Connections take turns.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply);
        }
        while let Some(index) = self.ready.pop_front() {
            let connection = self.connection_mut(index);
            connection.queued = false;
            let addresses = connection.addresses;
            let segment = connection.endpoint.poll_transmit(now);
            // Sending sets timers and can end a connection.
            self.process_events(index);
            if let Some(segment) = segment {
                self.enqueue(index);
                return Some(Datagram { addresses, segment });
            }
            self.reclaim(index);
        }
        None
    }

    /// When [`Stack::handle_timeout`] wants to be called. It may turn out to be early.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.alarms.peek().map(|Reverse((at, _))| *at)
    }

    /// Wakes the connections whose time has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&Reverse((at, index))) = self.alarms.peek() {
            if at > now {
                break;
            }
            self.alarms.pop();
            let Some(connection) = self.slots[index as usize].connection.as_mut() else { continue };
            if connection.alarm != Some(at) {
                continue;
            }
            connection.alarm = None;
            if connection.endpoint.poll_timeout().is_some_and(|due| due <= now) {
                connection.endpoint.handle_timeout(now);
            }
            self.touched(index);
        }
    }

    /// What happened next.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Says that the application is done with a connection: it hears no more of it, and the stack forgets it once it is closed, TIME-WAIT
    /// included. A connection still open stays open; close or abort it first.
    pub fn release(&mut self, id: ConnectionId) {
        if let Some(index) = self.index(id) {
            self.connection_mut(index).released = true;
            self.notices.retain(|notice| !matches!(notice, Notice::Accepted(of) | Notice::Event(of, _) if *of == id));
            self.reclaim(index);
        }
    }

    /// The endpoint of a connection, unless it was forgotten.
    pub fn endpoint(&self, id: ConnectionId) -> Option<&Endpoint> {
        self.connection(id).map(|connection| &connection.endpoint)
    }

    /// Both ends of a connection, unless it was forgotten.
    pub fn tuple(&self, id: ConnectionId) -> Option<FourTuple> {
        self.connection(id).map(|connection| connection.tuple)
    }

    /// How many connections the stack knows, in any state.
    pub fn connections(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The addresses of the host.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.settings.addresses
    }

    /// The counters.
    pub fn stats(&self) -> &StackStats {
        &self.stats
    }

    /// A closed endpoint for a connection, with what the host decides.
    fn endpoint_of(&mut self, tuple: FourTuple, mut config: Config, parts: Parts) -> Endpoint {
        config.ip_header = if tuple.local.is_ipv4() { 20 } else { 40 };
        config.mss = config.mss.min(self.settings.mtu.saturating_sub(u16::from(config.ip_header) + 20));
        config.nonce_key = self.identity.nonce_key(&tuple);
        let ports = Ports { local: tuple.local.port(), remote: tuple.remote.port() };
        Endpoint::new(config, parts, ports)
    }

    fn open(&mut self, tuple: FourTuple, config: Config, parts: Parts, pending: Option<SocketAddr>) -> u32 {
        let endpoint = self.endpoint_of(tuple, config, parts);
        let addresses = Addresses::new(tuple.local.ip(), tuple.remote.ip()).expect("both ends are of one family");
        let connection = Connection {
            endpoint,
            tuple,
            addresses,
            told: pending.is_none(),
            pending,
            early: None,
            request: None,
            queued: false,
            alarm: None,
            released: false,
            closed: false,
        };
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        self.slots[index as usize].connection = Some(Box::new(connection));
        self.tuples.insert(tuple, index);
        index
    }

    fn hand(&mut self, now: Instant, index: u32, input: Input<'_>) {
        self.connection_mut(index).endpoint.handle(now, input);
        self.touched(index);
    }

    /// After anything was done with an endpoint.
    fn touched(&mut self, index: u32) {
        self.process_events(index);
        self.enqueue(index);
    }

    fn enqueue(&mut self, index: u32) {
        let connection = self.connection_mut(index);
        if !connection.queued {
            connection.queued = true;
            self.ready.push_back(index);
        }
    }

    /// Passes on the events of an endpoint and sets its alarm.
    fn process_events(&mut self, index: u32) {
        let id = self.id(index);
        let connection = self.slots[index as usize].connection.as_mut().expect("a live connection");
        while let Some(event) = connection.endpoint.poll_event() {
            let done = matches!(event, Event::Closed(_));
            if done || event == Event::Connected {
                if let Some(address) = connection.pending.take() {
                    if let Some(listening) = self.listeners.get_mut(&address) {
                        listening.pending -= 1;
                    }
                }
                if !std::mem::replace(&mut connection.told, true) {
                    // Nobody has heard of a connection that fails before it is established, and nobody shall.
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
            if done {
                connection.closed = true;
                self.tuples.remove(&connection.tuple);
            }
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
        if let Some(due) = connection.endpoint.poll_timeout() {
            if connection.alarm.is_none_or(|alarm| due < alarm) {
                connection.alarm = Some(due);
                self.alarms.push(Reverse((due, index)));
            }
        }
    }

    /// Forgets a connection that is closed, has nothing left to send and interests nobody.
    fn reclaim(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.connection.as_ref().is_some_and(|c| c.closed && c.released && !c.queued) {
            slot.connection = None;
            slot.generation += 1;
            self.free.push(index);
        }
    }

    fn id(&self, index: u32) -> ConnectionId {
        ConnectionId { index, generation: self.slots[index as usize].generation }
    }

    fn index(&self, id: ConnectionId) -> Option<u32> {
        self.connection(id).map(|_| id.index)
    }

    fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.slots.get(id.index as usize)?;
        slot.connection.as_deref().filter(|_| slot.generation == id.generation)
    }

    fn connection_mut(&mut self, index: u32) -> &mut Connection {
        self.slots[index as usize].connection.as_mut().expect("a live connection")
    }
}

/// Whether a host can have this address as its own.
fn can_send(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !(v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast() || v4.is_loopback()),
        IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_multicast() || v6.is_loopback()),
    }
}
