//! The scenario file, field by field. The JSON Schema in `docs/` is generated from these types.

mod application;
mod capture;
mod chain;
mod channel;
mod flow;
mod topology;

pub use application::{Cbr, Datagrams, Playback, Stream};
pub use capture::{Capture, Taken};
pub use chain::Chain;
pub use channel::{Channel, Input, Markov, Spaced, CHANNEL_ERRORS};
pub use flow::{Flow, Traffic};
pub use topology::{Access, Direction, Dumbbell, Host, Link, Links, Move, Path, Router, Shape};
pub use whyloss_sim::{
    AdaptiveRed, AtEnd, ChannelScope, CoDel, DelayEstimate, Discipline, Effect, FqCoDel, Jitter, JitterLaw, Locking,
    MiddleboxKind, Outage, Pie, Policer, Red, Reorder, Smoothness, Spacing, Warn, Web, WhileDown,
};
pub use whyloss_transport::kit::Value as Parameter;
pub use whyloss_transport::tcp::{AckPolicy, FastRecovery as Recovery, Granularity, Overrides as Tcp, ReportResponse};

/// What is different in a link from some time on.
pub type Change = whyloss_sim::Change<Channel>;

/// A radio channel and the stations on it.
pub type Radio = whyloss_sim::RadioSpec<Channel>;

/// An agent at a router, both by their names.
pub type Middlebox = whyloss_sim::Middlebox<String, String>;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use whyloss_transport::Duration;

/// A scenario: a network, what is sent over it, and what is written down.
///
/// The network is `[path]` (one shaped link), `[dumbbell]` (one bottleneck, many pairs), `[chain]` (radio stations in a row), or free:
/// `[[host]]`, `[[router]]`, `[[link]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Document {
    /// Name, seed and duration.
    pub scenario: Header,
    /// A server and a client joined by one shaped link, as with a link emulator between two machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Path>,
    /// Pairs of hosts that share one bottleneck.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dumbbell: Option<Dumbbell>,
    /// Radio stations in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<Chain>,
    /// The radio channel of `[chain]`, or of the nodes of a free network that have a position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radio: Option<Radio>,
    /// Hosts of a free network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<Host>,
    /// Routers of a free network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub router: Vec<Router>,
    /// Links of a free network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<Link>,
    /// Agents at routers. Of several of one link, the last is the nearest to the link.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub middlebox: Vec<Middlebox>,
    /// What is sent: one entry for each kind of flow.
    pub flow: Vec<Flow>,
    /// What is written down beside flows, losses and links.
    pub output: Output,
}

/// Name, seed and duration of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Header {
    /// What tables call it; the name of the file if nothing is said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What it is for, in a sentence or two.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// All random numbers of a run follow from the seed and the number of the run.
    pub seed: u64,
    /// A run ends when all transfers of a given size are complete, and at this simulated time at the latest. Needed if there are none;
    /// otherwise 1 h if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// Every packet waits for a random time below this before it leaves its host, as on real machines. It breaks the phase effects
    /// of drop-tail queues (Floyd & Jacobson 1992). `"0 ms"` switches it off.
    pub send_overhead: Duration,
}

impl Default for Header {
    fn default() -> Self {
        Self { name: String::new(), description: String::new(), seed: 1, duration: None, send_overhead: Duration::ZERO }
    }
}

/// What is written down beside flows, losses and links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Output {
    /// Interval of the time series of windows and queues; none if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Duration>,
    /// Packet captures, written to pcapng files: names of hosts and routers, or `{ at = "server", snaplen = 96, … }`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capture: Vec<Capture>,
    /// Keep a row for every packet that did not arrive, beside the losses that senders noticed.
    pub drops: bool,
    /// Keep a row for every packet that an endpoint sent; none if nothing is said. `segments = {}` keeps those of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<Segments>,
    /// The bins of time of `smoothness` in the table `flows`; those of a second, from the beginning on, if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothness: Option<Smoothness>,
}

/// Which packets are kept one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Segments {
    /// Those that left at this time or later.
    pub from: Duration,
    /// Those that left before this time; to the end of the run if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
    /// So many at most, the first ones. How many more there were stands in the table `runs`.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub at_most: u32,
}

impl Segments {
    /// The largest value of `at_most`: 1.5 GB in memory.
    pub const MOST: u32 = 10_000_000;
}

impl Default for Segments {
    fn default() -> Self {
        Self { from: Duration::ZERO, until: None, at_most: 1_000_000 }
    }
}

/// The JSON Schema of a scenario file.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Document).to_value();
    schema["title"] = "whyloss scenario".into();
    schema
}
