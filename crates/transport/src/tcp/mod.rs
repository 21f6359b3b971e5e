//! One TCP connection (RFC 9293).
//!
//! [`Endpoint`] is the face; behind it one file holds one thought:
//!
//! - opening and closing (`handshake`, `fast_open`), arriving segments (`input`), what leaves (`output`), how large packets may be (`pmtu`), timers (`timers`), a window
//!   that the peer has closed (`closed_window`), data that waits for probes (`probing`);
//! - what an acknowledgement delivers, teaches and sets in motion (`ack`), and what it asks for (`snacks`);
//! - **where a loss is judged**: `losses`, by duplicates or by time (`rack`); `differentiators` passes every event on to them;
//! - **where the window falls** and how it comes back: `reduction`, with `prr`, `ramp` and `undo`;
//! - **where a timeout is handled**: `expiry`, and its assessment in `after_timeout`;
//! - what is being repaired meanwhile: the state machine of `recovery`, which alone changes its state.
//!
//! The data structures (`scoreboard`, `assembler`, `send_buffer`, `rtt`, `bulk`, `peer_window`, `quick_acks`, `hold`,
//! `window_use`) know nothing of each other.

mod ack;
mod after_timeout;
mod arrivals;
mod assembler;
mod bulk;
mod clock;
mod closed_window;
mod config;
mod differentiators;
mod endpoint;
mod expiry;
mod fast_open;
mod handshake;
mod hold;
mod input;
mod losses;
mod output;
mod pacer;
mod parts;
mod peer_window;
mod pmtu;
mod probing;
mod prr;
mod quick_acks;
mod quiet;
mod rack;
mod ramp;
mod record;
mod recovery;
mod reduction;
mod retransmission;
mod rtt;
mod scoreboard;
mod send_buffer;
mod sides;
mod snacks;
mod timers;
mod undo;
mod waves;
mod window_use;

#[cfg(feature = "serde")]
pub use config::Overrides;
pub use config::{AckPolicy, ClosedWindow, Config, ConfigError, FastRecovery, Granularity, Profile, ReportResponse, PROFILES};
pub use differentiators::Differentiators;
pub use endpoint::Endpoint;
pub use parts::Parts;
pub use record::{
    Closing, Command, Event, FastOpenAnswer, FastOpenRequest, GapRecord, Input, Judgement, LossRecord, Outstanding, Ports,
    Repair, State, Stats, TimeoutRecord,
};
pub use retransmission::RetransmissionTrigger;

#[cfg(test)]
mod models;
mod report_numbers;
#[cfg(test)]
mod tests;
