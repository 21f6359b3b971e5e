//! What can be chosen about a connection, and the profiles: choices that belong together.

#[cfg(feature = "serde")]
use crate::quantity::{OrNone, Size, Span};
use crate::time::Duration;

/// Defines [`Config`], and beside it what a file can say of it. Of a field that stands in files as something else than it is, `as` tells what.
/// Everything else that goes over all fields takes them from here.
macro_rules! config {
    ($dollar:tt; $($(#[doc = $doc:literal])* $field:ident: $type:ty $(as $given:ty)?,)*) => {
        /// The configuration of one endpoint. Lengths in octets unless a field says otherwise; `None` is none, never, or unbounded.
        ///
        /// The profiles are values of it: [`Config::modern`], [`Config::linux`], [`Config::ns2`], [`Config::ns2_2001`],
        /// [`Config::freebsd45`], [`Config::qualnet`].
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        /// What is different from the profile. Every field has the name and meaning that it has in the engine; what is not given stays as
        /// the profile and the scheme have it.
        #[cfg(feature = "serde")]
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Tcp"))]
        #[serde(deny_unknown_fields, default)]
        pub struct Overrides {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<given!($type $(, $given)?)>,
            )*
        }

        #[cfg(feature = "serde")]
        impl Overrides {
            /// `base` with what is different.
            pub fn apply(&self, base: &Config) -> Config {
                Config { $($field: self.$field.clone().map_or_else(|| base.$field.clone(), Into::into),)* }
            }
        }

        /// Calls a macro with what is given to it and, behind a semicolon, the names of all fields of [`Config`](crate::Config).
        #[macro_export]
        macro_rules! with_config_fields {
            ($dollar callback:ident!($dollar($dollar given:tt)*)) => { $dollar callback!($dollar($dollar given)*; $($field),*) };
        }
    };
}

/// How a field stands in files.
#[cfg(feature = "serde")]
macro_rules! given {
    ($type:ty) => {
        $type
    };
    ($type:ty, $given:ty) => {
        $given
    };
}

config! { $;
    /// Largest payload to send and to announce, in octets.
    // The largest payload to send and to announce, before options (RFC 9293, 3.7.1).
    mss: u16,
    /// Initial window in segments.
    initial_window: u32,
    /// SYNs that may be lost without a smaller initial window.
    // The initial window is one segment after more timeouts of the SYN or SYN-ACK than this: 0 by RFC 5681, 3.1. 1 in Linux, where the first timeout is
    // after a second; of SYN-ACKs it counts those, too, that a SYN that came again asked for.
    forgiven_syn_losses: u32,
    /// Initial slow-start threshold; "none" is unbounded.
    initial_ssthresh: Option<u64> as OrNone<Size>,
    /// The window never grows beyond this; "none" is unbounded.
    // The window never grows beyond this many octets.
    max_window: Option<u64> as OrNone<Size>,
    /// Receive buffer: the largest window that is ever announced.
    receive_buffer: u64 as Size,
    /// Send buffer: at most this much is in flight or waiting.
    send_buffer: u64 as Size,
    /// Offer window scaling (RFC 7323).
    window_scaling: bool,
    /// Offer timestamps (RFC 7323).
    timestamps: bool,
    /// Length of one tick of the timestamp clock.
    timestamp_tick: Duration,
    /// Offer SACK (RFC 2018).
    // Offer SACK (RFC 2018); with both sides willing, recovery follows RFC 6675.
    sack: bool,
    /// Report duplicates by D-SACK (RFC 2883).
    dsack: bool,
    /// Recovery without SACK.
    recovery: FastRecovery,
    /// In NewReno recovery, restart the retransmission timer at the first partial acknowledgement only (RFC 6582, 4).
    // NewReno restarts the retransmission timer for the first partial acknowledgement only (RFC 6582, 4: impatient) instead of for
    // each.
    impatient: bool,
    /// In NewReno recovery, a partial acknowledgement takes back all that duplicates have inflated the window by, as in ns-2 until 2003.
    // A partial acknowledgement takes all inflation back, as ns-2 did until 2003, instead of what it acknowledges (RFC 6582, 3.2 step 4): until the
    // hole behind it is repaired, little new data leaves.
    deflate_at_once: bool,
    /// After a fast recovery the whole window is let go at once (RFC 6582, 3.2 step 3, option 2), as in ns-2, instead of little by little.
    window_at_once: bool,
    /// Duplicate acknowledgements that mean a loss.
    dup_threshold: u32,
    /// With SACK, a recovery begins when so many duplicates have come, as in ns-2, and not when what they report amounts to as many.
    // Recovery begins when so many duplicates have come, as in ns-2's `Sack1`, and not when so much is reported (RFC 6675, 5 step 3): a duplicate that is
    // lost has to be made up for by another.
    count_duplicates: bool,
    /// With SACK, count in recovery what is in the network by what leaves and what comes, as in ns-2, instead of by the scoreboard.
    // ns-2's `Sack1`: less one segment for an acknowledgement, and one more if it is partial; one more for each that leaves. A lost
    // segment counts until its repair is acknowledged, and so does one whose acknowledgement is lost. RFC 6675's `SetPipe` knows better. Holes are
    // repaired as soon as anything above them is reported, not only when they count as lost.
    count_pipe: bool,
    /// A timeout forgets what was reported as received (RFC 2018, 8), as in ns-2: all that was outstanding is sent again.
    forget_sacks: bool,
    /// Send new data on the first two duplicate acknowledgements (RFC 3042).
    limited_transmit: bool,
    /// Proportional rate reduction (RFC 9937); needs SACK.
    prr: bool,
    /// RACK loss detection (RFC 8985); needs SACK.
    rack: bool,
    /// RACK's round-trip time is that of the last segment in sequence that an acknowledgement delivers, as in Linux.
    // RACK's round-trip time is that of the last segment in sequence that an acknowledgement delivers, what it reports selectively before what
    // it acknowledges cumulatively, as in Linux, and not that of the one that left last (RFC 8985, 6.2 step 2).
    rack_rtt_by_sequence: bool,
    /// Tail loss probes (RFC 8985); needs SACK.
    tlp: bool,
    /// Negotiate ECN (RFC 3168).
    ecn: bool,
    /// Undo a reduction that proves unnecessary (RFC 3708, RFC 4015).
    // Undo a reduction that D-SACKs or timestamps prove unnecessary (RFC 3708, RFC 4015).
    undo: bool,
    /// Mark one data segment in this many for preferential dropping (AF12 instead of AF11, RFC 2597); "none" marks nothing. The
    /// differentiator `casablanca` sets it.
    // Mark one data segment in this many for preferential dropping (AF12 instead of AF11, RFC 2597), by its position in the stream;
    // `None`: mark nothing, send best effort. A differentiator at the receiver that judges by the marks sets it.
    drop_precedence: Option<u32> as OrNone<u32>,
    /// Do not let a window grow that the application does not fill (RFC 7661).
    window_validation: bool,
    /// Fall back to the initial window after idling (RFC 5681, 4.1).
    // Fall back to the initial window after idling for an RTO (RFC 5681, 4.1).
    slow_start_after_idle: bool,
    /// Segments that one acknowledgement grows the window by in slow start (L of RFC 3465, 2.2); "none" is as many as it acknowledges.
    // Octets that one acknowledgement grows the window by in slow start, in segments: `L` of RFC 3465, 2.2, which is 1 after a timeout
    // unless there is no limit; `None`: as many as it acknowledges, up to the threshold, as Linux does.
    slow_start_limit: Option<u32> as OrNone<u32>,
    /// Take the congestion window, not the flight, for what congestion reduces, as Linux does.
    // On congestion, hand the congestion window to the congestion control as what is in flight, as Linux does. RFC 5681 (eq. 4) takes the
    // flight, which is less where the application has not filled the window.
    ssthresh_from_cwnd: bool,
    /// Segments of the window that a fast recovery leaves at least: 2 (RFC 5681, eq. 4), or 1 as in ns-2, where only the threshold is kept above that.
    least_cwnd: u32,
    /// The slow-start threshold is a whole number of segments, rounded down, as in ns-2 and 4.4BSD.
    whole_thresholds: bool,
    /// When to acknowledge: "immediate" or { delayed = "100 ms" }.
    ack_policy: AckPolicy,
    /// Segments acknowledged at once when data begins to come, although acknowledgements are delayed.
    // With delayed acknowledgements: how many segments are acknowledged at once when data begins to come, at first or again after
    // an RTO, as Linux does so that the peer's slow start is not held up. Ends when our own data answers the peer's. 0: none.
    quick_acks: u32,
    /// What a paced sender lets go at once, as the time that it takes at the rate; "0 s": each by itself, "1 ms": as Linux with segmentation offload.
    // What a paced sender lets go at once, as the time that it takes at the pacing rate: two segments at least and 44 at most. Zero: each by itself.
    // Linux hands over a millisecond (`sk_pacing_shift`). A sender that tells its receiver of its separations sends each by itself.
    pacing_burst: Duration,
    /// How many data segments a paced sender lets go at first before it paces; 0: none, 10: as Linux.
    // How many data segments of a connection a paced sender lets go before it paces, as the window allows; 0: it paces from the first. Linux lets go
    // ten (`tcp_update_skb_after_send`), so that a short answer need not wait. Not of a sender that tells its receiver of its separations.
    unpaced_segments: u32,
    /// Nagle's algorithm (RFC 9293, 3.7.4).
    nagle: bool,
    /// Nagle's algorithm waits for small segments only, as in Linux (Minshall's modification).
    // Let Nagle's algorithm wait for acknowledgements of segments only that were less than full themselves, as Linux does (Minshall's
    // modification): the end of a large write leaves at once.
    nagle_for_small: bool,
    /// How round-trip times are measured and timers rounded: { fine = "1 ms" }, { ticks = "10 ms" } as in ns-2, { net3 = "500 ms" } as in
    /// 4.4BSD-Lite, or { freebsd = "10 ms" } as in FreeBSD 2.2 to 4.
    granularity: Granularity,
    /// When the host's clock ticks for the first time, for `net3` and `freebsd`, whose timers end with its ticks; "none", the default, draws it
    /// for each host and run.
    // When the host's clock ticks for the first time, for those granularities whose timers end with its ticks; all connections of a host share it.
    // `None` leaves it to the driver, and is the origin of time if the driver does not choose either.
    clock_phase: Option<Duration> as OrNone<Span>,
    /// Retransmission timeout before the first sample.
    initial_rto: Duration,
    /// Smallest retransmission timeout.
    min_rto: Duration,
    /// Apply the minimum to the variance term only, as Linux does.
    // Apply the minimum to the variance term only, as Linux does, instead of to the sum (RFC 6298, 2.4).
    min_rto_on_variance: bool,
    /// Apply the minimum to the timeout as backed off, as ns-2 did until 2002.
    // Apply the minimum after backing off, as ns-2 did until 2002, instead of before (RFC 6298, 2.4 and 5.5): a short timeout has to double more often
    // before it exceeds the minimum.
    min_rto_after_backoff: bool,
    /// Largest retransmission timeout.
    // Largest retransmission timeout, backed off or not.
    max_rto: Duration,
    /// Largest factor by which the timer backs off.
    max_backoff: u32,
    /// Give up after this many timeouts in a row; "none" is never.
    max_retransmissions: Option<u32> as OrNone<u32>,
    /// Give up connecting after this many SYNs; "none" is never.
    max_syn_retransmissions: Option<u32> as OrNone<u32>,
    /// Probe an idle peer after this long; "none" is never.
    keep_alive: Option<Duration> as OrNone<Span>,
    /// Give up when data has gone unacknowledged for this long (RFC 9293, 3.9.1); "none" leaves it to `max_retransmissions`.
    // Give up when data has gone unacknowledged for this long (RFC 9293, 3.9.1; RFC 5482); `None`: the number of retransmissions decides.
    user_timeout: Option<Duration> as OrNone<Span>,
    /// Probe a closed window without data, as Linux does.
    // Probe a closed window by a segment without data below the window, as Linux does, instead of by its first octet (RFC 9293, 3.8.6.1).
    bare_window_probes: bool,
    /// What happens when the peer closes its window over outstanding data: "retransmit" or "persist".
    closed_window: ClosedWindow,
    /// Time in TIME-WAIT (2 MSL).
    time_wait: Duration,
    /// Challenge ACKs in any `challenge_ack_window` (RFC 5961, 7).
    challenge_ack_limit: u32,
    /// See `challenge_ack_limit`.
    challenge_ack_window: Duration,
    /// What a report of the receiver on a damaged segment sets off.
    report_response: ReportResponse,
    /// First sequence number.
    // Our first sequence number. The driver chooses it (RFC 6528 on the Internet).
    initial_seq: u32,
    /// Key of the nonces of the hardened checksum scheme; the simulator draws it at random.
    // The key of the nonces of the hardened checksum scheme. The driver chooses it at random.
    nonce_key: u64,
    /// Hand everything to the application the moment it is in order, so that the receive window never shrinks.
    auto_read: bool,
    /// Length of the IP header in front of the segments in octets: 20 or 40.
    // Length of the IP header in front of the segments: 20 or 40. Reported sizes and the sizes of packets that a path carries depend on it.
    ip_header: u8,
    /// Find out which packets the path carries (RFC 4821, RFC 8899): for real packets, no simulated path minds their size.
    // Find out by itself what packets the path carries where no router says so (RFC 4821, RFC 8899): smaller segments after timeouts in a
    // row, now and then a larger one. What routers say is always heeded.
    mtu_probing: bool,
}

/// Fast recovery without SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Recovery"))]
pub enum FastRecovery {
    /// None: slow start after fast retransmit.
    Tahoe,
    /// Ends with the first new acknowledgement (RFC 5681).
    Reno,
    /// Ends when everything outstanding at its start is acknowledged (RFC 6582).
    NewReno,
}

/// When data is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AckPolicy {
    /// Every segment at once.
    Immediate,
    /// Every second full segment, or after this delay.
    // RFC 9293, 3.8.6.3; out-of-order segments at once (RFC 5681, 4.2).
    Delayed(Duration),
}

/// How round-trip times are measured and timers rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Granularity {
    /// Exact samples; the floor of the variance term.
    // From every acknowledgement that Karn's rule allows; timers as computed, with this as `G` (RFC 6298, 2.3).
    Fine(Duration),
    /// Samples and estimates in whole ticks of this length; timers end when they should (ns-2).
    // One sample a window (one an acknowledgement with timestamps), at least one tick; integer smoothing to eighths and quarters of a tick;
    // timers of at least two ticks.
    Ticks(Duration),
    /// Samples count ticks of this length from 1; timers end with a tick of the host's clock (4.4BSD-Lite).
    // Wright & Stevens 1995, 25.10: as `Ticks`, but a sample counts from 1, so that a round trip within one tick is one and the filters take
    // one less. The clock is that of `Config::clock_phase`.
    Net3(Duration),
    /// The same with two more bits in the estimates, so that the timeout can fall to its minimum (FreeBSD 2.2 to 4).
    // So that the variance can fall below three quarters of a tick (Brakmo & Peterson 1995), and with a timeout of at least two ticks more than
    // the latest sample.
    FreeBsd(Duration),
}

impl Granularity {
    /// A tick of the host's clock, if timers end with one.
    pub const fn host_tick(self) -> Option<Duration> {
        match self {
            Self::Fine(_) | Self::Ticks(_) => None,
            Self::Net3(tick) | Self::FreeBsd(tick) => Some(tick),
        }
    }
}

/// What the sender does when a report names an outstanding segment as damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReportResponse {
    /// Remember it; repair when duplicate acknowledgements ask for it.
    Lazy,
    /// Take the segment for lost and retransmit it at once.
    Immediate,
}

/// What a sender does with outstanding data over which the peer closes its window. RFC 9293, 3.8.6 has it probed in the standard way, and leaves
/// open whether it is sent again otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ClosedWindow {
    /// The retransmission timer runs on: what it sends again are the probes, and the congestion window falls (Linux).
    Retransmit,
    /// The timer stops, and nothing leaves but probes. When the window opens, what was outstanding is sent again at the congestion window
    /// that there was (4.4BSD).
    // Wright & Stevens 1995, 26.3: the timer is cancelled and SND.NXT pulled back to SND.UNA. Idle time is counted from the last segment
    // received, so that the congestion window does not begin anew either. M-TCP and Freeze-TCP rely on it.
    Persist,
}

/// A configuration that no connection can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found}; allowed is {allowed}")]
pub struct ConfigError {
    /// The field of [`Config`].
    pub field: &'static str,
    /// The value that was given.
    pub found: String,
    /// The values that are allowed, in words.
    pub allowed: &'static str,
}

impl Config {
    /// The smallest MSS: the 40 octets of a full header's options, and some data.
    pub const MIN_MSS: u16 = 64;

    /// Checks what an [`Endpoint`](super::Endpoint) relies on. A driver calls it on every configuration that comes from outside.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field, found: String, allowed| Err(ConfigError { field, found, allowed });
        let tick = match self.granularity {
            Granularity::Fine(_) => None,
            Granularity::Ticks(tick) | Granularity::Net3(tick) | Granularity::FreeBsd(tick) => Some(tick),
        };
        if self.mss < Self::MIN_MSS {
            wrong("mss", self.mss.to_string(), "64 to 65535 octets")
        } else if self.initial_window == 0 {
            wrong("initial_window", "0".to_owned(), "1 segment or more")
        } else if self.dup_threshold == 0 {
            wrong("dup_threshold", "0".to_owned(), "1 or more")
        } else if self.least_cwnd == 0 {
            wrong("least_cwnd", "0".to_owned(), "1 or more")
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
            forgiven_syn_losses: 0,
            initial_ssthresh: None,
            max_window: None,
            receive_buffer: 4 << 20,
            send_buffer: 4 << 20,
            window_scaling: true,
            timestamps: true,
            timestamp_tick: Duration::from_millis(1),
            sack: true,
            dsack: true,
            recovery: FastRecovery::NewReno,
            impatient: true,
            deflate_at_once: false,
            window_at_once: false,
            dup_threshold: 3,
            count_duplicates: false,
            count_pipe: false,
            forget_sacks: false,
            limited_transmit: true,
            prr: true,
            rack: true,
            rack_rtt_by_sequence: false,
            tlp: true,
            ecn: false,
            undo: true,
            drop_precedence: None,
            window_validation: true,
            slow_start_after_idle: true,
            slow_start_limit: Some(2),
            ssthresh_from_cwnd: false,
            least_cwnd: 2,
            whole_thresholds: false,
            ack_policy: AckPolicy::Delayed(Duration::from_millis(40)),
            quick_acks: 0,
            pacing_burst: Duration::ZERO,
            unpaced_segments: 0,
            nagle: true,
            nagle_for_small: false,
            granularity: Granularity::Fine(Duration::from_millis(1)),
            clock_phase: None,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            min_rto_on_variance: false,
            min_rto_after_backoff: false,
            max_rto: Duration::from_secs(60),
            max_backoff: 64,
            max_retransmissions: Some(15),
            max_syn_retransmissions: Some(6),
            keep_alive: None,
            user_timeout: None,
            bare_window_probes: false,
            closed_window: ClosedWindow::Retransmit,
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
    /// its order of segments for RACK, its initial window after a lost SYN, quick acknowledgements and bare window probes.
    pub fn linux() -> Self {
        Self {
            receive_buffer: 6 << 20,
            forgiven_syn_losses: 1,
            slow_start_limit: None,
            ssthresh_from_cwnd: true,
            rack_rtt_by_sequence: true,
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

    /// The one-way agents of ns-2.1b8, of 2001: 100 ms ticks, the first timeout after 6 s, a minimum of 1 s that is applied after backing off,
    /// no limited transmit, and in NewReno all inflation taken back by a partial acknowledgement. Every segment is acknowledged at once. `window_` is
    /// 200 packets, `receive_buffer` and `initial_ssthresh`: that of the agents, 20, fills no path of 10 Mbit/s and 70 ms.
    ///
    /// Rules of theirs that are not here:
    /// - Ticks begin at the origin of time; the agents draw their phase at random.
    /// - A data packet has 1040 octets on the wire. The agents' had 1000 with all headers until November 2001 (`useHeaders_`); `mss = 960` makes such packets.
    /// - After a fast recovery the window comes back little by little; the agents let it go in one burst (`maxburst_ 0`): `window_at_once`.
    /// - With SACK recovery goes by RFC 6675; `Sack1` counts duplicates, adds and takes whole packets of a `pipe` of its own, and forgets what was reported
    ///   when the timer expires: `count_duplicates`, `count_pipe`, `forget_sacks`.
    /// - What is halved is the flight; the agents halve `cwnd_`, to one packet at least, and cut `ssthresh_` to whole packets: `ssthresh_from_cwnd`,
    ///   `least_cwnd`, `whole_thresholds`. NewReno and SACK grow by octets; the agents by acknowledgements: congestion control `reno`.
    /// - `TCP(alpha, beta)` halves at its first decrease and in slow start: parameter `halve_first` of `gaimd`, which a profile does not set.
    pub fn ns2_2001() -> Self {
        Self {
            initial_ssthresh: Some(200_000),
            receive_buffer: 200_000,
            impatient: false,
            deflate_at_once: true,
            limited_transmit: false,
            slow_start_limit: Some(1),
            granularity: Granularity::Ticks(Duration::from_millis(100)),
            initial_rto: Duration::from_secs(6),
            min_rto: Duration::from_secs(1),
            min_rto_after_backoff: true,
            max_rto: Duration::from_secs(100_000),
            ..Self::ns2()
        }
    }

    /// FreeBSD 4.5 as in Garcia & Brunstrom 2004: NewReno without SACK, 10 ms ticks, 1 s minimum RTO, delayed
    /// acknowledgements of 100 ms, 64 KiB windows, timestamps, no retransmissions into a closed window. Growth is the congestion control's: `reno` counts acknowledgements as
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
            closed_window: ClosedWindow::Persist,
            report_response: ReportResponse::Lazy,
            ..Self::modern()
        }
    }

    /// QualNet 4.5's Reno as in Park & Chung: 500 ms ticks, 1 s minimum RTO, 16 KiB windows, initial window 1. Its forerunner `GloMoSim` names
    /// FreeBSD 2.2.2 as the origin of its TCP.
    pub fn qualnet() -> Self {
        Self {
            mss: 1024,
            initial_window: 1,
            receive_buffer: 16_384,
            send_buffer: 16_384,
            window_scaling: false,
            timestamps: false,
            recovery: FastRecovery::Reno,
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

/// The function that makes the configuration of a profile.
pub type Profile = fn() -> Config;

/// All profiles by name.
pub static PROFILES: &[(&str, Profile)] = &[
    ("modern", Config::modern),
    ("linux", Config::linux),
    ("ns2", Config::ns2),
    ("ns2-2001", Config::ns2_2001),
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
        assert_eq!(flaw(|config| config.least_cwnd = 0), "least_cwnd is 0; allowed is 1 or more");
        assert_eq!(flaw(|config| config.max_backoff = 0), "max_backoff is 0; allowed is 1 or more");
        assert_eq!(flaw(|config| config.ip_header = 24), "ip_header is 24; allowed is 20 or 40");
        assert_eq!(flaw(|config| config.min_rto = config.max_rto * 2), "min_rto is \"120 s\"; allowed is at most max_rto");
        assert_eq!(flaw(|config| config.receive_buffer = 0), "receive_buffer is 0; allowed is 1 octet or more");
        assert_eq!(flaw(|config| config.send_buffer = 0), "send_buffer is 0; allowed is 1 octet or more");
        assert!(flaw(|config| config.granularity = Granularity::Ticks(Duration::ZERO)).contains("ticks above zero"));
    }
}

#[cfg(all(test, feature = "serde"))]
mod overrides_tests {
    use super::*;

    #[test]
    fn nothing_given_changes_nothing() {
        for (_, profile) in PROFILES {
            assert_eq!(Overrides::default().apply(&profile()), profile());
        }
    }

    #[test]
    fn what_is_given_replaces_the_profile() {
        let given = Overrides {
            max_window: Some(OrNone(None)),
            initial_ssthresh: Some(OrNone(Some(Size(3000)))),
            ack_policy: Some(AckPolicy::Immediate),
            granularity: Some(Granularity::Ticks(Duration::from_millis(500))),
            ..Overrides::default()
        };
        let config = given.apply(&Config::modern());
        assert_eq!((config.max_window, config.initial_ssthresh), (None, Some(3000)));
        assert_eq!(config.ack_policy, AckPolicy::Immediate);
        assert_eq!(config.granularity, Granularity::Ticks(Duration::from_millis(500)));
        assert_eq!(config.min_rto, Config::modern().min_rto);
    }
}
