//! A discrete-event network for the transport engine of whyloss.
//!
//! A [`Builder`] takes hosts, routers, links and flows and makes a [`Simulation`] of them; [`Simulation::run`] lets time pass, and
//! [`Simulation::into_records`] says what happened: to each flow, on each link, and why each packet was lost. The same inputs give
//! the same records on any machine.
#![forbid(unsafe_code)]

mod address;
mod ahead;
mod assemble;
mod build;
mod capture;
pub mod channel;
mod crossing;
mod direction;
mod error;
mod events;
mod fates;
mod finish;
mod hop;
mod hosts;
mod link;
mod meter;
pub mod middlebox;
mod moves;
mod network;
mod octets;
mod outage;
mod pacing;
mod packet;
mod playback;
mod policer;
mod queue;
mod radio;
mod random;
mod record;
mod routes;
mod service;
mod settle;
mod shape;
mod simulation;
mod smoothness;
mod spell;
mod spread;
mod striped;
mod text;
mod trace;
mod traffic;
mod truth;
mod varying;
mod web;
mod whole;
mod wire;

pub use address::{EndpointId, FlowId, LinkId, NodeId, Way};
pub use build::{Amount, Builder, CbrFlow, DatagramFlow, End, StripedTransfer, Supply, TcpFlow};
pub use capture::{Capture, CaptureSpec, Captured, Damage, Fate, Note};
pub use channel::{AtEnd, Channel, ChannelOutcome, ChannelSpec, Effect, Errors, Pattern, Spacing, Step};
pub use crossing::{Arrival, Crossing, CrossingCounts, Packet, Passage};
pub use direction::LinkNames;
pub use error::{BuildError, ChannelError, Flaw, RunError};
pub use fates::{LossWatch, NoticedLoss};
pub use middlebox::{Middlebox, MiddleboxKind};
pub use moves::Move;
pub use outage::{Downtime, Outage, Turns, WhileDown};
pub use pacing::{Bursts, Pacing, Rhythm};
pub use playback::{Playback, PlaybackCounts};
pub use policer::Policer;
pub use queue::{AdaptiveRed, CoDel, DelayEstimate, Discipline, FqCoDel, Pie, Red, Warn};
pub use radio::{ChannelScope, Locking, RadioSpec};
pub use record::{
    AirCounts, DropRecord, FlowRecord, FlowSample, LinkRecord, LinkSample, LogSpec, LossRow, MiddleboxRecord, PacketCounts,
    PacketRecord, Records, Settled, StripedRecord, TimeoutRow,
};
#[cfg(feature = "serde")]
pub use shape::DirectionSpec;
pub use shape::{Change, LinkSpec, QueueLimit, Stretch};
pub use simulation::{Limits, Progress, RunOutcome, Simulation};
pub use smoothness::Smoothness;
pub use spell::{Drawn, Spell, SpellLaw};
pub use spread::{Jitter, JitterLaw, Reorder};
pub use text::FileError;
pub use trace::Trace;
pub use truth::{Cause, CauseCounts, Truth};
pub use web::{PageCounts, Web};
pub use whole::WholeFile;
pub use wire::{WireAgent, WireLink, WireNode};
