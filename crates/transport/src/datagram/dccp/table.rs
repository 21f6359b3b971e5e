//! The rows of the two congestion controls, and their parameters.

use super::{Ccid, Combination, Config, Mode};
use crate::kit::{Arguments, Kind, Notes, Parameter, Part};

const MODE: Parameter = Parameter {
    name: "mode",
    summary:
        "What damaged data says: `rfc` the same as an ECN mark (RFC 4340, 11.7.2), `differentiating` nothing (not conformant).",
    kind: Kind::Choice(Mode::NAMES),
};
const COVERAGE: Parameter = Parameter {
    name: "coverage",
    summary: "Checksum coverage: 0 all data, 1 none, n the first (n - 1) * 4 octets.",
    kind: Kind::Number { default: 1.0, min: 0.0, max: 15.0 },
};
const DATA_CHECKSUM: Parameter =
    Parameter { name: "data_checksum", summary: "Send Data Checksum options.", kind: Kind::Flag { default: true } };
const ACCEPT_CORRUPT: Parameter = Parameter {
    name: "accept_corrupt",
    summary: "The receiving application takes damaged data: drop code 7 instead of 3.",
    kind: Kind::Flag { default: false },
};
const ECN: Parameter =
    Parameter { name: "ecn", summary: "Data packets are sent as ECN-capable.", kind: Kind::Flag { default: false } };

const NOTES: Notes = Notes {
    idea: "The header has a checksum of its own, so a packet whose data is damaged still says which one it is; the receiver \
           acknowledges it and reports why its data was dropped.",
    formula: "corruption if Data Dropped names the packet with code 3 or 7; congestion if three later packets are acknowledged",
    threshold: "",
    fails: "Damage to the header leaves no trace, and most links drop damaged frames before DCCP sees them. In `rfc` mode the report \
            changes nothing: the RFC wants damage treated as a mark.",
    errata: "The prose of RFC 4340, 11.7 names packet 95 in two runs of its example; the run lengths decide here. Losses are all \
             taken for congestion; the literature's `differentiating` mode has no standard.",
};

/// What both congestion controls know.
fn common(arguments: &Arguments, ccid: Ccid) -> Config {
    Config {
        ccid,
        mode: Mode::named(arguments.word("mode")),
        coverage: arguments.number("coverage") as u8,
        data_checksum: arguments.flag("data_checksum"),
        accept_corrupt: arguments.flag("accept_corrupt"),
        ecn: arguments.flag("ecn"),
        ..Config::default()
    }
}

/// CCID 2.
pub const CCID_2: Part<Config> = Part {
    name: "dccp-ccid2",
    summary: "DCCP with TCP-like congestion control: a window of packets, Ack Vectors, no retransmissions.",
    reference: "RFC 4340, RFC 4341",
    notes: NOTES,
    parameters: &[
        MODE,
        Parameter {
            name: "combination",
            summary: "How the responses to losses and to dropped data go together: the smaller window, or both reductions.",
            kind: Kind::Choice(Combination::NAMES),
        },
        COVERAGE,
        DATA_CHECKSUM,
        ACCEPT_CORRUPT,
        ECN,
    ],
    build: |arguments| {
        let combination = Combination::named(arguments.word("combination"));
        Box::new(Config { combination, ..common(arguments, Ccid::Two) })
    },
};

/// CCID 3.
pub const CCID_3: Part<Config> = Part {
    name: "dccp-ccid3",
    summary: "DCCP with TCP-friendly rate control: a smooth rate from the TCP equation and the loss event rate.",
    reference: "RFC 4340, RFC 4342, RFC 5348",
    notes: NOTES,
    parameters: &[
        MODE,
        COVERAGE,
        DATA_CHECKSUM,
        ACCEPT_CORRUPT,
        ECN,
        Parameter {
            name: "rtt_memory",
            summary: "Share of the old average in the round-trip time: q of RFC 5348, 4.3.",
            kind: Kind::Number { default: 0.9, min: 0.0, max: 0.99 },
        },
        Parameter {
            name: "history_discounting",
            summary: "Old loss intervals count less in a long one without losses (RFC 5348, 5.5).",
            kind: Kind::Flag { default: true },
        },
        Parameter {
            name: "oscillation_prevention",
            summary: "The rate follows the square root of the latest round-trip time (RFC 5348, 4.5).",
            kind: Kind::Flag { default: false },
        },
        Parameter {
            name: "round_trip_events",
            summary:
                "Losses within one round trip as it was measured are one loss event, though the window counter has run ahead.",
            kind: Kind::Flag { default: true },
        },
    ],
    build: |arguments| {
        Box::new(Config {
            rtt_memory: arguments.number("rtt_memory"),
            history_discounting: arguments.flag("history_discounting"),
            oscillation_prevention: arguments.flag("oscillation_prevention"),
            round_trip_events: arguments.flag("round_trip_events"),
            ..common(arguments, Ccid::Three)
        })
    },
};
