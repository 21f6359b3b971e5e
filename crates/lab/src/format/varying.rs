//! What makes a link another one for every packet, or from time to time.

use super::channel::Channel;
use crate::quantity::{Capacity, Probability, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An extra delay that differs from packet to packet, on top of `delay`, which stays the smallest delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// Mean of the extra delay, whatever its law.
    pub mean: Span,
    /// Its law; `"uniform"` if nothing is said.
    #[serde(default)]
    pub law: JitterLaw,
    /// `"normal"` only, and needed there: standard deviation, at most the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<Span>,
    /// `"pareto"` only: its shape, above 1; 3 if nothing is said, as in Linux's netem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<f64>,
}

/// The law of an extra delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JitterLaw {
    /// Any delay from 0 to below twice the mean is as likely.
    #[default]
    Uniform,
    /// Normal around the mean; what falls below 0 or above twice the mean is drawn again.
    Normal,
    /// Exponential.
    Exponential,
    /// Pareto, moved to begin at 0.
    Pareto,
}

/// A share of the packets leaves the order: either `late` or `early`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of the packets.
    pub share: Probability,
    /// They arrive this much later, and those that follow overtake them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<Span>,
    /// They arrive this much sooner, but not before they have been transmitted, and overtake those ahead of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<Span>,
}

/// A period in which the link is down, such as a hand-off, once or again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When the first begins.
    pub at: Span,
    /// How long each lasts.
    pub lasts: Span,
    /// From the beginning of one to the beginning of the next; there is only one if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// What becomes of packets: `"dropped"` if nothing is said.
    #[serde(default)]
    pub packets: WhileDown,
}

/// What a link that is down does to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhileDown {
    /// The transmitter goes on, and what it transmits is lost.
    #[default]
    Dropped,
    /// The transmitter stops, and packets wait in the queue.
    Held,
}

/// What is different from some time on. Each field stays as it is then until another change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// From when on.
    pub at: Span,
    /// Bit rate, also of what a packet in transmission still has to send. Not with a `trace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation delay of packets whose transmission ends from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Room in the queue for packets that come from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Capacity>,
    /// What the link does to packets whose transmission ends from now on; `{}` for nothing. Patterns are not possible here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
}
