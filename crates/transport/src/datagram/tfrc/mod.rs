//! TCP-friendly rate control: a smooth rate from the TCP equation and the loss event rate (RFC 5348; Floyd et al. 2000).
//!
//! What does not depend on who carries it stands in [`Detector`], [`LossIntervals`], [`Version`] and [`RateControl`]; CCID 3 of
//! [`dccp`](super::dccp) uses it, too. [`Endpoint`] is a transport of its own, in which as in the publications the receiver computes the loss event rate:
//! datagrams over UDP, no handshake, no retransmissions.

mod control;
mod detector;
mod endpoint;
mod equation;
mod intervals;
mod receiver;
mod table;

pub(super) use control::first_interval;
pub use control::{RateControl, Rules, Told};
pub use detector::{Detector, Interval};
pub use endpoint::Endpoint;
pub use equation::{rate, Version};
pub use intervals::{LossIntervals, INTERVALS};
pub use table::{Config, TFRC};
