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

pub use crate::arrival::{Arrival, Damaged, ReceiveView};

use crate::kit::Part;
use crate::segment::Report;
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

/// The built-in receiver agents, which scenarios can name.
pub static TABLE: &[Part<dyn ReceiverAgent>] = &[plain::PART, checksum::PART, hack::PART, waves::PART, survival::PART];
