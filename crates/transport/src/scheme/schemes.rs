//! The schemes of the literature.

use crate::tcp::{Config, Recovery};

/// Parts put together under one name.
#[derive(Debug)]
pub struct Scheme {
    /// Its name everywhere.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
    /// Congestion control.
    pub congestion: &'static str,
    /// Loss differentiator.
    pub differentiator: &'static str,
    /// Reaction.
    pub reaction: &'static str,
    /// Timeout policy.
    pub timeout: &'static str,
    /// Receiver agent.
    pub receiver: &'static str,
    /// What the scheme changes in the profile's configuration.
    pub adjust: fn(&mut Config),
}

const PLAIN: Scheme = Scheme {
    name: "",
    summary: "",
    reference: "",
    congestion: "newreno",
    differentiator: "none",
    reaction: "reduce",
    timeout: "standard",
    receiver: "plain",
    adjust: |_| {},
};

/// All schemes.
pub static SCHEMES: &[Scheme] = &[
    Scheme {
        name: "tahoe",
        summary: "Fast retransmit followed by slow start.",
        reference: "Jacobson 1988",
        congestion: "reno",
        adjust: |config| {
            config.sack = false;
            config.recovery = Recovery::Tahoe;
        },
        ..PLAIN
    },
    Scheme {
        name: "reno",
        summary: "Fast retransmit and fast recovery that ends with the first new acknowledgement.",
        reference: "RFC 5681",
        congestion: "reno",
        adjust: |config| {
            config.sack = false;
            config.recovery = Recovery::Reno;
        },
        ..PLAIN
    },
    Scheme {
        name: "newreno",
        summary: "Fast recovery that repairs one loss a round trip until everything is acknowledged.",
        reference: "RFC 6582",
        adjust: |config| {
            config.sack = false;
            config.recovery = Recovery::NewReno;
        },
        ..PLAIN
    },
    Scheme {
        name: "sack",
        summary: "NewReno's window with recovery by the SACK scoreboard.",
        reference: "RFC 6675",
        adjust: |config| config.sack = true,
        ..PLAIN
    },
    Scheme {
        name: "cubic",
        summary: "CUBIC's window with the profile's recovery.",
        reference: "RFC 9438",
        congestion: "cubic",
        ..PLAIN
    },
    Scheme {
        name: "checksum-ld",
        summary: "The receiver reports segments that arrive damaged; the sender repairs them without reducing its window.",
        reference: "Garcia & Brunstrom 2004",
        differentiator: "reported",
        reaction: "keep",
        receiver: "checksum",
        ..PLAIN
    },
];
