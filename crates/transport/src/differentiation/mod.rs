//! Why a segment was lost. One file an algorithm.

mod none;
mod reported;
#[cfg(test)]
mod tests;

pub use none::None;
pub use reported::{Evidence, Reported, Trust};

use crate::path::{self, Ack, Loss, Sent};
use crate::scheme::{Kind, Parameter, Part};
use std::fmt;

/// Judges the cause of each loss.
///
/// It only looks: nothing it is given can change the connection. So any number of differentiators can listen in shadow and judge the
/// same losses as the ruling one.
pub trait LossDifferentiator: fmt::Debug + Send {
    /// Whether the connection has to negotiate loss reports on its SYN.
    fn wants_reports(&self) -> bool {
        false
    }

    /// Whether each data segment has to carry a nonce that reports must echo.
    fn wants_nonce(&self) -> bool {
        false
    }

    /// A segment with data left.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// An acknowledgement arrived.
    fn on_ack(&mut self, _ack: &Ack) {}

    /// The receiver reported on a loss.
    fn on_report(&mut self, _reported: &path::Reported) {}

    /// Why was this lost?
    fn judge(&mut self, loss: &Loss) -> Verdict;
}

/// A differentiator's opinion on one loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The cause.
    pub cause: Cause,
    /// Where the loss stands between certain congestion (0) and certain corruption (1), before any threshold. The scale is the
    /// algorithm's own; only its order counts unless the algorithm says that it is a probability.
    pub score: f64,
}

impl Verdict {
    /// The verdict that follows from comparing `score` with `threshold`: corruption if it is larger.
    pub fn by_threshold(score: f64, threshold: f64) -> Self {
        Self { cause: if score > threshold { Cause::Corruption } else { Cause::Congestion }, score }
    }
}

/// The cause of a loss as a differentiator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A queue overflowed.
    Congestion,
    /// The link damaged it.
    Corruption,
    /// No evidence either way. Senders treat it as congestion.
    Unknown,
}

impl Cause {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Congestion => "congestion",
            Self::Corruption => "corruption",
            Self::Unknown => "unknown",
        }
    }
}

/// All differentiators.
pub static TABLE: &[Part<dyn LossDifferentiator>] = &[
    Part {
        name: "none",
        summary: "Takes every loss for congestion.",
        reference: "RFC 5681",
        parameters: &[],
        build: |_| Box::new(None),
    },
    Part {
        name: "reported",
        summary: "Takes a loss for corruption if the receiver reports that the segment arrived damaged.",
        reference: "Garcia & Brunstrom 2004",
        parameters: &[
            Parameter {
                name: "evidence",
                summary: "The weakest evidence of a reported position that counts.",
                kind: Kind::Choice(Evidence::NAMES),
            },
            Parameter {
                name: "nonce",
                summary: "Believe only reports that echo the nonce of the segment they name.",
                kind: Kind::Flag { default: false },
            },
            Parameter {
                name: "wrong_echoes",
                summary: "Wrong echoes that are forgiven before the receiver is not believed any more.",
                kind: Kind::Number { default: 0.0, min: 0.0, max: 1_000_000.0 },
            },
            Parameter {
                name: "rate_limit",
                summary: "Excuse at most a quarter of a round trip's segments, or 4, in a round trip.",
                kind: Kind::Flag { default: false },
            },
            Parameter {
                name: "p_wl_max",
                summary:
                    "Take every loss for congestion while more than this share of the last 32 segments was reported damaged.",
                kind: Kind::Number { default: 1.0, min: 0.0, max: 1.0 },
            },
            Parameter {
                name: "max_rtx",
                summary: "Damaged retransmissions of one segment that are excused.",
                kind: Kind::Number { default: 5.0, min: 0.0, max: 1_000_000.0 },
            },
        ],
        build: |arguments| {
            Box::new(Reported::new(Trust {
                evidence: Evidence::named(arguments.word("evidence")),
                nonce: arguments.flag("nonce"),
                wrong_echoes: arguments.number("wrong_echoes") as u32,
                rate_limit: arguments.flag("rate_limit"),
                p_wl_max: arguments.number("p_wl_max"),
                max_rtx: arguments.number("max_rtx") as u32,
            }))
        },
    },
];
