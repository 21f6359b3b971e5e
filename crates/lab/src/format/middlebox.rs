//! Agents at routers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An agent at a router, for the TCP segments that cross one of the router's links. Damaged packets pass it untouched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Middlebox {
    /// The router. `[path]` has `emulator`, `[dumbbell]` has `left` and `right`.
    pub at: String,
    /// The name of the link: of a base station the wireless one. It must end at the router.
    pub link: String,
    /// What it does.
    pub kind: MiddleboxKind,
    /// `ceten` only: packets over which the link's rate of corruption is measured; 1000 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
}

/// What a middlebox does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MiddleboxKind {
    /// Marks acknowledgements that ask for data which the link has lost; the differentiator `eln` hears it (Balakrishnan & Katz 1998).
    Eln,
    /// Numbers the data segments that leave over the link; the differentiator `syndrome` reads the numbers (Chen et al. 2002).
    Syndrome,
    /// Acknowledges to the sender what came over the link and what is about to leave over it; the differentiator `ack-hop` hears it (Cobb &
    /// Agrawal 1995).
    AckHop,
    /// Multiplies the probability to survive the link into data that crosses it; the differentiator `ceten` reads it (Krishnan et al. 2004).
    Ceten,
    /// Takes all experimental TCP options (kind 253) out of what crosses the link, as firewalls do.
    Strip,
}
