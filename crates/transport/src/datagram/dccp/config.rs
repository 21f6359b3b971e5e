//! What can be set of a connection.

use crate::choices;
use crate::datagram::tfrc::Rules;
use crate::time::Duration;

/// The congestion control of a half-connection (RFC 4340, 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ccid {
    /// CCID 2, TCP-like (RFC 4341).
    #[default]
    Two,
    /// TCP-friendly rate control (RFC 4342).
    Three,
}

choices! {
    /// What damaged data says to the congestion control.
    pub enum Mode {
        /// The same as an ECN mark (RFC 4340, 11.7.2).
        Rfc = "rfc",
        /// Nothing: the packet counts as received. Not conformant; for comparison with schemes that differentiate.
        Differentiating = "differentiating",
    }
}

choices! {
    /// How the responses to losses and to dropped data go together (RFC 4340, 11.7.2).
    pub enum Combination {
        /// The smaller of the two windows.
        Minimum = "minimum",
        /// Both reductions.
        Sum = "sum",
    }
}

/// One end of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The congestion control that it wants for both directions.
    pub ccid: Ccid,
    /// What damaged data says.
    pub mode: Mode,
    /// How responses go together.
    pub combination: Combination,
    /// Data in a full packet, in octets: `s` of the rate equation and the unit in which the window is told.
    pub packet: u32,
    /// Checksum coverage of data packets, 0 to 15, if the other side accepts it: 0 all data, 1 none, `n` the first `(n - 1) * 4` octets.
    pub coverage: u8,
    /// Send Data Checksum options if the other side checks them.
    pub data_checksum: bool,
    /// The application takes damaged data.
    pub accept_corrupt: bool,
    /// ECN: data packets are sent as capable, marks are read.
    pub ecn: bool,
    /// Service code of the application (RFC 4340, 8.1.2).
    pub service: u32,
    /// Packets beyond the newest that the other side may be ahead (RFC 4340, 7.5.2).
    pub sequence_window: u64,
    /// The first sequence number, 48 bits.
    pub initial_seq: u64,
    /// Octets of the IP header: 20 or 40.
    pub ip_header: u32,
    /// Datagrams that wait for the congestion control. What does not fit is refused.
    pub send_queue: usize,
    /// The timeout before the first round-trip time sample.
    pub initial_rto: Duration,
    /// Lower bound of the timeout.
    pub min_rto: Duration,
    /// Upper bound of the timeout.
    pub max_rto: Duration,
    /// How long the acknowledgement of a data packet may wait for another one (RFC 4340, 11.3).
    pub delayed_ack: Duration,
    /// How long an unanswered Request, Ack or Close is repeated; `None` for ever.
    pub give_up: Option<Duration>,
    /// CCID 3: how the rate is set.
    pub rules: Rules,
    /// CCID 3: losses within one round trip, as it turns out to have been, are one loss event (RFC 5348, 5.2) even where the window
    /// counter, which follows an average, has run ahead.
    pub round_trip_events: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ccid: Ccid::Two,
            mode: Mode::Rfc,
            combination: Combination::Minimum,
            packet: 1440,
            coverage: 1,
            data_checksum: true,
            accept_corrupt: false,
            ecn: false,
            service: 0,
            sequence_window: 4096,
            initial_seq: 1,
            ip_header: 20,
            send_queue: 64,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(64),
            delayed_ack: Duration::from_millis(200),
            give_up: Some(Duration::from_secs(480)),
            rules: Rules::default(),
            round_trip_events: true,
        }
    }
}
