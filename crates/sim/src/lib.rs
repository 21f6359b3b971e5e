//! A discrete-event network for the transport engine of whyloss.
//!
//! A [`Builder`] takes hosts, routers, links and flows and makes a [`Simulation`] of them; [`Simulation::run`] lets time pass, and
//! [`Simulation::into_records`] says what happened: to each flow, on each link, and why each packet was lost. The same inputs give
//! the same records on any machine.
#![forbid(unsafe_code)]

mod build;
pub mod channel;
mod random;
mod record;
mod simulation;
mod truth;

pub use build::{Amount, BuildError, Builder, CbrFlow, End, LinkId, LinkSpec, NodeId, QueueLimit, StripedTransfer, TcpFlow, Way};
pub use channel::{AtEnd, ChannelSpec, Effect, Errors, Pattern, PatternError, Step};
pub use record::{
    DropRecord, FlowRecord, FlowSample, LinkRecord, LinkSample, LossRow, PacketCounts, Records, StripedRecord, TimeoutRow,
};
pub use simulation::{Limits, Outcome, Progress, RunError, Simulation};
pub use truth::{Cause, CauseCounts, Truth};
