//! RACK loss detection and tail loss probes (RFC 8985).

use super::scoreboard::Sent;
use super::sides::Sender;
use crate::time::{Duration, Instant};

/// RACK's state.
#[derive(Debug, Default)]
pub(super) struct Rack {
    /// Transmission time and end of the most recently sent segment that was delivered.
    newest: Option<(Instant, u64)>,
    /// Its round-trip time.
    rtt: Duration,
    /// Highest position delivered so far, to notice reordering.
    highest: u64,
    reordering_seen: bool,
    reo_wnd_mult: u32,
    reo_wnd_persist: u32,
    /// `SND.NXT` when D-SACKs last widened the reordering window.
    dsack_round: Option<u64>,
    /// A tail loss probe that is not yet accounted for.
    pub tail_probe: Option<TailProbe>,
}

/// A tail loss probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    /// `SND.NXT` after it.
    pub end: u64,
    /// The segment that it repeated, as it was before; `None` if it carried new data.
    pub lost: Option<Sent>,
}

/// RFC 8985, 7.2: the peer may delay its acknowledgement of a single segment by this much.
const WORST_DELAYED_ACK: Duration = Duration::from_millis(200);

impl Rack {
    /// A segment that left at `sent` and ends at `end` was delivered. If it was sent again, it is clear that the repetition was.
    pub fn on_delivered(&mut self, now: Instant, (sent, end): (Instant, u64), retransmitted: bool) {
        if end < self.highest && !retransmitted {
            self.reordering_seen = true;
        }
        self.highest = self.highest.max(end);
        if self.newest.is_none_or(|newest| newest < (sent, end)) {
            self.newest = Some((sent, end));
            self.rtt = now.since(sent);
        }
    }

    /// A D-SACK arrived: the reordering window was too small.
    pub fn on_dsack(&mut self, una: u64, nxt: u64) {
        if self.dsack_round.is_some_and(|round| una < round) {
            return;
        }
        self.dsack_round = Some(nxt);
        self.reo_wnd_mult = self.reo_wnd_mult.max(1) + 1;
        self.reo_wnd_persist = 16;
    }

    /// A recovery ended.
    pub fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    fn reordering_window(&self, snd: &Sender, dup_threshold: u32) -> Duration {
        let certain = !snd.recovery.is_open() || snd.board.sacked() >= u64::from(dup_threshold) * u64::from(snd.mss);
        if !self.reordering_seen && certain {
            return Duration::ZERO;
        }
        let min_rtt = snd.rtt.min().unwrap_or_default();
        let window = min_rtt * u64::from(self.reo_wnd_mult.max(1)) / 4;
        window.min(snd.rtt.srtt().unwrap_or(window))
    }
}

impl Sender {
    /// The segments that RACK takes for lost now, and after what time to look again.
    pub fn rack_losses(&self, now: Instant, dup_threshold: u32, out: &mut Vec<usize>) -> Option<Duration> {
        out.clear();
        let (sent_at, end) = self.rack.newest?;
        let tolerance = self.rack.rtt + self.rack.reordering_window(self, dup_threshold);
        let mut wait: Option<Duration> = None;
        for (index, sent) in self.board.iter().enumerate() {
            // Neither this one nor those behind it left before.
            if (sent.first_at, sent.end()) >= (sent_at, end) {
                break;
            }
            // Among segments that left at the same instant only new ones are known to have left in order of sequence. Data of a SYN that is
            // sent again is among those.
            let before = sent.last_at < sent_at || sent.last_at == sent_at && sent.end() < end && sent.first_at == sent.last_at;
            if !sent.in_network() || !before {
                continue;
            }
            let deadline = sent.last_at + tolerance;
            if deadline <= now {
                out.push(index);
            } else {
                let remaining = deadline.since(now);
                wait = Some(wait.map_or(remaining, |wait| wait.max(remaining)));
            }
        }
        wait
    }

    /// How long to wait for an acknowledgement before probing the tail.
    pub fn probe_timeout(&self) -> Duration {
        let Some(srtt) = self.rtt.srtt() else { return Duration::from_secs(1) };
        let single = self.board.len() == 1;
        srtt * 2 + if single { WORST_DELAYED_ACK } else { Duration::ZERO }
    }
}
