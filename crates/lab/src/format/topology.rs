//! Hosts, routers, links, and the shorthands for networks that everyone needs.

use super::channel::{Channel, Input};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use whyloss_sim::{with_link_fields, QueueLimit};
use whyloss_transport::quantity::Length;
use whyloss_transport::{BitRate, Duration};

/// What is different in one direction of a link.
pub type Direction = whyloss_sim::DirectionSpec<Channel, String>;

/// A host's move to another of its links, by its name.
pub type Move = whyloss_sim::Move<String>;

/// A host, or several of a kind: flows start and end here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// What links, flows and tables call it.
    pub name: String,
    /// How many there are of the kind; 1 if nothing is said. With more than one they are `name.0`, `name.1`, …; a `[[link]]` that names the kind joins
    /// each of them, and each flow that does takes the next of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Where it stands, if it has a radio: two coordinates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<[Length; 2]>,
    /// What happens to packets that have arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
    /// When it moves from one of its links to another, as a mobile host from base station to base station, in ascending order. It is attached to
    /// the first `[[link]]` that names it until its first move, and to one at a time: the others are down.
    #[serde(default, rename = "move", skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Move>,
}

/// A router: it forwards packets on the way with the fewest links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// What links, middleboxes and tables call it.
    pub name: String,
    /// Where it stands, if it has a radio: two coordinates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<[Length; 2]>,
}

/// Defines a struct with the given fields and, after them, everything that shapes a link.
macro_rules! shaped {
    (($(#[$doc:meta])* $name:ident { $($(#[$own_doc:meta])* $own:ident: $own_type:ty,)* })
        $($(#[doc = $field_doc:literal])* [$($unsaid:literal)?] $field:ident: $given:ty => $type:ty = $default:expr,)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$own_doc])* pub $own: $own_type,)*
            $(
                $(#[doc = $field_doc])*
                $(#[doc = $unsaid])?
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$given>,
            )*
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
                let (forward, reverse) = (self.forward.clone(), self.reverse.clone());
                Shape { $($field: self.$field.clone(),)* forward, reverse }
            }

            /// What holds for both directions.
            pub fn both(&self) -> Direction {
                Direction { $($field: self.$field.clone(),)* }
            }
        }
    };
}

with_link_fields! {
    shaped!(
        /// A link between two nodes. What stands here holds for both directions; `forward` and `reverse` say what differs.
        Link {
            /// Its name; the names of its ends with a hyphen between them if nothing is said.
            #[serde(default, skip_serializing_if = "String::is_empty")]
            name: String,
            /// The nodes that it joins. Forward is from the first to the second. Hosts that are several of a kind have a link each, `name.0`,
            /// `name.1`, …; two kinds of the same number are joined in pairs.
            between: [String; 2],
            /// Where there are several links: the `delay` of the last. From that of the first on they lie in equal distances.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            delay_to: Option<Duration>,
        }
    ) Channel, String
}

with_link_fields! {
    shaped!(
        /// What shapes a link. What stands here holds for both directions; `forward` and `reverse` say what differs.
        Shape {}
    ) Channel, String
}

with_link_fields! {
    shaped!(
        /// Links that are all alike, apart from their delays.
        Links {
            /// The `delay` of the last. From that of the first on they lie in equal distances; all are the same if nothing is said.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            delay_to: Option<Duration>,
        }
    ) Channel, String
}

impl Shape {
    /// The shape of link `number` of `count`, whose delays lie in equal distances from this one's to `last`.
    pub fn nth(&self, number: usize, count: usize, last: Option<Duration>) -> Self {
        let Some(last) = last.filter(|_| count > 1) else { return self.clone() };
        let (first, last) = (i128::from(self.delay.unwrap_or_default().as_nanos()), i128::from(last.as_nanos()));
        let delay = first + (last - first) * number as i128 / (count as i128 - 1);
        Self { delay: Some(Duration::from_nanos(delay as u64)), ..self.clone() }
    }
}

with_link_fields! {
    shaped!(
        /// Host `server` sends to host `client` over the router `emulator`. The link `path`, from `emulator` to `client`, is the shaped
        /// one; the link `access` joins `server` and `emulator`.
        Path {
            /// The link between `server` and `emulator`.
            #[serde(default)]
            access: Access,
        }
    ) Channel, String
}

/// A fast link that joins a host to its router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// Bit rate over all octets of an IP packet.
    pub rate: BitRate,
    /// One-way propagation delay.
    pub delay: Duration,
    /// How much waits in front of the link.
    pub queue: QueueLimit,
}

impl Default for Access {
    fn default() -> Self {
        Self { rate: BitRate::from_bps(100_000_000), delay: Duration::ZERO, queue: QueueLimit::Packets(1000) }
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
    pub senders: Links,
    /// The links `receiver0`, `receiver1`, …; forward is away from the bottleneck. 1 Gbps, 0 ms and 1000 pkt where nothing is said.
    #[serde(default)]
    pub receivers: Links,
}
