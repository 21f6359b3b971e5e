//! Every field of the engine's configuration, under the same name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use whyloss_transport::quantity::{OrNone, Size, Span};
use whyloss_transport::tcp;
use whyloss_transport::Duration;

/// Defines [`Tcp`] and how it changes a configuration. The struct literal in `apply` names every field of the engine's, so that the
/// compiler tells when one is missing here.
macro_rules! overrides {
    ($($(#[$doc:meta])* $field:ident: $type:ty => |$base:ident, $value:ident| $convert:expr,)*) => {
        /// What is different from the profile. Every field has the name and meaning that it has in the engine; what is not given stays as
        /// the profile and the scheme have it.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Tcp {
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }

        impl Tcp {
            /// `base` with what is different.
            pub fn apply(&self, base: &tcp::Config) -> tcp::Config {
                tcp::Config {
                    $($field: match self.$field.clone() {
                        None => base.$field,
                        Some($value) => { let $base = base; let _ = $base; $convert }
                    },)*
                }
            }
        }
    };
}

overrides! {
    /// Largest payload to send and to announce, in octets.
    mss: u16 => |base, v| v,
    /// Initial window in segments.
    initial_window: u32 => |base, v| v,
    /// Initial slow-start threshold; "none" is unbounded.
    initial_ssthresh: OrNone<Size> => |base, v| v.0.map(|size| size.0),
    /// The window never grows beyond this; "none" is unbounded.
    max_window: OrNone<Size> => |base, v| v.0.map(|size| size.0),
    /// Receive buffer: the largest window that is ever announced.
    receive_buffer: Size => |base, v| v.0,
    /// Send buffer: at most this much is in flight or waiting.
    send_buffer: Size => |base, v| v.0,
    /// Offer window scaling (RFC 7323).
    window_scaling: bool => |base, v| v,
    /// Offer timestamps (RFC 7323).
    timestamps: bool => |base, v| v,
    /// Length of one tick of the timestamp clock.
    timestamp_tick: Span => |base, v| v.into(),
    /// Offer SACK (RFC 2018).
    sack: bool => |base, v| v,
    /// Report duplicates by D-SACK (RFC 2883).
    dsack: bool => |base, v| v,
    /// Recovery without SACK.
    recovery: Recovery => |base, v| v.into(),
    /// In NewReno recovery, restart the retransmission timer at the first partial acknowledgement only (RFC 6582, 4).
    impatient: bool => |base, v| v,
    /// Duplicate acknowledgements that mean a loss.
    dup_threshold: u32 => |base, v| v,
    /// Send new data on the first two duplicate acknowledgements (RFC 3042).
    limited_transmit: bool => |base, v| v,
    /// Proportional rate reduction (RFC 9937); needs SACK.
    prr: bool => |base, v| v,
    /// RACK loss detection (RFC 8985); needs SACK.
    rack: bool => |base, v| v,
    /// Tail loss probes (RFC 8985); needs SACK.
    tlp: bool => |base, v| v,
    /// Negotiate ECN (RFC 3168).
    ecn: bool => |base, v| v,
    /// Undo a reduction that proves unnecessary (RFC 3708, RFC 4015).
    undo: bool => |base, v| v,
    /// Mark one data segment in this many for preferential dropping (AF12 instead of AF11, RFC 2597); "none" marks nothing. The
    /// differentiator `casablanca` sets it.
    drop_precedence: OrNone<u32> => |base, v| v.0,
    /// Do not let a window grow that the application does not fill (RFC 7661).
    window_validation: bool => |base, v| v,
    /// Fall back to the initial window after idling (RFC 5681, 4.1).
    slow_start_after_idle: bool => |base, v| v,
    /// Segments that one acknowledgement grows the window by in slow start (L of RFC 3465, 2.2); "none" is as many as it acknowledges.
    slow_start_limit: OrNone<u32> => |base, v| v.0,
    /// Take the congestion window, not the flight, for what congestion reduces, as Linux does.
    ssthresh_from_cwnd: bool => |base, v| v,
    /// When to acknowledge: "immediate" or { delayed = "100 ms" }.
    ack_policy: AckPolicy => |base, v| v.into(),
    /// Segments acknowledged at once when data begins to come, although acknowledgements are delayed.
    quick_acks: u32 => |base, v| v,
    /// Nagle's algorithm (RFC 9293, 3.7.4).
    nagle: bool => |base, v| v,
    /// Nagle's algorithm waits for small segments only, as in Linux (Minshall's modification).
    nagle_for_small: bool => |base, v| v,
    /// How round-trip times are measured and timers rounded: { fine = "1 ms" }, { ticks = "10 ms" } as in ns-2, { net3 = "500 ms" } as in
    /// 4.4BSD-Lite, or { freebsd = "10 ms" } as in FreeBSD 2.2 to 4.
    granularity: Granularity => |base, v| v.into(),
    /// When the host's clock ticks for the first time, for `net3` and `freebsd`, whose timers end with its ticks; "none", the default, draws it
    /// for each host and run.
    clock_phase: OrNone<Span> => |base, v| v.0.map(Duration::from),
    /// Retransmission timeout before the first sample.
    initial_rto: Span => |base, v| v.into(),
    /// Smallest retransmission timeout.
    min_rto: Span => |base, v| v.into(),
    /// Apply the minimum to the variance term only, as Linux does.
    min_rto_on_variance: bool => |base, v| v,
    /// Largest retransmission timeout.
    max_rto: Span => |base, v| v.into(),
    /// Largest factor by which the timer backs off.
    max_backoff: u32 => |base, v| v,
    /// Give up after this many timeouts in a row; "none" is never.
    max_retransmissions: OrNone<u32> => |base, v| v.0,
    /// Give up connecting after this many SYNs; "none" is never.
    max_syn_retransmissions: OrNone<u32> => |base, v| v.0,
    /// Probe an idle peer after this long; "none" is never.
    keep_alive: OrNone<Span> => |base, v| v.0.map(Duration::from),
    /// Give up when data has gone unacknowledged for this long (RFC 9293, 3.9.1); "none" leaves it to `max_retransmissions`.
    user_timeout: OrNone<Span> => |base, v| v.0.map(Duration::from),
    /// Probe a closed window without data, as Linux does.
    bare_window_probes: bool => |base, v| v,
    /// Time in TIME-WAIT (2 MSL).
    time_wait: Span => |base, v| v.into(),
    /// Challenge ACKs in any `challenge_ack_window` (RFC 5961, 7).
    challenge_ack_limit: u32 => |base, v| v,
    /// See `challenge_ack_limit`.
    challenge_ack_window: Span => |base, v| v.into(),
    /// What a report of the receiver on a damaged segment sets off.
    report_response: ReportResponse => |base, v| v.into(),
    /// First sequence number.
    initial_seq: u32 => |base, v| v,
    /// Key of the nonces of the hardened checksum scheme; the simulator draws it at random.
    nonce_key: u64 => |base, v| v,
    /// Hand everything to the application the moment it is in order, so that the receive window never shrinks.
    auto_read: bool => |base, v| v,
    /// Length of the IP header in front of the segments in octets: 20 or 40.
    ip_header: u8 => |base, v| v,
    /// Find out which packets the path carries (RFC 4821, RFC 8899): for real packets, no simulated path minds their size.
    mtu_probing: bool => |base, v| v,
}

/// Fast recovery without SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// None: slow start after fast retransmit.
    Tahoe,
    /// Ends with the first new acknowledgement (RFC 5681).
    Reno,
    /// Ends when everything outstanding at its start is acknowledged (RFC 6582).
    NewReno,
}

impl From<Recovery> for tcp::Recovery {
    fn from(recovery: Recovery) -> Self {
        match recovery {
            Recovery::Tahoe => Self::Tahoe,
            Recovery::Reno => Self::Reno,
            Recovery::NewReno => Self::NewReno,
        }
    }
}

/// When data is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AckPolicy {
    /// Every segment at once.
    Immediate,
    /// Every second full segment, or after this delay.
    Delayed(Span),
}

impl From<AckPolicy> for tcp::AckPolicy {
    fn from(policy: AckPolicy) -> Self {
        match policy {
            AckPolicy::Immediate => Self::Immediate,
            AckPolicy::Delayed(delay) => Self::Delayed(delay.into()),
        }
    }
}

/// How round-trip times are measured and timers rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Granularity {
    /// Exact samples; the floor of the variance term.
    Fine(Span),
    /// Samples and estimates in whole ticks of this length; timers end when they should (ns-2).
    Ticks(Span),
    /// Samples count ticks of this length from 1; timers end with a tick of the host's clock (4.4BSD-Lite).
    Net3(Span),
    /// The same with two more bits in the estimates, so that the timeout can fall to its minimum (FreeBSD 2.2 to 4).
    FreeBsd(Span),
}

impl From<Granularity> for tcp::Granularity {
    fn from(granularity: Granularity) -> Self {
        match granularity {
            Granularity::Fine(floor) => Self::Fine { floor: floor.into() },
            Granularity::Ticks(tick) => Self::Ticks(tick.into()),
            Granularity::Net3(tick) => Self::Net3(tick.into()),
            Granularity::FreeBsd(tick) => Self::FreeBsd(tick.into()),
        }
    }
}

/// What the sender does when a report names an outstanding segment as damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReportResponse {
    /// Remember it; repair when duplicate acknowledgements ask for it.
    Lazy,
    /// Take the segment for lost and retransmit it at once.
    Immediate,
}

impl From<ReportResponse> for tcp::ReportResponse {
    fn from(response: ReportResponse) -> Self {
        match response {
            ReportResponse::Lazy => Self::Lazy,
            ReportResponse::Immediate => Self::Immediate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_given_changes_nothing() {
        for (_, profile) in tcp::PROFILES {
            assert_eq!(Tcp::default().apply(&profile()), profile());
        }
    }

    #[test]
    fn what_is_given_replaces_the_profile() {
        let given = Tcp {
            max_window: Some(OrNone(None)),
            initial_ssthresh: Some(OrNone(Some(Size(3000)))),
            ack_policy: Some(AckPolicy::Immediate),
            granularity: Some(Granularity::Ticks(Span(500_000_000))),
            ..Tcp::default()
        };
        let config = given.apply(&tcp::Config::modern());
        assert_eq!((config.max_window, config.initial_ssthresh), (None, Some(3000)));
        assert_eq!(config.ack_policy, tcp::AckPolicy::Immediate);
        assert_eq!(config.granularity, tcp::Granularity::Ticks(Duration::from_millis(500)));
        assert_eq!(config.min_rto, tcp::Config::modern().min_rto);
    }
}
