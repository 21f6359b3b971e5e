//! What a receiver measures and reports. One file an agent.

mod checksum;
mod hack;
mod loss_cause;
mod plain;
mod survival;
#[cfg(test)]
mod tests;
mod waves;

pub use checksum::Checksum;
pub use hack::Hack;
pub use loss_cause::LossCause;
pub use plain::Plain;
pub use survival::Survival;
pub use waves::Waves;

use crate::differentiation::Gap;
use crate::scheme::Part;
use crate::segment::{Integrity, Report, Segment};
use crate::time::{Duration, Instant};
use std::fmt;

/// Watches arrivals and puts reports into the options of acknowledgements.
pub trait ReceiverAgent: fmt::Debug + Send {
    /// Whether the connection has to negotiate loss reports on its SYN.
    fn wants_reports(&self) -> bool {
        false
    }

    /// An intact segment with data arrived and was processed.
    fn on_arrival(&mut self, _arrival: &Arrival) {}

    /// A damaged segment of this connection arrived. Only the agent sees it. Returns whether to acknowledge at once.
    fn on_damaged(&mut self, _damaged: &Damaged) -> bool {
        false
    }

    /// One data segment in how many the peer has to mark for preferential dropping, if it shall mark any.
    fn drop_precedence(&self) -> Option<u32> {
        None
    }

    /// An acknowledgement is about to leave: the report it shall carry.
    fn report(&mut self, _view: &ReceiveView) -> Option<Report> {
        None
    }
}

/// The state of reassembly.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveView<'a> {
    /// The time.
    pub now: Instant,
    /// Position of the first octet of the stream.
    pub first: u64,
    /// `RCV.NXT`.
    pub next: u64,
    /// Right edge of the receive window.
    pub window_end: u64,
    /// Ranges received out of order, ascending, disjoint: `[start, end)`.
    pub islands: &'a [(u64, u64)],
    /// Payload of a full segment as seen so far, in octets; 0 before the first.
    pub full_segment: u32,
    /// Whether loss reports were negotiated.
    pub reports_negotiated: bool,
}

/// An intact segment with data.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Reassembly after the segment.
    pub view: ReceiveView<'a>,
    /// Position of its first octet.
    pub start: u64,
    /// Octets.
    pub len: u32,
    /// Whether nothing of it was new.
    pub duplicate: bool,
    /// Time since the previous arrival of data; `None` for the first.
    pub spacing: Option<Duration>,
    /// How much longer it was under way than an earlier one, in nanoseconds: the relative one-way trip time, as exact as the sender's
    /// timestamps tick ([`OneWay`](crate::estimate::OneWay)). The clocks need not agree. `None` without timestamps and until it is known how
    /// long the ticks are.
    pub trip: Option<i64>,
    /// The gap that it showed: segments missing before it that are not known to be missing from earlier arrivals.
    pub gap: Option<Gap>,
    /// The segment.
    pub segment: &'a Segment,
}

/// A segment with a broken TCP checksum under an intact IP header whose addresses and ports match the connection.
#[derive(Clone, Copy, Debug)]
pub struct Damaged<'a> {
    /// Reassembly; a damaged segment does not change it.
    pub view: ReceiveView<'a>,
    /// What could be read. Trust only what is confirmed independently.
    pub segment: &'a Segment,
    /// What is known of the header.
    pub integrity: Integrity,
}

/// All receiver agents.
pub static TABLE: &[Part<dyn ReceiverAgent>] = &[plain::PART, checksum::PART, hack::PART, waves::PART, survival::PART];
