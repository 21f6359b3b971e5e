//! RACK loss detection and tail loss probes (RFC 8985).

use super::rtt::RttEstimator;
use super::scoreboard::{Scoreboard, Sent};
use crate::time::{Duration, Instant};

/// The state of RACK's loss detection (RFC 8985, 5.3).
#[derive(Debug, Default)]
pub(super) struct Rack {
    /// Transmission time and end of the most recently sent segment that was delivered.
    newest: Option<(Instant, u64)>,
    /// Round-trip time of the segment that was delivered last (`RACK.rtt`).
    rtt: Duration,
    /// Highest position delivered so far, to notice reordering.
    highest: u64,
    reordering_seen: bool,
    /// The largest distance in octets over which a segment was overtaken.
    reordering_extent: u64,
    reo_wnd_mult: u32,
    reo_wnd_persist: u32,
    /// `SND.NXT` when D-SACKs last widened the reordering window.
    dsack_round: Option<u64>,
    /// A tail loss probe that is not yet accounted for.
    pub tail_probe: Option<Box<TailProbe>>,
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
    /// Of the segments that an acknowledgement newly reports and that were sent only once, the lowest lies from `start` to `end`. To be
    /// called before what was delivered: the newest of them may lie above everything that was (RFC 8985, 6.2 step 3).
    pub fn note_order(&mut self, (start, end): (u64, u64)) {
        if end < self.highest {
            self.reordering_seen = true;
            self.reordering_extent = self.reordering_extent.max(self.highest - start);
        }
    }

    /// The largest distance in octets over which a segment was overtaken; 0 if none was.
    pub const fn reordering_extent(&self) -> u64 {
        self.reordering_extent
    }

    /// A segment that left at `sent` and ends at `end` was delivered. If it was sent again, it is clear that the repetition was.
    pub fn on_delivered(&mut self, now: Instant, (sent, end): (Instant, u64)) {
        self.highest = self.highest.max(end);
        if self.newest.is_none_or(|newest| newest < (sent, end)) {
            self.newest = Some((sent, end));
            self.rtt = now.since(sent);
        }
    }

    /// Takes `rtt` for the round-trip time, whatever segment was sent last.
    pub fn take_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
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

    /// Called when a recovery has ended.
    pub fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// `certain`: recovery is under way, or enough was delivered for duplicate acknowledgements to tell a loss (RFC 8985, 6.2 step 4).
    fn reordering_window(&self, rtt: &RttEstimator, certain: bool) -> Duration {
        if !self.reordering_seen && certain {
            return Duration::ZERO;
        }
        let min_rtt = rtt.min().unwrap_or_default();
        let window = min_rtt * u64::from(self.reo_wnd_mult.max(1)) / 4;
        window.min(rtt.srtt().unwrap_or(window))
    }

    /// The segments of `board` that RACK takes for lost now, and after what time to look again. `certain` is as in `reordering_window`.
    pub fn losses(
        &self,
        now: Instant,
        board: &mut Scoreboard,
        rtt: &RttEstimator,
        certain: bool,
        out: &mut Vec<usize>,
    ) -> Option<Duration> {
        out.clear();
        let newest = self.newest?;
        let tolerance = self.rtt + self.reordering_window(rtt, certain);
        let mut wait: Option<Duration> = None;
        board.left_before(newest, |index, left| {
            let deadline = left + tolerance;
            if deadline <= now {
                out.push(index);
            } else {
                wait = wait.max(Some(deadline.since(now)));
            }
        });
        // What was sent again twice at one instant is shown twice.
        out.sort_unstable();
        out.dedup();
        wait
    }
}

/// How long to wait for an acknowledgement of `outstanding` segments before probing the tail (RFC 8985, 7.2): for two round-trip times, and
/// no less than the clock tells, as with the variance of round-trip times (RFC 6298, 2).
pub(super) fn probe_timeout(rtt: &RttEstimator, outstanding: usize) -> Duration {
    let Some(srtt) = rtt.srtt() else { return Duration::from_secs(1) };
    (srtt * 2).max(rtt.tick()) + if outstanding == 1 { WORST_DELAYED_ACK } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn rtt(sample: Duration) -> RttEstimator {
        let mut rtt = RttEstimator::new(&Config::modern());
        rtt.sample(sample, 1);
        rtt
    }

    #[test]
    fn a_probe_waits_for_two_round_trips_and_for_the_clock() {
        let ms = Duration::from_millis;
        assert_eq!(probe_timeout(&rtt(ms(100)), 2), ms(200));
        assert_eq!(probe_timeout(&rtt(ms(100)), 1), ms(400));
        assert_eq!(probe_timeout(&rtt(Duration::from_micros(10)), 2), ms(1));
    }

    #[test]
    fn data_of_a_syn_that_goes_again_left_before_what_followed_it_at_once() {
        let (sent, now) = (Instant::from_nanos(1_000_000_000), Instant::from_nanos(1_100_000_000));
        let mut board = Scoreboard::default();
        board.push(0, 1000, false, sent);
        board.mark_lost(0);
        board.on_retransmit(0, sent); // as `note_repeated_syn_data` does
        board.push(1000, 1000, false, sent);
        let mut rack = Rack::default();
        rack.on_delivered(now, (sent, 2000));
        let mut lost = Vec::new();
        rack.losses(now, &mut board, &rtt(Duration::from_millis(100)), true, &mut lost);
        assert_eq!(lost, [0]);
        // What was sent again later at that instant is not known to have left first.
        let mut board = Scoreboard::default();
        board.push(0, 1000, false, Instant::ZERO);
        board.mark_lost(0);
        board.push(1000, 1000, false, sent);
        board.on_retransmit(0, sent);
        rack.losses(now, &mut board, &rtt(Duration::from_millis(100)), true, &mut lost);
        assert_eq!(lost, [] as [usize; 0]);
    }

    #[test]
    fn what_goes_again_twice_at_one_instant_is_lost_once() {
        let (sent, now) = (Instant::from_nanos(1_000_000_000), Instant::from_nanos(1_100_000_000));
        let mut board = Scoreboard::default();
        board.push(0, 1000, false, Instant::ZERO);
        board.push(1000, 1000, false, Instant::from_nanos(1));
        for _ in 0..2 {
            board.mark_lost(0);
            board.on_retransmit(0, Instant::from_nanos(2));
        }
        let mut rack = Rack::default();
        rack.on_delivered(now, (sent, 3000));
        let mut lost = Vec::new();
        rack.losses(now, &mut board, &rtt(Duration::from_millis(100)), true, &mut lost);
        assert_eq!(lost, [0, 1]);
    }
}
