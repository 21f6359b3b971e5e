//! What can be chosen about a connection, and the profiles: choices that belong together.

use crate::time::Duration;

/// The configuration of one endpoint. Lengths in octets unless a field says otherwise.
///
/// The profiles are values of it: [`Config::modern`], [`Config::linux`], [`Config::ns2`], [`Config::freebsd45`],
/// [`Config::qualnet`].
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The largest payload to send and to announce, before options (RFC 9293, 3.7.1).
    pub mss: u16,
    /// Initial window in segments.
    pub initial_window: u32,
    /// Initial slow-start threshold in octets; `None` means unbounded.
    pub initial_ssthresh: Option<u64>,
    /// The window never grows beyond this many octets.
    pub max_window: Option<u64>,
    /// Receive buffer; the largest window that is ever announced.
    pub receive_buffer: u64,
    /// Send buffer; at most this much is in flight or waiting.
    pub send_buffer: u64,
    /// Offer window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// The length of one tick of the timestamp clock.
    pub timestamp_tick: Duration,
    /// Offer SACK (RFC 2018); with both sides willing, recovery follows RFC 6675.
    pub sack: bool,
    /// Report duplicates by D-SACK (RFC 2883).
    pub dsack: bool,
    /// Recovery without SACK.
    pub recovery: Recovery,
    /// NewReno restarts the retransmission timer for the first partial acknowledgement only (RFC 6582, 4: impatient) instead of for
    /// each.
    pub impatient: bool,
    /// Duplicate acknowledgements that mean a loss.
    pub dup_threshold: u32,
    /// Send new data on the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Proportional rate reduction (RFC 9937); needs SACK.
    pub prr: bool,
    /// RACK loss detection (RFC 8985); needs SACK.
    pub rack: bool,
    /// Tail loss probes (RFC 8985); needs SACK.
    pub tlp: bool,
    /// Negotiate ECN (RFC 3168).
    pub ecn: bool,
    /// Undo a reduction that D-SACKs or timestamps prove unnecessary (RFC 3708, RFC 4015).
    pub undo: bool,
    /// Mark one data segment in this many for preferential dropping (AF12 instead of AF11, RFC 2597), by its position in the stream;
    /// `None`: mark nothing, send best effort. A differentiator at the receiver that judges by the marks sets it.
    pub drop_precedence: Option<u32>,
    /// Do not let a window grow that the application does not fill (RFC 7661).
    pub window_validation: bool,
    /// Fall back to the initial window after idling for an RTO (RFC 5681, 4.1).
    pub slow_start_after_idle: bool,
    /// Octets that one acknowledgement grows the window by in slow start, in segments: `L` of RFC 3465, 2.2, which is 1 after a timeout
    /// unless there is no limit; `None`: as many as it acknowledges, up to the threshold, as Linux does.
    pub slow_start_limit: Option<u32>,
    /// On congestion, hand the congestion window to the congestion control as what is in flight, as Linux does. RFC 5681 (eq. 4) takes the
    /// flight, which is less where the application has not filled the window.
    pub ssthresh_from_cwnd: bool,
    /// When to acknowledge.
    pub ack_policy: AckPolicy,
    /// With delayed acknowledgements: how many segments are acknowledged at once when data begins to come, at first or again after
    /// an RTO, as Linux does so that the peer's slow start is not held up. Ends when our own data answers the peer's. 0: none.
    pub quick_acks: u32,
    /// Nagle's algorithm (RFC 9293, 3.7.4).
    pub nagle: bool,
    /// Let Nagle's algorithm wait for acknowledgements of segments only that were less than full themselves, as Linux does (Minshall's
    /// modification): the end of a large write leaves at once.
    pub nagle_for_small: bool,
    /// How round-trip times are measured and timers rounded.
    pub granularity: Granularity,
    /// When the host's clock ticks for the first time, for those granularities whose timers end with its ticks; all connections of a host share it.
    /// `None` leaves it to the driver, and is the origin of time if the driver does not choose either.
    pub clock_phase: Option<Duration>,
    /// Retransmission timeout before the first sample.
    pub initial_rto: Duration,
    /// Smallest retransmission timeout.
    pub min_rto: Duration,
    /// Apply the minimum to the variance term only, as Linux does, instead of to the sum (RFC 6298, 2.4).
    pub min_rto_on_variance: bool,
    /// Largest retransmission timeout, backed off or not.
    pub max_rto: Duration,
    /// Largest factor by which the timer backs off.
    pub max_backoff: u32,
    /// Give up after this many timeouts in a row; `None`: never.
    pub max_retransmissions: Option<u32>,
    /// Give up connecting after this many SYNs; `None`: never.
    pub max_syn_retransmissions: Option<u32>,
    /// Probe an idle peer after this long; `None`: never (RFC 9293, 3.8.4).
    pub keep_alive: Option<Duration>,
    /// Give up when data has gone unacknowledged for this long (RFC 9293, 3.9.1; RFC 5482); `None`: the number of retransmissions decides.
    pub user_timeout: Option<Duration>,
    /// Probe a closed window by a segment without data below the window, as Linux does, instead of by its first octet (RFC 9293, 3.8.6.1).
    pub bare_window_probes: bool,
    /// Time in TIME-WAIT (2 MSL).
    pub time_wait: Duration,
    /// Challenge ACKs in any [`Config::challenge_ack_window`] (RFC 5961, 7).
    pub challenge_ack_limit: u32,
    /// See [`Config::challenge_ack_limit`].
    pub challenge_ack_window: Duration,
    /// What a report of the receiver on a damaged segment sets off.
    pub report_response: ReportResponse,
    /// Our first sequence number. The driver chooses it (RFC 6528 on the Internet).
    pub initial_seq: u32,
    /// The key of the nonces of the hardened checksum scheme. The driver chooses it at random.
    pub nonce_key: u64,
    /// Hand everything to the application the moment it is in order, so that the receive window never shrinks.
    pub auto_read: bool,
    /// Length of the IP header in front of the segments: 20 or 40. Reported sizes and the sizes of packets that a path carries depend on it.
    pub ip_header: u8,
    /// Find out by itself what packets the path carries where no router says so (RFC 4821, RFC 8899): smaller segments after timeouts in a
    /// row, now and then a larger one. What routers say is always heeded.
    pub mtu_probing: bool,
}

/// Fast recovery without SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// None: slow start after fast retransmit.
    Tahoe,
    /// Ends with the first new acknowledgement (RFC 5681).
    Reno,
    /// Ends when everything outstanding at its start is acknowledged (RFC 6582).
    NewReno,
}

/// When data is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPolicy {
    /// Every segment at once.
    Immediate,
    /// Every second full segment, or after a delay (RFC 9293, 3.8.6.3); out-of-order segments at once (RFC 5681, 4.2).
    Delayed(Duration),
}

/// Clocks of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// Exact samples from every acknowledgement that Karn's rule allows; timers as computed, with `G` as the floor of the variance
    /// term (RFC 6298, 2.3).
    Fine {
        /// Clock granularity `G`.
        floor: Duration,
    },
    /// ns-2: one sample a window (one an acknowledgement with timestamps) in whole ticks of this length, at least one; integer smoothing to eighths and
    /// quarters of a tick; timers of at least two ticks, which end when they should.
    Ticks(Duration),
    /// 4.4BSD-Lite (Wright & Stevens 1995, 25.10): as [`Granularity::Ticks`], but a sample counts from 1, so that a round trip within one tick is
    /// one and the filters take one less; timers end with a tick of the host's clock ([`Config::clock_phase`]).
    Net3(Duration),
    /// FreeBSD from 2.2 to 4: as [`Granularity::Net3`] with two more bits in the filters, so that the variance can fall below three quarters of a
    /// tick (Brakmo & Peterson 1995), and with a timeout of at least two ticks more than the latest sample.
    FreeBsd(Duration),
}

impl Granularity {
    /// A tick of the host's clock, if timers end with one.
    pub const fn host_tick(self) -> Option<Duration> {
        match self {
            Self::Fine { .. } | Self::Ticks(_) => None,
            Self::Net3(tick) | Self::FreeBsd(tick) => Some(tick),
        }
    }
}

/// What the sender does when a report names an outstanding segment as damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportResponse {
    /// Remember it; repair when duplicate acknowledgements ask for it.
    Lazy,
    /// Take the segment for lost and retransmit it at once.
    Immediate,
}

/// A configuration that no connection can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found}; allowed is {allowed}")]
pub struct ConfigError {
    /// The field of [`Config`].
    pub field: &'static str,
    /// What was found.
    pub found: String,
    /// What is allowed.
    pub allowed: &'static str,
}

impl Config {
    /// The smallest MSS: the 40 octets of a full header's options, and some data.
    pub const MIN_MSS: u16 = 64;

    /// Checks what an [`Endpoint`](super::Endpoint) relies on. A driver calls it on every configuration that comes from outside.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field, found: String, allowed| Err(ConfigError { field, found, allowed });
        let tick = match self.granularity {
            Granularity::Fine { .. } => None,
            Granularity::Ticks(tick) | Granularity::Net3(tick) | Granularity::FreeBsd(tick) => Some(tick),
        };
        if self.mss < Self::MIN_MSS {
            wrong("mss", self.mss.to_string(), "64 to 65535 octets")
        } else if self.initial_window == 0 {
            wrong("initial_window", "0".to_owned(), "1 segment or more")
        } else if self.dup_threshold == 0 {
            wrong("dup_threshold", "0".to_owned(), "1 or more")
        } else if self.max_backoff == 0 {
            wrong("max_backoff", "0".to_owned(), "1 or more")
        } else if !matches!(self.ip_header, 20 | 40) {
            wrong("ip_header", self.ip_header.to_string(), "20 or 40")
        } else if self.min_rto > self.max_rto {
            wrong("min_rto", format!("\"{}\"", self.min_rto), "at most max_rto")
        } else if self.receive_buffer == 0 {
            wrong("receive_buffer", "0".to_owned(), "1 octet or more")
        } else if self.send_buffer == 0 {
            wrong("send_buffer", "0".to_owned(), "1 octet or more")
        } else if tick == Some(Duration::ZERO) {
            wrong("granularity", "ticks of \"0 s\"".to_owned(), "ticks above zero")
        } else {
            Ok(())
        }
    }

    /// A stack of today by the RFCs: SACK, RACK-TLP, PRR, timestamps, initial window 10 (RFC 6928).
    pub fn modern() -> Self {
        Self {
            mss: 1460,
            initial_window: 10,
            initial_ssthresh: None,
            max_window: None,
            receive_buffer: 4 << 20,
            send_buffer: 4 << 20,
            window_scaling: true,
            timestamps: true,
            timestamp_tick: Duration::from_millis(1),
            sack: true,
            dsack: true,
            recovery: Recovery::NewReno,
            impatient: true,
            dup_threshold: 3,
            limited_transmit: true,
            prr: true,
            rack: true,
            tlp: true,
            ecn: false,
            undo: true,
            drop_precedence: None,
            window_validation: true,
            slow_start_after_idle: true,
            slow_start_limit: Some(2),
            ssthresh_from_cwnd: false,
            ack_policy: AckPolicy::Delayed(Duration::from_millis(40)),
            quick_acks: 0,
            nagle: true,
            nagle_for_small: false,
            granularity: Granularity::Fine { floor: Duration::from_millis(1) },
            clock_phase: None,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            min_rto_on_variance: false,
            max_rto: Duration::from_secs(60),
            max_backoff: 64,
            max_retransmissions: Some(15),
            max_syn_retransmissions: Some(6),
            keep_alive: None,
            user_timeout: None,
            bare_window_probes: false,
            time_wait: Duration::from_secs(60),
            challenge_ack_limit: 10,
            challenge_ack_window: Duration::from_secs(5),
            report_response: ReportResponse::Immediate,
            initial_seq: 0,
            nonce_key: 0,
            auto_read: false,
            ip_header: 20,
            mtu_probing: false,
        }
    }

    /// Linux 6.x defaults: as [`Config::modern`] with Linux's timer rules, its growth by every octet acknowledged, thresholds from the window,
    /// quick acknowledgements and bare window probes.
    pub fn linux() -> Self {
        Self {
            receive_buffer: 6 << 20,
            slow_start_limit: None,
            ssthresh_from_cwnd: true,
            quick_acks: 16,
            nagle_for_small: true,
            bare_window_probes: true,
            min_rto_on_variance: true,
            max_rto: Duration::from_secs(120),
            max_backoff: 1 << 16,
            challenge_ack_limit: 1000,
            challenge_ack_window: Duration::from_secs(1),
            ..Self::modern()
        }
    }

    /// ns-2.35's one-way agents: 1000-octet segments, 10 ms ticks, 200 ms minimum RTO, acknowledgement of every segment.
    pub fn ns2() -> Self {
        Self {
            mss: 1000,
            initial_window: 2,
            initial_ssthresh: Some(20_000),
            receive_buffer: 20_000,
            send_buffer: 1 << 30,
            window_scaling: true,
            timestamps: false,
            sack: false,
            dsack: false,
            limited_transmit: true,
            prr: false,
            rack: false,
            tlp: false,
            undo: false,
            window_validation: false,
            slow_start_after_idle: true,
            ack_policy: AckPolicy::Immediate,
            nagle: false,
            granularity: Granularity::Ticks(Duration::from_millis(10)),
            initial_rto: Duration::from_secs(3),
            min_rto: Duration::from_millis(200),
            max_backoff: 64,
            max_rto: Duration::from_secs(60),
            max_retransmissions: None,
            max_syn_retransmissions: None,
            report_response: ReportResponse::Lazy,
            ..Self::modern()
        }
    }

    /// FreeBSD 4.5 as in Garcia & Brunstrom 2004: NewReno without SACK, 10 ms ticks, 1 s minimum RTO, delayed
    /// acknowledgements of 100 ms, 64 KiB windows, timestamps. Growth is the congestion control's: `reno` counts acknowledgements as
    /// that system did.
    pub fn freebsd45() -> Self {
        Self {
            mss: 1460,
            initial_window: 2,
            initial_ssthresh: None,
            receive_buffer: 65_535,
            send_buffer: 65_536,
            window_scaling: true,
            timestamps: true,
            timestamp_tick: Duration::from_millis(10),
            sack: false,
            dsack: false,
            impatient: false,
            limited_transmit: false,
            prr: false,
            rack: false,
            tlp: false,
            undo: false,
            window_validation: false,
            ack_policy: AckPolicy::Delayed(Duration::from_millis(100)),
            granularity: Granularity::FreeBsd(Duration::from_millis(10)),
            initial_rto: Duration::from_secs(3),
            min_rto: Duration::from_secs(1),
            max_rto: Duration::from_secs(64),
            max_backoff: 64,
            max_retransmissions: Some(12),
            report_response: ReportResponse::Lazy,
            ..Self::modern()
        }
    }

    /// QualNet 4.5's Reno as in Park & Chung: 500 ms ticks, 1 s minimum RTO, 16 KiB windows, initial window 1. Its forerunner GloMoSim names
    /// FreeBSD 2.2.2 as the origin of its TCP.
    pub fn qualnet() -> Self {
        Self {
            mss: 1024,
            initial_window: 1,
            receive_buffer: 16_384,
            send_buffer: 16_384,
            window_scaling: false,
            timestamps: false,
            recovery: Recovery::Reno,
            ack_policy: AckPolicy::Delayed(Duration::from_millis(200)),
            granularity: Granularity::FreeBsd(Duration::from_millis(500)),
            ..Self::freebsd45()
        }
    }

    /// The profile called `name`, if there is one.
    pub fn profile(name: &str) -> Option<Self> {
        PROFILES.iter().find(|(n, _)| *n == name).map(|(_, make)| make())
    }
}

/// Builds a configuration.
pub type Profile = fn() -> Config;

/// All profiles by name.
pub static PROFILES: &[(&str, Profile)] = &[
    ("modern", Config::modern),
    ("linux", Config::linux),
    ("ns2", Config::ns2),
    ("freebsd45", Config::freebsd45),
    ("qualnet", Config::qualnet),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_fit_and_misfits_are_named() {
        for (name, profile) in PROFILES {
            assert_eq!(profile().check(), Ok(()), "{name}");
        }
        let flaw = |change: fn(&mut Config)| {
            let mut config = Config::modern();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert_eq!(flaw(|config| config.mss = 63), "mss is 63; allowed is 64 to 65535 octets");
        assert_eq!(flaw(|config| config.initial_window = 0), "initial_window is 0; allowed is 1 segment or more");
        assert_eq!(flaw(|config| config.dup_threshold = 0), "dup_threshold is 0; allowed is 1 or more");
        assert_eq!(flaw(|config| config.max_backoff = 0), "max_backoff is 0; allowed is 1 or more");
        assert_eq!(flaw(|config| config.ip_header = 24), "ip_header is 24; allowed is 20 or 40");
        assert_eq!(flaw(|config| config.min_rto = config.max_rto * 2), "min_rto is \"120 s\"; allowed is at most max_rto");
        assert_eq!(flaw(|config| config.receive_buffer = 0), "receive_buffer is 0; allowed is 1 octet or more");
        assert_eq!(flaw(|config| config.send_buffer = 0), "send_buffer is 0; allowed is 1 octet or more");
        assert!(flaw(|config| config.granularity = Granularity::Ticks(Duration::ZERO)).contains("ticks above zero"));
    }
}
