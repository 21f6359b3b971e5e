//! What a sender can measure of its path: shared by the congestion controls and differentiators that need the same quantity.
//!
//! Each estimator is fed with every [`Ack`](crate::path::Ack) and answers without side effects. None allocates for an
//! acknowledgement, and each costs a constant number of operations for one, taken over many.

mod backlog;
mod bandwidth;
mod jitter;
mod queue_usage;
mod rate;
mod receiver_clock;
mod recent;
mod rounds;

pub use backlog::{backlog, Backlog, Round};
pub use bandwidth::{Bandwidth, Filter};
pub use jitter::{Clock, Jitter, Span};
pub use queue_usage::{Extremes, QueueUsage};
pub use rate::{BottleneckRate, RoundRate};
pub use receiver_clock::ReceiverClock;
pub use recent::{Extent, Recent};
pub use rounds::Rounds;
