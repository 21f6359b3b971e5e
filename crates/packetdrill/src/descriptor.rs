//! What a file descriptor of the script stands for.

use std::collections::VecDeque;
use std::net::SocketAddr;
use whyloss_testkit::settings::Settings;
use whyloss_transport::stack::ConnectionId;
use whyloss_transport::tcp::Closing;

/// A socket.
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
    pub role: Role,
}

#[derive(Debug)]
pub enum Role {
    Fresh,
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
    /// The application has closed it.
    pub orphan: bool,
    /// Octets that were read.
    pub read: u64,
}
