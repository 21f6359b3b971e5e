//! Its row, and what can be set.

use super::control::Rules;
use crate::datagram;
use crate::kit::{Build, Notes, Part};
use crate::settings;

/// One end of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Data in a full packet, in octets: `s` of the equation.
    pub packet: u32,
    /// How the rate is set.
    pub rules: Rules,
    /// ECN: data is sent as capable, marks are loss events.
    pub ecn: bool,
    /// Datagrams that wait for the rate. What does not fit is refused.
    pub send_queue: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { packet: 1440, rules: Rules::default(), ecn: false, send_queue: 64 }
    }
}

/// The row of TFRC as a transport of its own.
pub const TFRC: Part<datagram::Config> = Part {
    name: "tfrc",
    summary: "TCP-friendly rate control over UDP: a smooth rate from the TCP equation and the loss event rate, no retransmissions.",
    reference: "RFC 5348; Floyd, Handley, Padhye & Widmer 2000",
    notes: Notes {
        idea: "A sender that reacts to loss events instead of losses, and to their mean rate instead of each, needs no sawtooth to be fair to TCP.",
        formula: "X = s / (R (sqrt(2 p / 3) + 12 sqrt(3 p / 8) p (1 + 32 p^2))), at most twice what arrives; p by the last eight loss intervals",
        threshold: "",
        fails: "Losses without congestion count as all others. After a change of the path the rate follows only over several loss intervals.",
        errata: "`version = \"sigcomm2000\"`: slow start from one packet a round trip, the latest receive rate as the only limit, the probability of a timeout \
                 bounded by one, and an idle sender halved as any other. The agents of ns-2 raise their rate in steps within a round trip; here it changes at once.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        rules: Rules;
        /// Data packets are sent as ECN-capable.
        ecn: bool = false;
    }
}

impl Build<datagram::Config> for Settings {
    fn build(self) -> Box<datagram::Config> {
        Box::new(datagram::Config::Tfrc(Config { rules: self.rules, ecn: self.ecn, ..Config::default() }))
    }
}
