//! The socket layer of a script's application: system calls become commands to an endpoint.

mod options;

use crate::packetdrill::script::{Call, Expression};
use crate::settings::Settings;
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use whyloss_transport::scheme::Selection;
use whyloss_transport::segment::{Flags, Integrity, Segment};
use whyloss_transport::stack::{self, Stack};
use whyloss_transport::tcp::{Closing, State};
use whyloss_transport::wire::ip::Addresses;
use whyloss_transport::{Command, Config, Endpoint, Event, Input, Instant, Payload, Ports};

/// How a system call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Returned {
    /// With this result, and this error if the result is -1.
    Value(i64, Option<&'static str>),
    /// The call blocks.
    Blocks,
    /// It is not supported; says what.
    Unsupported(String),
    /// The application sees something that it must not see; expected and got.
    Wrong(String, String),
}

impl Returned {
    const OK: Self = Self::Value(0, None);

    const fn error(name: &'static str) -> Self {
        Self::Value(-1, Some(name))
    }
}

/// A connection with what its application has seen of it.
#[derive(Debug)]
pub(super) struct Connection {
    pub endpoint: Endpoint,
    connected: bool,
    peer_closed: bool,
    over: Option<Closing>,
    /// The application has been told how it ended.
    reported: bool,
    accepted: bool,
    shut: bool,
    /// The application wants to read no more.
    deaf: bool,
    written: u64,
    read: u64,
}

#[derive(Debug, Default)]
struct Descriptor {
    nonblocking: bool,
    resets_on_close: bool,
    keep_alive: bool,
    settings: Option<Settings>,
    role: Role,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Role {
    #[default]
    Fresh,
    Listener,
    Connection,
}

/// All sockets of the script's host. One connection at a time is alive.
#[derive(Debug)]
pub(super) struct Sockets {
    defaults: Settings,
    descriptors: BTreeMap<i64, Descriptor>,
    pub connection: Option<Connection>,
    owner: Option<i64>,
    /// Segments that left, with their times.
    pub sent: VecDeque<(Instant, Segment)>,
    /// What a blocked call has done so far.
    pub progress: u64,
    /// When a blocked `poll` gives up.
    pub deadline: Option<Instant>,
}

const PORTS: Ports = Ports { local: 8080, remote: 49_152 };
/// More segments or events than this in one instant are a loop.
const MANY: usize = 100_000;

impl Sockets {
    pub(super) fn new(defaults: Settings) -> Self {
        Self {
            defaults,
            descriptors: BTreeMap::new(),
            connection: None,
            owner: None,
            sent: VecDeque::new(),
            progress: 0,
            deadline: None,
        }
    }

    /// What sockets are made with.
    pub(super) const fn defaults(&self) -> &Settings {
        &self.defaults
    }

    /// When the engine wants to be called.
    pub(super) fn timeout(&self) -> Option<Instant> {
        self.connection.as_ref().and_then(|connection| connection.endpoint.poll_timeout())
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> Result<(), String> {
        if let Some(connection) = &mut self.connection {
            connection.endpoint.handle_timeout(now);
        }
        self.flush(now)
    }

    /// A segment arrives from the network.
    pub(super) fn arrive(&mut self, now: Instant, segment: &Segment) -> Result<(), String> {
        let alive = self.connection.as_ref().is_some_and(|connection| connection.over.is_none());
        if !alive {
            let opens = segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST);
            let listener = self.descriptors.iter().find(|(_, d)| d.role == Role::Listener).map(|(fd, _)| *fd);
            let Some(fd) = listener.filter(|_| opens) else {
                self.greet(now, segment, listener.is_some());
                return Ok(());
            };
            let mut connection = self.new_connection(fd, now, Command::Listen)?;
            connection.endpoint.handle(now, Input::Segment(segment, Integrity::Intact));
            self.connection = Some(connection);
            self.owner = None;
            return self.flush(now);
        }
        if let Some(connection) = &mut self.connection {
            connection.endpoint.handle(now, Input::Segment(segment, Integrity::Intact));
        }
        self.flush(now)
    }

    /// What a host says to a segment that belongs to no connection and opens none.
    fn greet(&mut self, now: Instant, segment: &Segment, listening: bool) {
        const KEY: [u8; 16] = [0; 16];
        let ours = SocketAddr::from(([192, 0, 2, 1], PORTS.local));
        let mut stack = Stack::new(stack::Settings { addresses: vec![ours.ip()], mtu: 1500, key: KEY });
        if listening {
            let listener = stack::Listener { config: Config::modern(), selection: Selection::default(), backlog: 1 };
            stack.listen(ours, listener).expect("the address is its own and nobody else listens");
        }
        let addresses = Addresses::new(Ipv4Addr::new(192, 0, 2, 2).into(), ours.ip()).expect("both are of one family");
        stack.handle(now, addresses, segment, Integrity::Intact);
        while let Some(datagram) = stack.poll_transmit(now) {
            self.sent.push_back((now, datagram.segment));
        }
    }

    fn new_connection(&self, fd: i64, now: Instant, command: Command) -> Result<Connection, String> {
        let descriptor = self.descriptors.get(&fd);
        let settings = descriptor.and_then(|d| d.settings.as_ref()).unwrap_or(&self.defaults);
        let (config, parts) = settings.build().map_err(|error| error.to_string())?;
        let mut endpoint = Endpoint::new(config, parts, PORTS);
        endpoint.handle(now, Input::Command(command));
        Ok(Connection::new(endpoint))
    }

    /// Takes events and segments out of the engine until it is quiet.
    pub(super) fn flush(&mut self, now: Instant) -> Result<(), String> {
        let Some(mut connection) = self.connection.take() else { return Ok(()) };
        let result = self.drain(now, &mut connection);
        self.connection = Some(connection);
        result
    }

    fn drain(&mut self, now: Instant, connection: &mut Connection) -> Result<(), String> {
        for _ in 0..MANY {
            let mut busy = false;
            while let Some(event) = connection.endpoint.poll_event() {
                busy = true;
                match event {
                    Event::Connected => connection.connected = true,
                    Event::PeerClosed => connection.peer_closed = true,
                    Event::Closed(how) => connection.over = Some(how),
                    _ => {}
                }
            }
            while let Some(segment) = connection.endpoint.poll_transmit(now) {
                busy = true;
                self.sent.push_back((now, segment));
                if self.sent.len() > MANY {
                    return Err(format!("more than {MANY} segments at one time"));
                }
            }
            if !busy {
                return Ok(());
            }
        }
        Err("the engine does not come to rest".to_owned())
    }

    /// Carries out a system call, or tries a blocked one again.
    pub(super) fn call(&mut self, now: Instant, call: &Call) -> Result<Returned, String> {
        let returned = self.dispatch(now, call)?;
        self.flush(now)?;
        Ok(returned)
    }

    fn dispatch(&mut self, now: Instant, call: &Call) -> Result<Returned, String> {
        let argument = |at: usize| call.arguments.get(at);
        let number = |at: usize| argument(at).and_then(integer);
        if call.name == "socket" {
            return Ok(self.socket(call));
        }
        if call.name == "poll" {
            return Ok(self.poll(now, call));
        }
        const KNOWN: [&str; 17] = [
            "bind",
            "listen",
            "connect",
            "accept",
            "accept4",
            "write",
            "send",
            "sendto",
            "read",
            "recv",
            "recvfrom",
            "close",
            "shutdown",
            "fcntl",
            "ioctl",
            "setsockopt",
            "getsockopt",
        ];
        let Some(fd) = number(0).filter(|_| KNOWN.contains(&call.name.as_str())) else {
            return Ok(Returned::Unsupported(format!("system call {}", call.name)));
        };
        if !self.descriptors.contains_key(&fd) {
            return Ok(Returned::error("EBADF"));
        }
        Ok(match call.name.as_str() {
            "bind" => Returned::OK,
            "listen" => {
                self.descriptors.entry(fd).or_default().role = Role::Listener;
                Returned::OK
            }
            "connect" => return self.connect(now, fd),
            "accept" | "accept4" => self.accept(fd),
            "write" | "send" | "sendto" => match self.flags(call, 3) {
                Ok(nonblocking) => self.write(now, fd, number(2).unwrap_or(0), nonblocking),
                Err(what) => Returned::Unsupported(what),
            },
            "read" | "recv" | "recvfrom" => match self.flags(call, 3) {
                Ok(nonblocking) => self.read(now, fd, number(2).unwrap_or(0), nonblocking),
                Err(what) => Returned::Unsupported(what),
            },
            "close" => self.close(now, fd),
            "shutdown" => self.shutdown(now, fd, argument(1)),
            "fcntl" => self.fcntl(fd, call),
            "ioctl" => self.ioctl(fd, call),
            "setsockopt" => self.set_option(fd, call),
            "getsockopt" => self.get_option(fd, call),
            other => Returned::Unsupported(format!("system call {other}")),
        })
    }

    fn socket(&mut self, call: &Call) -> Returned {
        let kind = call.arguments.get(1).map(words).unwrap_or_default();
        if !kind.contains(&"SOCK_STREAM") && !matches!(call.arguments.get(1), Some(Expression::Anything)) {
            return Returned::Unsupported(format!("sockets of kind {kind:?}"));
        }
        let fd = self.free_descriptor();
        let nonblocking = kind.contains(&"SOCK_NONBLOCK");
        self.descriptors.insert(fd, Descriptor { nonblocking, ..Descriptor::default() });
        Returned::Value(fd, None)
    }

    /// The lowest number that is free, after the three that every process begins with.
    fn free_descriptor(&self) -> i64 {
        let used = self.descriptors.keys();
        used.zip(3..).find(|(used, number)| **used != *number).map_or(3 + self.descriptors.len() as i64, |(_, number)| number)
    }

    fn connect(&mut self, now: Instant, fd: i64) -> Result<Returned, String> {
        if self.owner != Some(fd) {
            if self.connection.as_ref().is_some_and(|connection| connection.over.is_none()) {
                return Ok(Returned::Unsupported("two connections at a time".to_owned()));
            }
            self.connection = Some(self.new_connection(fd, now, Command::Connect)?);
            self.owner = Some(fd);
            let descriptor = self.descriptors.entry(fd).or_default();
            descriptor.role = Role::Connection;
            self.flush(now)?;
            if self.nonblocking(fd) {
                return Ok(Returned::error("EINPROGRESS"));
            }
        }
        let nonblocking = self.nonblocking(fd);
        let Some(connection) = &mut self.connection else { return Ok(Returned::error("ENOTCONN")) };
        Ok(match connection.over {
            _ if connection.connected => Returned::OK,
            Some(how) => {
                connection.reported = true;
                Returned::error(name_of(how))
            }
            None if nonblocking => Returned::error("EALREADY"),
            None => Returned::Blocks,
        })
    }

    fn accept(&mut self, listener: i64) -> Returned {
        if self.descriptors.get(&listener).is_none_or(|d| d.role != Role::Listener) {
            return Returned::error("EINVAL");
        }
        let nonblocking = self.nonblocking(listener);
        match &mut self.connection {
            Some(connection) if connection.connected && !connection.accepted && self.owner.is_none() => {
                connection.accepted = true;
                let fd = self.free_descriptor();
                self.owner = Some(fd);
                let settings = self.descriptors.get(&listener).and_then(|d| d.settings.clone());
                self.descriptors.insert(fd, Descriptor { settings, role: Role::Connection, ..Descriptor::default() });
                Returned::Value(fd, None)
            }
            _ if nonblocking => Returned::error("EAGAIN"),
            _ => Returned::Blocks,
        }
    }

    fn write(&mut self, now: Instant, fd: i64, count: i64, nonblocking: bool) -> Returned {
        let nonblocking = nonblocking || self.nonblocking(fd);
        let progress = self.progress;
        let Some(connection) = self.connection_of(fd) else { return Returned::error("ENOTCONN") };
        if let Some(how) = connection.over {
            let first = !std::mem::replace(&mut connection.reported, true);
            return Returned::error(if first && how != Closing::Normal { name_of(how) } else { "EPIPE" });
        }
        if connection.shut {
            return Returned::error("EPIPE");
        }
        let left = count as u64 - progress;
        let room = if connection.connected { connection.endpoint.send_space() } else { 0 };
        let len = left.min(room);
        if len > 0 {
            let payload = Payload::Synthetic { offset: connection.written, len: len as u32 };
            connection.endpoint.handle(now, Input::Command(Command::Send(payload)));
            connection.written += len;
        }
        let done = progress + len;
        if done == count as u64 || (nonblocking && done > 0) {
            return Returned::Value(done as i64, None);
        }
        if nonblocking {
            return Returned::error("EAGAIN");
        }
        self.progress = done;
        Returned::Blocks
    }

    fn read(&mut self, now: Instant, fd: i64, count: i64, nonblocking: bool) -> Returned {
        let nonblocking = nonblocking || self.nonblocking(fd);
        let Some(connection) = self.connection_of(fd) else { return Returned::error("ENOTCONN") };
        let mut total = 0;
        while total < count {
            let Some(payload) = connection.endpoint.read(now, (count - total) as usize) else { break };
            let offset = connection.read;
            let expected = Payload::Synthetic { offset, len: payload.len() as u32 };
            if payload.to_bytes() != expected.to_bytes() {
                let got = format!("other octets at offset {offset}");
                return Returned::Wrong("the octets that the remote host sent".to_owned(), got);
            }
            connection.read += payload.len() as u64;
            total += payload.len() as i64;
        }
        if total > 0 || count == 0 {
            return Returned::Value(total, None);
        }
        match connection.over {
            Some(how) if how != Closing::Normal => {
                let first = !std::mem::replace(&mut connection.reported, true);
                if first {
                    Returned::error(name_of(how))
                } else {
                    Returned::OK
                }
            }
            Some(_) => Returned::OK,
            None if connection.peer_closed || connection.deaf => Returned::OK,
            None if nonblocking => Returned::error("EAGAIN"),
            None => Returned::Blocks,
        }
    }

    fn close(&mut self, now: Instant, fd: i64) -> Returned {
        let Some(descriptor) = self.descriptors.remove(&fd) else { return Returned::error("EBADF") };
        if self.owner == Some(fd) {
            self.owner = None;
            if let Some(connection) = &mut self.connection {
                connection.accepted = true;
                // RFC 9293, 3.6.1: closing with unread data resets the connection, so that the peer learns of the loss.
                let abort = descriptor.resets_on_close || connection.unread() > 0;
                let command = if abort { Command::Abort } else { Command::Close };
                connection.endpoint.handle(now, Input::Command(Command::StopReading));
                if connection.over.is_none() && (abort || !connection.shut) {
                    connection.endpoint.handle(now, Input::Command(command));
                }
            }
        }
        Returned::OK
    }

    fn shutdown(&mut self, now: Instant, fd: i64, how: Option<&Expression>) -> Returned {
        let (reads, writes) = match how.map(words).unwrap_or_default().as_slice() {
            ["SHUT_WR"] => (false, true),
            ["SHUT_RDWR"] => (true, true),
            ["SHUT_RD"] => (true, false),
            other => return Returned::Unsupported(format!("shutdown {other:?}")),
        };
        let Some(connection) = self.connection_of(fd).filter(|connection| connection.over.is_none()) else {
            return Returned::error("ENOTCONN");
        };
        connection.deaf |= reads;
        if writes && !connection.shut {
            connection.shut = true;
            connection.endpoint.handle(now, Input::Command(Command::Close));
        }
        Returned::OK
    }

    fn nonblocking(&self, fd: i64) -> bool {
        self.descriptors.get(&fd).is_some_and(|descriptor| descriptor.nonblocking)
    }

    /// Whether the flags of a call say that it must not block; the error says which flag is not supported.
    #[allow(clippy::unused_self)]
    fn flags(&self, call: &Call, at: usize) -> Result<bool, String> {
        if ["read", "write"].contains(&call.name.as_str()) {
            return Ok(false);
        }
        let flags = call.arguments.get(at).map(words).unwrap_or_default();
        match flags.iter().find(|flag| !["MSG_DONTWAIT", "MSG_NOSIGNAL"].contains(flag)) {
            Some(unknown) => Err(format!("{unknown} of {}", call.name)),
            None => Ok(flags.contains(&"MSG_DONTWAIT")),
        }
    }

    fn connection_of(&mut self, fd: i64) -> Option<&mut Connection> {
        self.connection.as_mut().filter(|_| self.owner == Some(fd))
    }

    /// The state of the connection, for messages.
    pub(super) fn state(&self) -> State {
        self.connection.as_ref().map_or(State::Closed, |connection| connection.endpoint.state())
    }
}

impl Connection {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            connected: false,
            peer_closed: false,
            over: None,
            reported: false,
            accepted: false,
            shut: false,
            deaf: false,
            written: 0,
            read: 0,
        }
    }

    /// Octets that arrived in order and have not been read.
    fn unread(&self) -> u64 {
        self.endpoint.stats().octets_delivered.saturating_sub(self.read)
    }
}

fn integer(expression: &Expression) -> Option<i64> {
    match expression {
        Expression::Integer(value) => Some(*value),
        _ => None,
    }
}

fn words(expression: &Expression) -> Vec<&str> {
    match expression {
        Expression::Word(word) => vec![word],
        Expression::Or(terms) => terms.iter().flat_map(words).collect(),
        _ => Vec::new(),
    }
}

/// The error that an application sees.
const fn name_of(how: Closing) -> &'static str {
    match how {
        Closing::Normal => "0",
        Closing::Aborted => "ECONNABORTED",
        Closing::Reset => "ECONNRESET",
        Closing::Refused => "ECONNREFUSED",
        Closing::TimedOut => "ETIMEDOUT",
    }
}
