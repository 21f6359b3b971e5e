//! What is sent.

use super::application::{Cbr, Datagrams, Playback, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use whyloss_sim::Web;
use whyloss_transport::datagram;
use whyloss_transport::quantity::Size;
use whyloss_transport::scheme::{Part, Selection, Value};
use whyloss_transport::tcp::Overrides as Tcp;
use whyloss_transport::Duration;

/// One flow, or several of a kind: TCP with a scheme or with single parts, or datagrams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Flow {
    /// What tables call it; `flow0`, `flow1`, … by position if nothing is said. With `count` above 1, its flows are `name.0`, `name.1`, …
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The host that sends; `server` in `[path]`, the next sender in `[dumbbell]` if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The host that receives; `client` in `[path]`, the next receiver in `[dumbbell]` if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The side that it is on where main traffic is compared with cross traffic: `atgr` in the table `runs`. On neither if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// How many flows of this kind.
    pub count: u32,
    /// When they start.
    pub start: Duration,
    /// Each starts at a random time up to this much later than `start`.
    pub start_spread: Duration,
    /// How much is sent; without end if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The data goes over this many parallel connections and is put together again in order at the receiver; needs `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub striped: Option<u32>,
    /// Length of the pieces in which striped data is dealt out to the connections.
    pub chunk: Size,
    /// An application that gives out data at a rate, in the place of `size`; only TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// Pages for a web user, in the place of `size`; only TCP. `web = {}` is the published model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web: Option<Web>,
    /// A player at the receiver: in how many slots of time enough has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub playback: Option<Playback>,
    /// Datagrams at a bit rate instead of TCP, without end or in bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cbr: Option<Cbr>,
    /// What the application gives to a DCCP connection or a TFRC flow, where the scheme is one: full packets without end if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// Which TCP it is before the scheme: a set of values for `tcp`.
    pub profile: String,
    /// A named scheme: parts that the literature puts together under one name; or `dccp-ccid2`, `dccp-ccid3` or `tfrc` for datagrams instead of TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// How the window moves, instead of the scheme's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Why a segment was lost: the one that rules, instead of the scheme's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differentiator: Option<String>,
    /// Differentiators that judge every loss and change nothing; each gets its columns in the table of losses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shadows: Vec<String>,
    /// What a verdict does to the window, instead of the scheme's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reaction: Option<String>,
    /// What a retransmission timeout does, instead of the scheme's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// What the receiver measures and reports, instead of the scheme's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<String>,
    /// Parameters of the parts: `parameters.veno.beta = 3`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, BTreeMap<String, Value>>,
    /// What is different from the profile and the scheme, at both ends.
    pub tcp: Tcp,
}

/// One of two sides that share a network unequally: that which is looked at, and that which joins it on a part of its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// The traffic that is looked at.
    Main,
    /// The traffic that it is compared with.
    Cross,
}

impl Traffic {
    /// Its name in scenarios and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Cross => "cross",
        }
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            name: String::new(),
            from: None,
            to: None,
            traffic: None,
            count: 1,
            start: Duration::ZERO,
            start_spread: Duration::ZERO,
            size: None,
            striped: None,
            chunk: Size(16_384),
            stream: None,
            web: None,
            playback: None,
            cbr: None,
            datagrams: None,
            profile: "modern".to_owned(),
            scheme: None,
            congestion: None,
            differentiator: None,
            shadows: Vec::new(),
            reaction: None,
            timeout: None,
            receiver: None,
            parameters: BTreeMap::new(),
            tcp: Tcp::default(),
        }
    }
}

impl Flow {
    /// The chosen parts.
    pub fn selection(&self) -> Selection {
        Selection {
            scheme: self.scheme.clone(),
            congestion: self.congestion.clone(),
            differentiator: self.differentiator.clone(),
            shadows: self.shadows.clone(),
            reaction: self.reaction.clone(),
            timeout: self.timeout.clone(),
            receiver: self.receiver.clone(),
            parameters: self.parameters.clone(),
        }
    }

    /// The row of its scheme, if that is a transport of datagrams.
    pub fn datagram_scheme(&self) -> Option<&'static Part<datagram::Config>> {
        datagram::TABLE.iter().find(|row| self.scheme.as_deref() == Some(row.name))
    }

    /// The parameters given for a part.
    pub fn values_of(&self, part: &str) -> BTreeMap<String, Value> {
        self.parameters.get(part).cloned().unwrap_or_default()
    }
}
