//! Radio stations in a row.

use super::channel::Input;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use whyloss_transport::quantity::Length;

/// Stations in a row, `hops` hops of `spacing` each: host `node0`, routers `node1`, `node2`, … and a host at the other end. Flows
/// that do not say `from` and `to` go from `node0` to the other end. `[radio]` says what stations they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// Number of hops.
    pub hops: u32,
    /// Distance from each station to the next; `"200 m"` if nothing is said.
    #[serde(default = "spacing")]
    pub spacing: Length,
    /// What happens to packets that have arrived at `node0` or at the other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
}

const fn spacing() -> Length {
    Length(200_000)
}
