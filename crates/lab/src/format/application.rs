//! What applications give to flows, and what they do with what arrives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use whyloss_sim::{Bursts, Rhythm, Spell};
use whyloss_transport::quantity::{Probability, Size};
use whyloss_transport::{BitRate, Duration};

/// An application that gives data to TCP at a rate. What TCP does not take at once waits for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Bit rate of the data, without headers.
    pub rate: BitRate,
    /// Octets that it gives at a time; a full segment (`tcp.mss`) if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Size>,
    /// It gives nothing at or after this time, and closes the connection; the end of the run if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// Each distance from one write to the next is longer or shorter by up to this share of it; ns-2's `random_` is 0.5. None if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Probability>,
    /// How long each burst lasts, with silence of `idle` behind it; needs `idle`. The write in which it ends is a whole one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Spell>,
    /// The silence between bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Spell>,
}

/// An application at the receiver that plays what arrives. It cuts the time of the run in slots, from the first whole one of its flow on, and reads at
/// the end of each what it plays in one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Playback {
    /// A slot is a success if more than this share of what is played in it was there.
    pub enough: Probability,
    /// Rate at which it plays; that of the `stream`, `datagrams` or `cbr` of the flow if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Length of a slot; 1 s if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Duration>,
    /// How much can wait for the next slot; what is played in a slot if nothing is said. What comes beyond it is of no use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Size>,
}

impl Playback {
    /// What it comes to where the application at the other end gives out data at `rate`; `None` if no rate is known.
    pub fn spec(&self, rate: Option<BitRate>) -> Option<whyloss_sim::Playback> {
        let (rate, slot) = (self.rate.or(rate)?, self.slot.unwrap_or(Duration::from_secs(1)));
        let played = u128::from(rate.as_bps()) * u128::from(slot.as_nanos()) / 8_000_000_000;
        let buffer = self.buffer.map_or(played.min(u64::MAX.into()) as u64, |size| size.0);
        Some(whyloss_sim::Playback { rate, slot, buffer, enough: self.enough.0 })
    }
}

impl Stream {
    /// How evenly it gives.
    pub fn rhythm(&self) -> Rhythm {
        rhythm(self.jitter, self.burst, self.idle)
    }
}

impl Cbr {
    /// How evenly they leave.
    pub fn rhythm(&self) -> Rhythm {
        rhythm(self.jitter, self.burst, self.idle)
    }
}

fn rhythm(jitter: Option<Probability>, burst: Option<Spell>, idle: Option<Spell>) -> Rhythm {
    let bursts = burst.zip(idle).map(|(burst, idle)| Bursts { burst, idle });
    Rhythm { jitter: jitter.unwrap_or_default().0, bursts }
}

/// Datagrams of one size at a bit rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cbr {
    /// Bit rate over all octets of the IP packets.
    pub rate: BitRate,
    /// Length of each IP packet, headers included.
    pub packet: Size,
    /// No packet leaves at or after this time; the end of the run if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// Each distance from one packet to the next is longer or shorter by up to this share of it; ns-2's `random_` is 0.5. None if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Probability>,
    /// How long each burst lasts, with silence of `idle` behind it; needs `idle`. The packet in which it ends is a whole one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Spell>,
    /// The silence between bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Spell>,
}

/// What the application of a DCCP or TFRC flow sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Datagrams {
    /// Data in each packet. The headers take 44 to 60 octets more.
    pub packet: Size,
    /// Bit rate of the data; as much as the congestion control lets go if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// When the connection is closed; not before the end of the run if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
}

impl Default for Datagrams {
    fn default() -> Self {
        Self { packet: Size(1440), rate: None, stop: None }
    }
}
