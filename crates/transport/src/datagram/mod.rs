//! Transports that carry datagrams.

pub mod dccp;
mod endpoint;
pub mod tfrc;
mod words;

pub use endpoint::{Config, Endpoint, Packet};
pub use words::{Command, Datagram, Event, View};

use crate::kit::Part;

/// All datagram transports with congestion control: a flow takes one as its scheme.
pub static TABLE: &[Part<Config>] = &[dccp::CCID_2, dccp::CCID_3, tfrc::TFRC];
