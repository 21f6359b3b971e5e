//! DCCP (RFC 4340): datagrams with congestion control, CCID 2 (RFC 4341) and CCID 3 (RFC 4342).
//!
//! An [`Endpoint`] is one end of a connection, driven as the one of [`tcp`](crate::tcp) is: it has no clock and no socket. Data packets
//! may be lost; the receiver reports the fate of each with Ack Vectors, and with Data Dropped options why it could not use the data of
//! one that arrived. The sender tells its driver of each packet that it takes for lost, as TCP does.

mod ccid;
mod ccid2;
mod ccid3_receiver;
mod ccid3_sender;
mod config;
mod endpoint;
mod history;
mod input;
mod negotiation;
mod output;
mod received;
mod rtt;
mod table;

#[cfg(test)]
mod tests;

pub use super::words::{Command, Datagram, Event, View};
pub use config::{Ccid, Combination, Config, Mode};
pub use endpoint::{Endpoint, Input};
pub use table::{CCID_2, CCID_3};
