//! What a link, or the way into a host, does to packets.
//!
//! Links, queues and radios are what the simulator defines; a channel is not. In a file the kinds of errors are fields beside each other, so that a
//! sweep or `--set` can put one in the place of another, and a pattern is the name of a file that differs from run to run. The simulator wants one
//! kind, with the bits of the pattern in it ([`whyloss_sim::ChannelSpec`]); `channels.rs` makes the one of the other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use whyloss_sim::{AtEnd, Effect, Errors, Spacing};
use whyloss_transport::quantity::Probability;
use whyloss_transport::Duration;

/// What a link does to packets: one of `ber`, `pattern`, `loss`, `spaced`, `markov`, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Channel {
    /// Every bit is in error with this probability, independently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ber: Option<Probability>,
    /// A file that names the bits in error, counted over all bits that cross the link. Relative to the scenario file; `{run}` stands for
    /// the number of the run, `{run:02}` for the same with leading zeros.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Every packet is in error with this probability, independently, whatever its length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Probability>,
    /// Packets at certain distances are in error, counted in packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spaced: Option<Spaced>,
    /// Every packet that meets a two-state chain in its bad state is in error (Gilbert 1960), or with the probability of the state (Elliott 1963).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub markov: Option<Markov>,
    /// What an error does: `"damage"` flips bits and lets the packet travel on (if nothing is said, with `ber` and `pattern`); `"erase"`
    /// loses it without a trace (if nothing is said, with `loss`, `spaced` and `markov`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// What comes after the last bit of a pattern: `"repeat"` the pattern, if nothing is said, or `"clean"`, no more errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern_end: Option<AtEnd>,
}

/// The fields of [`Channel`] of which one at most can be given. Setting one by an override takes the others away.
pub const CHANNEL_ERRORS: &[&str] = &["ber", "pattern", "loss", "spaced", "markov"];

/// Errors at certain distances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spaced {
    /// Share of packets in error: the distance from one to the next is 1/rate packets in the mean.
    pub rate: Probability,
    /// The law of the distances.
    pub law: Spacing,
}

/// A two-state chain that starts in its good state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Markov {
    /// Probability to stay in the good state at a step.
    pub stay_good: Probability,
    /// Probability to stay in the bad state at a step.
    pub stay_bad: Probability,
    /// The chain steps whenever this time has passed; with every packet if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Probability that a packet is in error in the good state; 0 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_good: Option<Probability>,
    /// Probability that a packet is in error in the bad state; 1 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_bad: Option<Probability>,
}

impl Markov {
    /// The probabilities of an error in the good and in the bad state.
    pub fn hits(&self) -> (f64, f64) {
        let (good, bad) = Errors::IN_BAD;
        (self.lost_good.map_or(good, |given| given.0), self.lost_bad.map_or(bad, |given| given.0))
    }
}

/// Errors end to end: what happens to packets that have arrived at a host, before its transport sees them. No link repairs them.
/// Patterns are not possible here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Input {
    /// What happens to packets with data that the host receives. No other packets count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<Channel>>,
    /// What happens to the answers to data that the host sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acks: Option<Box<Channel>>,
}
