//! Queues that do more than drop at the tail.

use crate::quantity::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a queue does beside dropping at the tail: `"biased"`, `{ warn = { … } }`, `{ red = { … } }` or `{ codel = { … } }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// On overflow drops the newest waiting packet of high drop precedence in favour of one that has not (Biaz & Vaidya 2005).
    Biased,
    /// Marks every ECN-capable packet while the average queue is above a threshold: the congestion warning of TCP-Jersey.
    Warn(Warn),
    /// Random early detection (Floyd & Jacobson 1993).
    Red(Red),
    /// Controlled delay: drops at the head what has waited too long for too long (RFC 8289).
    #[serde(rename = "codel")]
    CoDel(CoDel),
}

/// The congestion warning of TCP-Jersey (Xu, Tian & Ansari 2004).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Warn {
    /// Average queue in packets above which all packets are marked.
    pub threshold: f64,
    /// Weight of a new sample in the average; 1 for the queue as it is, 0.002 if nothing is said.
    #[serde(default = "default_weight")]
    pub weight: f64,
}

/// The parameters of RED; where nothing is said those of ns-2 from 2001 to 2002.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Red {
    /// Average queue in packets from which packets are dropped or marked.
    pub min: f64,
    /// Average queue in packets at which the probability is `max_p`.
    pub max: f64,
    /// Weight of a new sample in the average.
    pub weight: f64,
    /// Probability at `max`.
    pub max_p: f64,
    /// From `max` to twice `max` the probability rises to 1; otherwise it is 1 from `max` on.
    pub gentle: bool,
    /// Marks ECN-capable packets instead of dropping them, except where the probability is 1.
    pub mark: bool,
}

/// The parameters of CoDel; where nothing is said those of RFC 8289.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CoDel {
    /// Waiting time that is accepted for longer than an interval.
    pub target: Span,
    /// About the longest round-trip time of the connections.
    pub interval: Span,
    /// Marks ECN-capable packets instead of dropping them.
    pub mark: bool,
}

const fn default_weight() -> f64 {
    0.002
}

impl Default for Red {
    fn default() -> Self {
        let whyloss_sim::Red { min, max, weight, max_p, gentle, mark } = whyloss_sim::Red::default();
        Self { min, max, weight, max_p, gentle, mark }
    }
}

impl Default for CoDel {
    fn default() -> Self {
        let whyloss_sim::CoDel { target, interval, mark } = whyloss_sim::CoDel::default();
        Self { target: Span(target.as_nanos()), interval: Span(interval.as_nanos()), mark }
    }
}

impl Discipline {
    /// Its name in a scenario.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Biased => "biased",
            Self::Warn(_) => "warn",
            Self::Red(_) => "red",
            Self::CoDel(_) => "codel",
        }
    }

    /// The same in the simulator's terms.
    pub fn spec(&self) -> whyloss_sim::Discipline {
        match *self {
            Self::CoDel(CoDel { target, interval, mark }) => {
                whyloss_sim::Discipline::CoDel(whyloss_sim::CoDel { target: target.into(), interval: interval.into(), mark })
            }
            Self::Biased => whyloss_sim::Discipline::Biased,
            Self::Warn(Warn { threshold, weight }) => whyloss_sim::Discipline::Warn { threshold, weight },
            Self::Red(Red { min, max, weight, max_p, gentle, mark }) => {
                whyloss_sim::Discipline::Red(whyloss_sim::Red { min, max, weight, max_p, gentle, mark })
            }
        }
    }
}
