//! What sender and receiver can measure of their path: shared by the congestion controls and differentiators that need the same quantity.
//!
//! Each estimator of a sender is fed with every [`Ack`](crate::path::Ack), each of a receiver with every
//! [`Arrival`](crate::arrival::Arrival), and answers without side effects. None allocates for one, and each costs a constant number of
//! operations for one, taken over many.

mod backlog;
mod bandwidth;
mod delivery_rate;
mod jitter;
mod one_way;
mod peer_clock;
mod queue_usage;
mod rate;
mod recent;
mod remembered;
mod rounds;
mod spacing;
mod standing;
mod trips;
pub(crate) mod wave_rates;

pub use backlog::{backlog, Backlog, Round};
pub use bandwidth::{Bandwidth, Filter};
pub use delivery_rate::DeliveryRate;
pub use jitter::{Clock, Jitter, Span};
pub use one_way::OneWay;
pub use peer_clock::PeerClock;
pub use queue_usage::QueueUsage;
pub use rate::{BottleneckRate, RoundRate};
pub use recent::{Extent, Recent};
pub use remembered::{Extremes, Remembered};
pub use rounds::Rounds;
pub use spacing::Spacing;
pub use standing::StandingDelay;
pub use trips::Trips;
pub use wave_rates::WaveRates;
