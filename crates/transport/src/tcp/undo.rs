//! Taking back a reduction that proves unnecessary (RFC 3708, RFC 4015).

/// The window before a reduction, and what would prove the reduction wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub cwnd: u64,
    pub ssthresh: u64,
    /// Retransmissions, those under way at the reduction included, that no D-SACK has reported as duplicates.
    pub unproven: u32,
    /// Whether anything was retransmitted.
    pub retransmitted: bool,
    /// Whether repairs of an earlier episode were under way at the reduction.
    overlaps: bool,
    /// `SND.UNA` at the reduction.
    pub una: u64,
    /// `SND.NXT` at the reduction.
    pub recover: u64,
}

impl Undo {
    /// A reduction from `before`, window and threshold, with `una` to `recover` outstanding, `repeated` segments of it sent again before.
    pub const fn new(before: (u64, u64), una: u64, recover: u64, repeated: u32) -> Self {
        let (cwnd, ssthresh) = before;
        Self { cwnd, ssthresh, unproven: repeated, retransmitted: false, overlaps: repeated > 0, una, recover }
    }

    /// Whether an acknowledgement that echoes a clock older than the first retransmission's tells that it was unnecessary. The echo of
    /// an earlier repair is older too.
    pub const fn is_told_by_clock(&self) -> bool {
        self.retransmitted && !self.overlaps
    }

    /// Whether every retransmission was reported as a duplicate.
    pub const fn is_proven(&self) -> bool {
        self.retransmitted && self.unproven == 0
    }
}
