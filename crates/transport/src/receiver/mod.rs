//! What a receiver measures and reports. One file an agent.

mod checksum;
mod freeze;
mod hack;
mod loss_cause;
mod plain;
mod selective;
mod separation;
mod snack;
mod survival;
#[cfg(test)]
mod tests;
mod waves;

pub use checksum::Checksum;
pub use freeze::Freeze;
pub use hack::Hack;
pub use loss_cause::LossCause;
pub use plain::Plain;
pub use selective::Selective;
pub use separation::Separations;
pub use snack::Snack;
pub use survival::Survival;
pub use waves::{Code, Waves};

pub use crate::arrival::{Arrival, Damaged, LinkHint, ReceiveView};

use crate::differentiation::GapDifferentiator;
use crate::kit::Part;
use crate::segment::{self, Report};
use crate::time::Instant;
use std::fmt;

/// How a segment with data is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// As any TCP does it.
    Usual,
    /// Not on its account. What is due for another reason leaves all the same.
    None,
}

/// Watches arrivals and puts reports into the options of acknowledgements.
pub trait ReceiverAgent: fmt::Debug + Send {
    /// Whether it is to be told of arrivals, and asked what to do about them and when, and for reports. Asked once, when the connection is made;
    /// false spares each packet calls in vain.
    fn listens(&self) -> bool {
        true
    }

    /// Whether the connection has to negotiate loss reports on its SYN.
    fn wants_reports(&self) -> bool {
        false
    }

    /// Whether the connection has to negotiate selective negative acknowledgements on its SYN.
    fn wants_snacks(&self) -> bool {
        false
    }

    /// The differentiator at the receiver that rules, for agents that act upon its verdicts.
    fn judge_by(&mut self, _differentiator: Box<dyn GapDifferentiator>) {}

    /// An intact segment with data arrived and was processed.
    fn on_arrival(&mut self, _arrival: &Arrival) {}

    /// How to acknowledge the latest arrival. Asked after [`on_arrival`](Self::on_arrival).
    fn answer(&self) -> Answer {
        Answer::Usual
    }

    /// Whether it has to be told when the link goes down and comes back. Only a driver that sees or foresees it knows.
    fn wants_link(&self) -> bool {
        false
    }

    /// The driver knows something of the link. Returns how many acknowledgements leave at once on that account.
    fn on_link(&mut self, _hint: LinkHint, _view: &ReceiveView) -> u32 {
        0
    }

    /// Whether what leaves now announces a closed window, whatever room there is.
    fn closes_window(&self) -> bool {
        false
    }

    /// The peer's FIN came for the first time, whether anything before it is missing or not. It is acknowledged at once.
    fn on_end(&mut self, _view: &ReceiveView) {}

    /// When [`on_timeout`](Self::on_timeout) shall be called.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) may have come. Returns whether to acknowledge at once.
    fn on_timeout(&mut self, _view: &ReceiveView) -> bool {
        false
    }

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

    /// The position from which on acknowledgements carry no SACK blocks now, for agents that keep holes from being repaired as congestion.
    fn conceals_from(&self) -> Option<u64> {
        None
    }

    /// An acknowledgement is about to leave: the selective negative acknowledgements that it shall carry, of `room` octets at most.
    fn snacks(&mut self, _view: &ReceiveView, _room: usize) -> Vec<segment::Snack> {
        Vec::new()
    }
}

/// The built-in receiver agents, which scenarios can name.
pub static TABLE: &[Part<dyn ReceiverAgent>] = &[
    plain::PART,
    checksum::PART,
    hack::PART,
    waves::PART,
    survival::PART,
    snack::PART,
    selective::PART,
    freeze::PART,
    separation::PART,
];
