//! Hosts, routers, links, and the shorthands for networks that everyone needs.

use super::channel::{Channel, Input};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use whyloss_sim::{Discipline, Jitter, Outage, Reorder};
use whyloss_transport::quantity::{Capacity, Length, Probability, Rate, Size, Span};

type Change = whyloss_sim::Change<Channel>;

/// A host: flows start and end here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Where it stands, if it has a radio: two coordinates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<[Length; 2]>,
    /// What happens to packets that have arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
}

/// A router: it forwards packets on the way with the fewest links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// Its name.
    pub name: String,
    /// Where it stands, if it has a radio: two coordinates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<[Length; 2]>,
}

/// Defines a struct with the given fields and, after them, everything that shapes a link.
macro_rules! shaped {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            /// Bit rate over all octets of an IP packet. Needed, unless there is a `trace`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub rate: Option<Rate>,
            /// One-way propagation delay; `"0 ms"` if nothing is said.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub delay: Option<Span>,
            /// How much waits in front of the link before packets are dropped at the tail; `"100 pkt"` if nothing is said. The packet
            /// in transmission is not counted.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub queue: Option<Capacity>,
            /// What the queue does beside dropping at the tail; nothing if nothing is said.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub discipline: Option<Discipline>,
            /// What the link does to packets; nothing if nothing is said.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub channel: Option<Channel>,
            /// A file in mahimahi's format with the times at which the link delivers, instead of a `rate`: whole milliseconds, one line for each
            /// packet of full length; it begins again at its end. Relative to the scenario file, with `{run}` as in patterns.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub trace: Option<String>,
            /// Octets that each line of a `trace` delivers; `"1504 B"` if nothing is said. Packets share them, and long ones take several.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub trace_octets: Option<Size>,
            /// An extra delay that differs from packet to packet; none if nothing is said.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub jitter: Option<Jitter>,
            /// Whether packets may overtake each other by `jitter` or by a change of the delay. If nothing is said they may not: one that
            /// would arrive too soon arrives together with the one before it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub overtaking: Option<bool>,
            /// A share of the packets leaves the order; none if nothing is said.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub reorder: Option<Reorder>,
            /// Probability of a packet that arrives to arrive twice; 0 if nothing is said.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub duplicate: Option<Probability>,
            /// When the link is down; never if nothing is said.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub outage: Option<Vec<Outage>>,
            /// What becomes different while time passes; the times ascend.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub change: Option<Vec<Change>>,
            /// What is different in the forward direction: from the first to the second end, the direction of the data in `[path]`
            /// and `[dumbbell]`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub forward: Option<Direction>,
            /// What is different in the reverse direction.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub reverse: Option<Direction>,
        }

        impl $name {
            /// What shapes the link, without the rest.
            pub fn shape(&self) -> Shape {
                Shape {
                    rate: self.rate,
                    delay: self.delay,
                    queue: self.queue,
                    discipline: self.discipline.clone(),
                    channel: self.channel.clone(),
                    trace: self.trace.clone(),
                    trace_octets: self.trace_octets,
                    jitter: self.jitter.clone(),
                    overtaking: self.overtaking,
                    reorder: self.reorder.clone(),
                    duplicate: self.duplicate,
                    outage: self.outage.clone(),
                    change: self.change.clone(),
                    forward: self.forward.clone(),
                    reverse: self.reverse.clone(),
                }
            }
        }
    };
}

shaped! {
    /// A link between two nodes. What stands here holds for both directions; `forward` and `reverse` say what differs.
    Link {
        /// Its name; the names of its ends with a hyphen between them if nothing is said.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        name: String,
        /// The nodes that it joins. Forward is from the first to the second.
        between: [String; 2],
    }
}

shaped! {
    /// What shapes a link. What stands here holds for both directions; `forward` and `reverse` say what differs.
    Shape {}
}

shaped! {
    /// Host `server` sends to host `client` over the router `emulator`. The link `path`, from `emulator` to `client`, is the shaped
    /// one; the link `access` joins `server` and `emulator`.
    Path {
        /// The link between `server` and `emulator`.
        #[serde(default)]
        access: Access,
    }
}

/// A fast link that joins a host to its router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// Bit rate over all octets of an IP packet.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Span,
    /// How much waits in front of the link.
    pub queue: Capacity,
}

impl Default for Access {
    fn default() -> Self {
        Self { rate: Rate(100_000_000), delay: Span(0), queue: Capacity::Packets(1000) }
    }
}

impl From<&Access> for Shape {
    fn from(access: &Access) -> Self {
        Self { rate: Some(access.rate), delay: Some(access.delay), queue: Some(access.queue), ..Self::default() }
    }
}

/// Hosts `sender0`, `sender1`, … behind the router `left`, hosts `receiver0`, `receiver1`, … behind the router `right`, and the link
/// `bottleneck` from `left` to `right`. Flows that do not say `from` and `to` go from `sender0` to `receiver0`, from `sender1` to
/// `receiver1`, and so on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// Number of senders and of receivers; one for each flow if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u32>,
    /// The shared link.
    pub bottleneck: Shape,
    /// The links `sender0`, `sender1`, …; forward is towards the bottleneck. 1 Gbps, 0 ms and 1000 pkt where nothing is said.
    #[serde(default)]
    pub senders: Shape,
    /// The links `receiver0`, `receiver1`, …; forward is away from the bottleneck. 1 Gbps, 0 ms and 1000 pkt where nothing is said.
    #[serde(default)]
    pub receivers: Shape,
}

/// What is different in one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Direction {
    /// Bit rate in this direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation delay in this direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Queue in front of this direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Capacity>,
    /// What the queue in this direction does beside dropping at the tail, instead of what it does in both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discipline: Option<Discipline>,
    /// What the link does to packets in this direction, instead of what it does in both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// A file with the times at which this direction delivers, instead of a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Octets that each line of the trace delivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_octets: Option<Size>,
    /// An extra delay in this direction that differs from packet to packet, instead of that in both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Whether packets may overtake each other in this direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overtaking: Option<bool>,
    /// A share of the packets in this direction leaves the order, instead of that in both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// Probability of a packet that arrives in this direction to arrive twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Probability>,
    /// When this direction is down, instead of when both are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage: Option<Vec<Outage>>,
    /// What becomes different in this direction while time passes, instead of what does in both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Vec<Change>>,
}
