//! The transport engine of whyloss: TCP without I/O.
//!
//! An [`Endpoint`] is one end of a connection. It has no clock, socket, thread or global: its driver hands it segments, commands and
//! the time, and takes out segments, events and the time at which it wants to be called again. A simulator, a TUN device and a
//! packet-capture replay drive the very same code.
//!
//! Five roles decide what happens around a loss, and any inhabitant of one goes with any of the others:
//! [`CongestionControl`](congestion::CongestionControl), [`LossDifferentiator`](differentiation::LossDifferentiator),
//! [`Reaction`](reaction::Reaction), [`TimeoutPolicy`](timeout::TimeoutPolicy) and
//! [`ReceiverAgent`](receiver::ReceiverAgent). [`scheme`] knows them by name.
#![forbid(unsafe_code)]

pub mod arrival;
mod budget;
pub mod congestion;
pub mod datagram;
pub mod differentiation;
pub mod estimate;
pub mod kit;
pub mod path;
#[cfg(feature = "serde")]
pub mod quantity;
pub mod reaction;
pub mod receiver;
pub mod scheme;
pub mod segment;
pub mod seq;
pub mod stack;
pub mod tcp;
pub mod time;
pub mod timeout;
pub mod units;
pub mod verdict;
pub mod wire;

pub use segment::{Integrity, Payload, Segment};
pub use seq::Seq;
pub use tcp::{Command, Config, Endpoint, Event, Input, Parts, Ports};
pub use time::{Duration, Instant};
pub use units::BitRate;
