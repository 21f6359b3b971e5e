//! A discrete-event network for the transport engine of whyloss.
//!
//! A [`Builder`] takes hosts, routers, links and flows and makes a [`Simulation`] of them; [`Simulation::run`] lets time pass, and
//! [`Simulation::into_records`] says what happened: to each flow, on each link, and why each packet was lost. The same inputs give
//! the same records on any machine.
#![forbid(unsafe_code)]

mod assemble;
mod build;
mod capture;
pub mod channel;
mod crossing;
mod dccp;
mod direction;
mod events;
mod finish;
mod hosts;
mod link;
mod middlebox;
mod network;
mod octets;
mod packet;
mod queue;
mod radio;
mod random;
mod record;
mod routes;

mod simulation;
mod striped;
mod truth;

pub use build::{
    Amount, BuildError, Builder, CbrFlow, DccpFlow, End, LinkId, LinkSpec, NodeId, QueueLimit, StripedTransfer, Supply, TcpFlow,
    Way,
};
pub use capture::Capture;
pub use channel::{AtEnd, Channel, ChannelError, ChannelSpec, Effect, Errors, Fate, Pattern, PatternError, Spacing, Step};
pub use crossing::{Arrival, Crossing, CrossingCounts, Packet, Passage};
pub use direction::LinkNames;
pub use middlebox::Middlebox;
pub use queue::{Discipline, Red};
pub use radio::{Locking, Propagation, RadioSpec};
pub use record::{
    AirCounts, DropRecord, FlowRecord, FlowSample, LinkRecord, LinkSample, LossRow, PacketCounts, Records, StripedRecord,
    TimeoutRow,
};
pub use simulation::{Limits, Outcome, Progress, RunError, Simulation};
pub use truth::{Cause, CauseCounts, Truth};
