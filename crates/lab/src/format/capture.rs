//! Packet captures.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use whyloss_transport::quantity::Probability;
use whyloss_transport::Duration;

/// A packet capture: the place where it is taken, or more.
#[derive(Clone, Debug, PartialEq)]
pub enum Capture {
    /// All that passes at a host, or comes to a router.
    At(String),
    /// That, and how it is taken.
    Taken(Taken),
}

/// How a packet capture is taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// The host or router at which it is taken. At a host packets pass when they leave it, before they come to the queue of their link, and when
    /// they arrive, damaged or not. At a router they are seen once, as they come to it.
    pub at: String,
    /// One link of that node, by its name: what comes to the node over it is seen, and what leaves over it, before it comes to its queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// What leaves the host is seen when its transmission begins, behind the queue of its link, as on Linux; what that queue refuses is not seen.
    /// Not at a router, nor over a radio, a link with a trace, or a queue that pushes out what it has taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub behind_queue: bool,
    /// What its file is called, behind the name of the scenario and the number of the run: `at`, and `link` behind it, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Octets that it keeps of each packet; all if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub snaplen: Option<u32>,
    /// The unit of its times, a power of ten: `"1 ns"` if nothing is said, `"1 us"` as most captures have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Duration>,
    /// The share of packets that it misses, each independently of all others; none if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holes: Option<Probability>,
}

impl Capture {
    /// The place and all that is said of it.
    pub fn taken(&self) -> Cow<'_, Taken> {
        match self {
            Self::At(at) => Cow::Owned(Taken { at: at.clone(), ..Taken::default() }),
            Self::Taken(taken) => Cow::Borrowed(taken),
        }
    }
}

impl Taken {
    /// What tells its file from those of other captures.
    pub fn file(&self) -> String {
        match (&self.file, &self.link) {
            (Some(file), _) => file.clone(),
            (None, Some(link)) => format!("{}-{link}", self.at),
            (None, None) => self.at.clone(),
        }
    }

    /// Digits of a second in its times; `None` if its resolution is no power of ten between a nanosecond and a second.
    pub fn digits(&self) -> Option<u8> {
        let unit = self.resolution.map_or(1, Duration::as_nanos);
        (0..=9).find(|digits| 10_u64.pow(9 - u32::from(*digits)) == unit)
    }
}

impl Serialize for Capture {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(at) => serializer.serialize_str(at),
            Self::Taken(taken) => taken.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Capture {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either)
    }
}

struct Either;

impl<'de> Visitor<'de> for Either {
    type Value = Capture;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a host or router, or { at = \"server\", snaplen = 96 }")
    }

    fn visit_str<E: Error>(self, at: &str) -> Result<Capture, E> {
        Ok(Capture::At(at.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Capture, A::Error> {
        Taken::deserialize(MapAccessDeserializer::new(map)).map(Capture::Taken)
    }
}

impl JsonSchema for Capture {
    fn schema_name() -> Cow<'static, str> {
        "Capture".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let taken = generator.subschema_for::<Taken>();
        schemars::json_schema!({
            "description": "A packet capture: the name of the host or router where it is taken, or more.",
            "anyOf": [{ "type": "string" }, taken],
        })
    }
}
