//! Taking back a reduction that proves unnecessary (RFC 3708, RFC 4015).

/// The window before a reduction, and what would prove the reduction wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub cwnd: u64,
    pub ssthresh: u64,
    /// Retransmissions of the episode that no D-SACK has reported as duplicates.
    pub unproven: u32,
    /// Whether anything was retransmitted.
    pub retransmitted: bool,
    /// `SND.UNA` at the reduction.
    pub una: u64,
    /// `SND.NXT` at the reduction.
    pub recover: u64,
}

impl Undo {
    /// A reduction from `before`, window and threshold, with `una` to `recover` outstanding.
    pub const fn new(before: (u64, u64), una: u64, recover: u64) -> Self {
        Self { cwnd: before.0, ssthresh: before.1, unproven: 0, retransmitted: false, una, recover }
    }

    /// Whether every retransmission was reported as a duplicate.
    pub const fn is_proven(&self) -> bool {
        self.retransmitted && self.unproven == 0
    }
}
