//! Counters as JSON.

use crate::host::HostStats;
use serde_json::{json, Value};
use whyloss_transport::tcp::{Closing, Stats};

/// What went through the device.
pub fn device(stats: HostStats) -> Value {
    json!({
        "received": stats.received,
        "damaged": stats.damaged,
        "discarded": stats.discarded,
        "fragments": stats.fragments,
        "too_big": stats.too_big,
        "pings": stats.pings,
        "sent": stats.sent,
        "refused": stats.refused,
    })
}

/// The counters of a connection.
pub fn counters(stats: &Stats) -> Value {
    json!({
        "segments_sent": stats.segments_sent,
        "data_segments_sent": stats.data_segments_sent,
        "data_octets_sent": stats.data_octets_sent,
        "retransmissions": stats.retransmissions,
        "retransmitted_octets": stats.retransmitted_octets,
        "fast_retransmits": stats.fast_retransmits,
        "reductions": stats.reductions,
        "timeouts": stats.timeouts,
        "spurious_timeouts": stats.spurious_timeouts,
        "forgiven_timeouts": stats.forgiven_timeouts,
        "undos": stats.undos,
        "tail_probes": stats.tail_probes,
        "losses": stats.losses,
        "ecn_reductions": stats.ecn_reductions,
        "segments_received": stats.segments_received,
        "damaged_received": stats.damaged_received,
        "reports_sent": stats.reports_sent,
        "reports_received": stats.reports_received,
        "snacks_sent": stats.snacks_sent,
        "snack_holes_sent": stats.snack_holes_sent,
        "snacks_received": stats.snacks_received,
        "snack_retransmissions": stats.snack_retransmissions,
        "octets_delivered": stats.octets_delivered,
        "duplicates_received": stats.duplicates_received,
        "challenge_acks": stats.challenge_acks,
        "duplicate_acks": stats.duplicate_acks,
        "mtu_reductions": stats.mtu_reductions,
        "probe_cycles": stats.probe_cycles,
        "mtu_probes": stats.mtu_probes,
    })
}

/// The name of an ending.
pub const fn closing_name(closing: Closing) -> &'static str {
    match closing {
        Closing::Normal => "normal",
        Closing::Aborted => "aborted",
        Closing::Reset => "reset",
        Closing::Refused => "refused",
        Closing::TimedOut => "timed-out",
    }
}
