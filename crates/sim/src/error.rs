//! What can go wrong when a network is built or run.

use whyloss_transport::kit::ArgumentError;
use whyloss_transport::Instant;

/// A value that makes no sense: its field, what was found, what is allowed.
pub type Flaw = (&'static str, String, &'static str);

/// A value of a [`ChannelSpec`](crate::ChannelSpec) or [`RadioSpec`](crate::RadioSpec) that makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field} is {found}; allowed is {allowed}")]
pub struct ChannelError {
    /// Its field, as a scenario writes it below the channel or radio.
    pub field: &'static str,
    /// What was found.
    pub found: String,
    /// What is allowed.
    pub allowed: &'static str,
}

/// Why a network cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// A value that makes no sense.
    #[error("{item}: {field} is {found}; allowed is {allowed}")]
    Unfit {
        /// What it belongs to: "link a>b", "flow web", …
        item: String,
        /// Its field, as a scenario writes it.
        field: &'static str,
        /// What was found.
        found: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Two things have one name.
    #[error("there are two {kind}s called `{name}`")]
    SameName {
        /// What they are: node, flow.
        kind: &'static str,
        /// The name that they share.
        name: String,
    },
    /// A flow's hosts are not connected.
    #[error("flow `{flow}`: no way leads from `{from}` to `{to}`")]
    NoWay {
        /// Name of the flow.
        flow: String,
        /// Name of the host where it starts.
        from: String,
        /// Name of the host where it ends.
        to: String,
    },
    /// A middlebox has a parameter that makes no sense.
    #[error("{item}: {error}")]
    Middlebox {
        /// Which: "middlebox at station".
        item: String,
        /// What makes no sense.
        error: ArgumentError,
    },
    /// A capture cannot be begun.
    #[error("capture {name}: {message}")]
    Capture {
        /// Its name.
        name: String,
        /// What the system said.
        message: String,
    },
}

impl BuildError {
    /// A value of `item` that makes no sense.
    pub(crate) fn unfit(item: &str, (field, found, allowed): Flaw) -> Self {
        Self::Unfit { item: item.to_owned(), field, found, allowed }
    }

    /// A value of a channel or radio of `item` that makes no sense.
    pub(crate) fn of_channel(item: &str, error: ChannelError) -> Self {
        Self::unfit(item, (error.field, error.found, error.allowed))
    }
}

/// What can go wrong in a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nothing ends the run: no transfer and no time limit.
    #[error("the run would never end: set a time limit or give some flow a number of octets")]
    NeverEnds,
    /// No event is left, but flows are not complete.
    #[error("at {at} nothing was left to happen, but not complete were: {}", .flows.join(", "))]
    Stalled {
        /// Time of the last event.
        at: Instant,
        /// Names of the flows that are not complete.
        flows: Vec<String>,
    },
    /// Packets went missing or came from nothing: a mistake in the simulator.
    #[error("{item}: packets are not conserved: {counts}")]
    NotConserved {
        /// Name of the flow or link.
        item: String,
        /// The counts that do not agree.
        counts: String,
    },
    /// A capture could not be written.
    #[error("capture {name}: {source}")]
    Capture {
        /// Its name.
        name: String,
        /// What the system said.
        source: std::io::Error,
    },
}
