//! One TCP connection (RFC 9293).

mod config;
mod endpoint;

pub use config::{AckPolicy, Config, Granularity, Profile, Recovery, ReportResponse, PROFILES};
pub use endpoint::{Closing, Command, Endpoint, Event, Input, Judgement, LossRecord, Ports, State, Stats, TimeoutRecord};
