//! The schemes of the literature.

use super::Value;
use crate::tcp::{ClosedWindow, Config, FastRecovery, ReportResponse};

/// Parts put together under one name.
#[derive(Debug)]
pub struct Scheme {
    /// Its name in scenarios, tables and on the command line.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
    /// Name of its congestion control.
    pub congestion: &'static str,
    /// Name of its loss differentiator.
    pub differentiator: &'static str,
    /// Name of its reaction.
    pub reaction: &'static str,
    /// Name of its timeout policy.
    pub timeout: &'static str,
    /// Name of its receiver agent.
    pub receiver: &'static str,
    /// Values of its parts' parameters, as `(part, parameter, value)`, instead of the parts' defaults. A user's values win.
    pub parameters: &'static [(&'static str, &'static str, Preset)],
    /// What the scheme changes in the profile's configuration.
    pub adjust: fn(&mut Config),
}

/// The value that a scheme gives to a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preset {
    /// For a parameter that is a number.
    Number(f64),
    /// For a parameter that is true or false.
    Flag(bool),
    /// For a parameter that is one of several words.
    Word(&'static str),
}

impl From<Preset> for Value {
    fn from(preset: Preset) -> Self {
        match preset {
            Preset::Number(number) => Self::Number(number),
            Preset::Flag(flag) => Self::Flag(flag),
            Preset::Word(word) => Self::Word(word.to_owned()),
        }
    }
}

impl Scheme {
    /// `NewReno` parts under no name: the rest of a row, as `Scheme { name: …, congestion: "own", ..Scheme::PLAIN }`.
    pub const PLAIN: Self = PLAIN;

    /// The names of its parts.
    pub const fn parts(&self) -> [&'static str; 5] {
        [self.congestion, self.differentiator, self.reaction, self.timeout, self.receiver]
    }
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
    parameters: &[],
    adjust: |_| {},
};

/// What all of Selective-TCP have in common.
const SELECTIVE: Scheme = Scheme { differentiator: "biaz", reaction: "selective", receiver: "selective", ..PLAIN };

/// What is not published takes the reported bandwidth for what it is.
const PHYSICAL: &[(&str, &str, Preset)] = &[("selective", "reading", Preset::Word("bdp"))];

/// The built-in schemes, which scenarios can name.
pub static SCHEMES: &[Scheme] = &[
    Scheme {
        name: "tahoe",
        summary: "Fast retransmit followed by slow start.",
        reference: "Jacobson 1988",
        congestion: "reno",
        adjust: |config| {
            config.sack = false;
            config.recovery = FastRecovery::Tahoe;
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
            config.recovery = FastRecovery::Reno;
        },
        ..PLAIN
    },
    Scheme {
        name: "newreno",
        summary: "Fast recovery that repairs one loss a round trip until everything is acknowledged.",
        reference: "RFC 6582",
        adjust: |config| {
            config.sack = false;
            config.recovery = FastRecovery::NewReno;
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
        name: "gaimd",
        summary: "Reno with a gentler decrease and the increase that keeps it fair to Reno.",
        reference: "Yang & Lam 2000",
        congestion: "gaimd",
        ..PLAIN
    },
    Scheme {
        name: "vegas",
        summary: "Keeps a few segments of its own in the queue; losses are found and repaired as the profile does it.",
        reference: "Brakmo & Peterson 1995",
        congestion: "vegas",
        ..PLAIN
    },
    Scheme {
        name: "auto",
        summary: "One control for any path: a small queue, losses judged by reports and by delay, and CUBIC's rules beside others.",
        reference: "own; after Garcia & Brunstrom 2004 and RFC 9438",
        congestion: "auto",
        differentiator: "reported",
        reaction: "keep",
        timeout: "aware",
        receiver: "checksum",
        parameters: &[
            ("checksum", "hardened", Preset::Flag(true)),
            ("reported", "evidence", Preset::Word("seq-confirmed")),
            ("reported", "nonce", Preset::Flag(true)),
            // A lone segment may be acknowledged 40 ms late, and a timer of the receiver's may tick every 10 ms.
            ("aware", "margin", Preset::Number(0.06)),
        ],
        ..PLAIN
    },
    Scheme {
        name: "bbr",
        summary: "BBR version 1 as in Linux: measures bandwidth and shortest round trip and sends at the one for the time of the other.",
        reference: "Cardwell et al. 2016",
        congestion: "bbr",
        ..PLAIN
    },
    Scheme {
        name: "bbr3",
        summary: "BBR version 3: a window below what lost more than 2 %, and probes that wait for Reno and CUBIC.",
        reference: "draft-ietf-ccwg-bbr",
        congestion: "bbr3",
        ..PLAIN
    },
    Scheme {
        name: "westwood",
        summary: "The window falls to what the path was measured to hold, sampled at every acknowledgement.",
        reference: "Mascolo et al. 2001",
        congestion: "westwood",
        ..PLAIN
    },
    Scheme {
        name: "westwood-plus",
        summary: "The window falls to what the path was measured to hold, sampled once a round trip.",
        reference: "Grieco & Mascolo 2004",
        congestion: "westwood-plus",
        ..PLAIN
    },
    Scheme {
        name: "veno",
        summary: "Vegas' backlog halves the pace of growth, and tells random losses, for which the window falls to 4/5 only.",
        reference: "Fu & Liew 2003",
        congestion: "veno",
        differentiator: "veno",
        reaction: "scale",
        ..PLAIN
    },
    Scheme {
        name: "jtcp",
        summary: "Does not reduce its window for a loss unless the jitter of a round trip shows a queue that grows.",
        reference: "Wu & Chen 2004",
        differentiator: "jtcp",
        reaction: "keep",
        timeout: "regain",
        ..PLAIN
    },
    Scheme {
        name: "cerl",
        summary: "Does not reduce its window for a loss while the queue is well below the most that it ever held.",
        reference: "El-Ocla 2010",
        differentiator: "cerl",
        reaction: "keep",
        ..PLAIN
    },
    Scheme {
        name: "tcpw-br",
        summary: "Westwood that neither falls nor waits for losses without congestion, and repeats in bulk.",
        reference: "Yang, Wang, Gerla & Sanadidi 2005",
        congestion: "westwood",
        differentiator: "west",
        reaction: "bulk-repeat",
        timeout: "fixed-rto",
        parameters: &[
            ("fixed-rto", "first_doubles", Preset::Flag(false)),
            ("fixed-rto", "any_verdict", Preset::Flag(false)),
            ("fixed-rto", "regain", Preset::Flag(true)),
        ],
        ..PLAIN
    },
    Scheme {
        name: "lda-eq",
        summary: "Does not reduce its window for a loss while the queues of the path are at most half full.",
        reference: "Park & Chung 2010, after Park, Chung & Sreekumari 2009",
        differentiator: "lda-eq",
        reaction: "keep",
        ..PLAIN
    },
    Scheme {
        name: "ncpld",
        summary: "Does not reduce its window for a loss below the knee of the throughput-delay curve.",
        reference: "Park & Chung 2010, after Samaraweera 1999",
        differentiator: "ncpld",
        reaction: "keep",
        ..PLAIN
    },
    Scheme {
        name: "relds",
        summary: "Does not reduce its window for a loss while the round-trip time is below a threshold that moves with its mean.",
        reference: "Park & Chung 2010, after Lim & Jang 2008",
        differentiator: "relds",
        reaction: "keep",
        ..PLAIN
    },
    Scheme {
        name: "tcp-nce",
        summary: "Does not reduce its window for a loss while few segments wait at the bottleneck (reconstruction, without its retransmission delay).",
        reference: "after Sreekumari & Chung 2011",
        differentiator: "nce",
        reaction: "keep",
        ..PLAIN
    },
    Scheme {
        name: "tcp-nrt",
        summary: "Reduces its window neither for a loss nor for a timeout while the queues of the path are at most half full (reconstruction).",
        reference: "after Sreekumari & Chung 2013",
        differentiator: "lda-eq",
        reaction: "keep",
        timeout: "nrt",
        ..PLAIN
    },
    Scheme {
        name: "newreno-ff",
        summary: "Does not reduce its window for a loss if a round-trip time of the last window was out of control.",
        reference: "Barman & Matta 2002",
        differentiator: "newreno-ff",
        reaction: "keep",
        ..PLAIN
    },
    Scheme {
        name: "limd-h",
        summary: "Halves, steps back or keeps its window by the history of rates (reconstructed).",
        reference: "after Kim, Lu & Bharghavan 1999",
        differentiator: "limd-h",
        reaction: "limd-h",
        ..PLAIN
    },
    Scheme {
        name: "santa-cruz",
        summary: "Keeps a few segments in the queue, and its window for a loss unless the queue has grown in each of the last two round trips.",
        reference: "Parsa & Garcia-Luna-Aceves 2000",
        congestion: "santa-cruz",
        differentiator: "santa-cruz",
        reaction: "keep",
        ..PLAIN
    },
    Scheme {
        name: "ecn-ld",
        summary: "Does not reduce its window for a loss that no mark announced, once the path has marked.",
        reference: "after RFC 3168 and Ramakrishnan & Floyd 1999",
        differentiator: "ecn",
        reaction: "keep",
        adjust: |config| config.ecn = true,
        ..PLAIN
    },
    Scheme {
        name: "jersey",
        summary: "Routers warn by marking while their queue is long; the window follows the measured rate, and losses without a warning leave it alone.",
        reference: "Xu, Tian & Ansari 2004",
        congestion: "jersey",
        differentiator: "jersey",
        reaction: "keep",
        parameters: &[("jersey", "trust_silence", Preset::Flag(true))],
        adjust: |config| config.ecn = true,
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
    Scheme {
        name: "checksum-ld-hardened",
        summary: "As checksum-ld, proof against forged damaged segments and against a receiver that lies to keep the window.",
        reference: "after Garcia & Brunstrom 2004 and Ely et al. 2001",
        differentiator: "reported",
        reaction: "keep",
        receiver: "checksum",
        parameters: &[
            ("checksum", "hardened", Preset::Flag(true)),
            ("reported", "evidence", Preset::Word("seq-confirmed")),
            ("reported", "nonce", Preset::Flag(true)),
            ("reported", "rate_limit", Preset::Flag(true)),
            ("reported", "p_wl_max", Preset::Number(0.3)),
        ],
        ..PLAIN
    },
    Scheme {
        name: "checksum-lbe",
        summary: "As checksum-ld, but what it keeps of its window for damaged segments only fills idle capacity, and leaves at the first sign of a queue.",
        reference: "own; after Garcia & Brunstrom 2004 and RFC 6817",
        congestion: "lbe",
        differentiator: "reported",
        reaction: "keep",
        receiver: "checksum",
        ..PLAIN
    },
    Scheme {
        name: "hack",
        summary: "Headers have a checksum of their own, so the receiver can name damaged segments; the sender repairs them at once without reducing its window.",
        reference: "Balan et al. 2002",
        differentiator: "hack",
        reaction: "keep",
        receiver: "hack",
        adjust: |config| config.report_response = ReportResponse::Immediate,
        ..PLAIN
    },
    Scheme {
        name: "tcp-real",
        summary: "The receiver measures at which rate waves of segments arrive; losses without a fall of that rate leave the window alone.",
        reference: "Tsaoussidis & Zhang 2002",
        congestion: "tcp-real",
        differentiator: "tcp-real",
        reaction: "keep",
        timeout: "judged",
        receiver: "waves",
        ..PLAIN
    },
    Scheme {
        name: "tcp-real-2004",
        summary: "TCP-Real by the follow-up's classification: losses among waves that arrive fast and evenly leave the window alone (reconstruction).",
        reference: "after Zhang & Tsaoussidis 2004",
        congestion: "tcp-real",
        differentiator: "tcp-real-2004",
        reaction: "keep",
        timeout: "judged",
        receiver: "waves",
        ..PLAIN
    },
    Scheme {
        name: "snack",
        summary: "NewReno whose receiver asks for all holes at once by negative acknowledgements; what is asked for leaves whatever the window is.",
        reference: "CCSDS 714.0-B",
        receiver: "snack",
        adjust: |config| {
            config.sack = false;
            config.recovery = FastRecovery::NewReno;
        },
        ..PLAIN
    },
    Scheme {
        name: "selective",
        summary: "The receiver asks for what was corrupted instead of acknowledging twice, and tells its bandwidth under congestion, which sets the window.",
        reference: "Paul 2006",
        adjust: |config| {
            config.sack = false;
            config.recovery = FastRecovery::NewReno;
        },
        ..SELECTIVE
    },
    Scheme {
        name: "selective-reno",
        summary: "Selective-TCP on Reno's recovery, with the window from the product of bandwidth and delay.",
        reference: "after Paul 2006",
        congestion: "reno",
        parameters: PHYSICAL,
        adjust: |config| {
            config.sack = false;
            config.recovery = FastRecovery::Reno;
        },
        ..SELECTIVE
    },
    Scheme {
        name: "selective-sack",
        summary: "Selective-TCP on recovery by the SACK scoreboard, with the window from the product of bandwidth and delay.",
        reference: "after Paul 2006",
        parameters: PHYSICAL,
        adjust: |config| config.sack = true,
        ..SELECTIVE
    },
    Scheme {
        name: "selective-cubic",
        summary: "Selective-TCP on CUBIC's window with the profile's recovery, and the window from the product of bandwidth and delay.",
        reference: "after Paul 2006",
        congestion: "cubic",
        parameters: PHYSICAL,
        ..SELECTIVE
    },
    Scheme {
        name: "freeze-tcp",
        summary: "The receiver closes its window before its link goes down, and opens it when the link is back; the sender keeps its window meanwhile.",
        reference: "Goff, Moronski, Phatak & Gupta 2000",
        receiver: "freeze",
        adjust: |config| config.closed_window = ClosedWindow::Persist,
        ..PLAIN
    },
    Scheme {
        name: "tcp-probing",
        summary: "Stops after a loss and probes; if two round trips are short it goes on with its window, else it reduces it.",
        reference: "Tsaoussidis & Badr 2000",
        reaction: "probing",
        timeout: "probing",
        ..PLAIN
    },
    Scheme {
        name: "wtcp",
        summary: "The receiver compares how far apart segments leave and arrive, and tells the sender its rate; losses as usual leave it alone, silences are probed.",
        reference: "Sinha et al. 1999",
        congestion: "wtcp",
        timeout: "blackout",
        receiver: "separation",
        adjust: |config| config.sack = true,
        ..PLAIN
    },
    Scheme {
        name: "casablanca",
        summary: "The sender marks one packet in n for preferential dropping, and what is lost without a mark is repaired without reducing the window.",
        reference: "Biaz & Vaidya 2005",
        differentiator: "casablanca",
        reaction: "keep",
        ..PLAIN
    },
    Scheme {
        name: "eln",
        summary: "A base station marks what its wireless link has lost; the sender repairs it without reducing its window.",
        reference: "Balakrishnan & Katz 1998",
        differentiator: "eln",
        reaction: "keep",
        ..PLAIN
    },
    Scheme {
        name: "syndrome",
        summary: "A base station numbers what it sends over its wireless link; the receiver tells by the numbers where a segment was lost.",
        reference: "Chen et al. 2002",
        differentiator: "syndrome",
        reaction: "keep",
        ..PLAIN
    },
    Scheme {
        name: "ack-hop",
        summary: "Base stations acknowledge what comes over the first and what goes over the last wireless hop.",
        reference: "Cobb & Agrawal 1995",
        differentiator: "ack-hop",
        reaction: "keep",
        ..PLAIN
    },
    Scheme {
        name: "ceten-c",
        summary: "Routers tell how likely corruption is; the sender throws a coin with the share of congestion among its losses.",
        reference: "Krishnan et al. 2004; Eddy, Ostermann & Allman 2004",
        differentiator: "ceten",
        reaction: "keep",
        receiver: "survival",
        ..PLAIN
    },
    Scheme {
        name: "ceten-a",
        summary: "Routers tell how likely corruption is; the sender reduces by as much as congestion has a share in its losses.",
        reference: "Krishnan et al. 2004; Eddy, Ostermann & Allman 2004",
        differentiator: "ceten",
        reaction: "graded",
        receiver: "survival",
        ..PLAIN
    },
];
