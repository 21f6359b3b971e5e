//! A window that comes back little by little: what it would let go at once nothing clocks out.

use super::Endpoint;
use crate::time::{Duration, Instant};

/// A window on its way back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ramp {
    /// The window to arrive at.
    pub target: u64,
    pace: Pace,
}

#[derive(Clone, Copy, Debug)]
enum Pace {
    /// One segment after so long.
    Timed(Duration),
    /// What is acknowledged, as in slow start.
    Acknowledged,
}

impl Endpoint {
    /// Sets the window to what is in the network and a few segments more, but not below `least` octets; from there acknowledgements
    /// lead back to `target`. The few are one segment (RFC 6582, 3.2 step 3, option 1), or with SACK an initial window: the most that may
    /// leave without a clock (RFC 5681, 4.1; RFC 4015, 3.2).
    pub(super) fn come_back_to(&mut self, target: u64, least: u64) {
        if self.snd.rates.is_some() {
            return; // its congestion control brings it back
        }
        let mss = u64::from(self.snd.mss);
        let pipe = self.snd.pipe();
        let room = if self.agreed.sack { pipe + u64::from(self.config.initial_window) * mss } else { pipe.max(mss) + mss };
        let room = room.max(least);
        self.window.set_cwnd(target.min(room));
        self.timers.set_ramp(None);
        self.snd.ramp = (target > self.window.cwnd()).then_some(Ramp { target, pace: Pace::Acknowledged });
    }

    /// Goes from the window that there is to `target` within one smoothed round-trip time.
    pub(super) fn pace_up_to(&mut self, now: Instant, target: u64) {
        let steps = target.saturating_sub(self.window.cwnd()).div_ceil(u64::from(self.snd.mss));
        if steps > 0 && self.snd.rates.is_none() {
            let step = self.snd.rtt.srtt().unwrap_or_default() / steps;
            self.snd.ramp = Some(Ramp { target, pace: Pace::Timed(step) });
            self.timers.set_ramp(Some(now + step));
        }
    }

    /// `acked` octets have been acknowledged.
    #[inline(never)]
    pub(super) fn climb_by_clock(&mut self, acked: u64) {
        let octets = acked.min(2 * u64::from(self.snd.mss)); // RFC 3465, 2.2
        if let Some(Ramp { target, pace: Pace::Acknowledged }) = self.snd.ramp.filter(|_| octets > 0) {
            self.climb(target, octets);
        }
    }

    /// The time of the next segment has come.
    pub(super) fn climb_by_timer(&mut self, now: Instant) {
        if let Some(Ramp { target, pace: Pace::Timed(step) }) = self.snd.ramp {
            self.climb(target, u64::from(self.snd.mss));
            self.timers.set_ramp(self.snd.ramp.map(|_| now + step));
        }
    }

    fn climb(&mut self, target: u64, octets: u64) {
        let cwnd = self.window.cwnd();
        self.window.set_cwnd((cwnd + octets).min(target).max(cwnd));
        // Where the window has a cap it never arrives.
        if self.window.cwnd() >= target || self.window.cwnd() == cwnd {
            self.stop_climbing();
        }
    }

    /// Ends the ramp: its target is reached, or another event sets the window.
    pub(super) fn stop_climbing(&mut self) {
        self.snd.ramp = None;
        self.timers.set_ramp(None);
    }
}
