//! What a file descriptor of the script stands for.

use crate::errors::ErrorQueue;
use crate::limits::Limits;
use crate::send_queue::SendQueue;
use std::collections::VecDeque;
use std::net::SocketAddr;
use whyloss_testkit::settings::Settings;
use whyloss_transport::stack::ConnectionId;
use whyloss_transport::tcp::Closing;

/// What the host knows of one file descriptor that is a socket.
#[derive(Debug)]
pub struct Descriptor {
    pub nonblocking: bool,
    /// `SO_LINGER` with a time of zero: closing resets.
    pub resets_on_close: bool,
    pub v6: bool,
    pub bound: Option<SocketAddr>,
    /// For what it opens or accepts.
    pub settings: Settings,
    pub keep_alive: bool,
    pub options: Options,
    pub role: Role,
}

/// Options that are the socket's own; what it accepts inherits them.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `SO_SNDBUF` as it was set, in octets.
    pub send_buffer: Option<u64>,
    /// `TCP_NOTSENT_LOWAT`; 0 if it was not set.
    pub notsent_low: u32,
    /// `TCP_INQ`: tell what is left with what is read.
    pub inquire: bool,
    /// `SO_ZEROCOPY`: sends with `MSG_ZEROCOPY` are told of in the error queue.
    pub zero_copy: bool,
    /// `SO_TIMESTAMPING`: flags that say of which stages timestamps are wanted.
    pub timestamping: u32,
    /// `TCP_FASTOPEN_CONNECT`: `connect` returns at once, the first write sends the SYN.
    pub fast_open_connect: bool,
    /// `TCP_FASTOPEN`: handshakes with data that may be open at a time, if the application has said.
    pub fast_open_backlog: Option<usize>,
    /// `TCP_FASTOPEN_KEY`: the key of this socket's cookies, if it has one of its own.
    pub fast_open_key: Option<[u8; 16]>,
}

#[derive(Debug)]
pub enum Role {
    Fresh,
    /// `connect` has named the peer, the first write opens the connection.
    Deferred(SocketAddr),
    /// Connections that were not accepted yet.
    Listener(VecDeque<ConnectionId>),
    Connection(ConnectionId),
}

/// What the application knows, or could know, of a connection.
#[derive(Debug, Default)]
pub struct Seen {
    pub connected: bool,
    pub peer_closed: bool,
    pub over: Option<Closing>,
    /// The application has been told how it ended.
    pub reported: bool,
    /// The application sends no more.
    pub shut: bool,
    /// The application reads no more.
    pub deaf: bool,
    /// Octets that were read.
    pub read: u64,
    /// It was opened fast.
    pub fast: bool,
    /// Edges (`EPOLLET`) so far: events after which the socket may be ready again.
    pub edges: u64,
    pub errors: ErrorQueue,
    pub queue: SendQueue,
    pub limits: Limits,
}
