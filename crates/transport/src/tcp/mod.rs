//! One TCP connection (RFC 9293).
//!
//! [`Endpoint`] is the face; behind it one file holds one thought: opening and closing (`handshake`, `fast_open`), arriving segments (`input`),
//! acknowledgements (`ack`, `after_timeout`), loss detection and recovery (`recovery`, `rack`, `prr`, `bulk`, `undo`, `ramp`), timers (`timers`),
//! how large packets may be (`pmtu`) and what leaves (`output`). The data structures (`scoreboard`, `assembler`, `send_buffer`, `rtt`,
//! `quick_acks`, `window_use`) know nothing of each other.

mod ack;
mod after_timeout;
mod arrivals;
mod assembler;
mod bulk;
mod clock;
mod config;
mod endpoint;
mod fast_open;
mod handshake;
mod heard;
mod input;
mod output;
mod parts;
mod pmtu;
mod prr;
mod quick_acks;
mod rack;
mod ramp;
mod record;
mod recovery;
mod rtt;
mod scoreboard;
mod send_buffer;
mod sides;
mod timers;
mod undo;
mod waves;
mod window_use;

#[cfg(feature = "serde")]
pub use config::Overrides;
pub use config::{AckPolicy, Config, ConfigError, Granularity, Profile, Recovery, ReportResponse, PROFILES};
pub use endpoint::Endpoint;
pub use fast_open::{FastOpenAnswer, FastOpenRequest};
pub use parts::Parts;
pub use record::{
    Closing, Command, Event, GapRecord, Input, Judgement, LossRecord, Outstanding, Ports, Repair, State, Stats, TimeoutRecord,
};

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
