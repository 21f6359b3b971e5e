//! The rows of the two congestion controls, and their parameters.

use super::{Ccid, Combination, Config, Mode};
use crate::datagram::{self, tfrc::Rules};
use crate::kit::{Build, Notes, Part};
use crate::settings;

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

settings! {
    /// What both congestion controls know.
    struct Sensitivity {
        /// What damaged data says: `rfc` the same as an ECN mark (RFC 4340, 11.7.2), `differentiating` nothing (not conformant).
        mode: Mode;
    }
}

settings! {
    /// What both congestion controls know.
    struct Common {
        /// Checksum coverage: 0 all data, 1 none, n the first (n - 1) * 4 octets.
        coverage: u8 = 1, 0..=15;
        /// Send Data Checksum options.
        data_checksum: bool = true;
        /// The receiving application takes damaged data: drop code 7 instead of 3.
        accept_corrupt: bool = false;
        /// Data packets are sent as ECN-capable.
        ecn: bool = false;
    }
}

impl Common {
    fn config(self, ccid: Ccid, Sensitivity { mode }: Sensitivity) -> Config {
        let Self { coverage, data_checksum, accept_corrupt, ecn } = self;
        Config { ccid, mode, coverage, data_checksum, accept_corrupt, ecn, ..Config::default() }
    }
}

/// The row of CCID 2: TCP-like congestion control (RFC 4341).
pub const CCID_2: Part<datagram::Config> = Part {
    name: "dccp-ccid2",
    summary: "DCCP with TCP-like congestion control: a window of packets, Ack Vectors, no retransmissions.",
    reference: "RFC 4340, RFC 4341",
    notes: NOTES,
    ..Part::of::<WindowSettings>()
};

settings! {
    /// What can be set of CCID 2.
    struct WindowSettings {
        sensitivity: Sensitivity;
        /// How the responses to losses and to dropped data go together: the smaller window, or both reductions.
        combination: Combination;
        common: Common;
    }
}

impl Build<datagram::Config> for WindowSettings {
    fn build(self) -> Box<datagram::Config> {
        let config = Config { combination: self.combination, ..self.common.config(Ccid::Two, self.sensitivity) };
        Box::new(config.into())
    }
}

/// The row of CCID 3: TCP-friendly rate control (RFC 4342).
pub const CCID_3: Part<datagram::Config> = Part {
    name: "dccp-ccid3",
    summary: "DCCP with TCP-friendly rate control: a smooth rate from the TCP equation and the loss event rate.",
    reference: "RFC 4340, RFC 4342, RFC 5348",
    notes: NOTES,
    ..Part::of::<RateSettings>()
};

settings! {
    /// What can be set of CCID 3.
    struct RateSettings {
        sensitivity: Sensitivity;
        common: Common;
        rules: Rules;
        /// Losses within one round trip as it was measured are one loss event, though the window counter has run ahead.
        round_trip_events: bool = true;
    }
}

impl Build<datagram::Config> for RateSettings {
    fn build(self) -> Box<datagram::Config> {
        let config = self.common.config(Ccid::Three, self.sensitivity);
        Box::new(Config { rules: self.rules, round_trip_events: self.round_trip_events, ..config }.into())
    }
}
