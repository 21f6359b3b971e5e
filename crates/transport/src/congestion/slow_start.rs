//! Slow start in octets, shared by the congestion controls that count octets.

use super::hystart::{self, HyStart};
use super::Window;
use crate::path::Ack;

/// Grows the window by `min(N, L · SMSS)` for an acknowledgement of `N` octets (RFC 3465, 2.2): `L` is the window's limit, 1 in the slow
/// start after a timeout, and 8 under HyStart++. A window without a limit grows by all of `N`, but not beyond the threshold.
#[derive(Clone, Debug)]
pub(super) struct SlowStart {
    hystart: Option<HyStart>,
    after_timeout: bool,
}

impl SlowStart {
    pub(super) fn new(hystart: bool) -> Self {
        Self { hystart: hystart.then(HyStart::default), after_timeout: false }
    }

    /// To be called for each acknowledgement below the threshold.
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let mss = u64::from(window.mss());
        let (limit, divisor) = match (&mut self.hystart, window.slow_start_limit()) {
            (Some(hystart), _) => (hystart::LIMIT * mss, hystart.on_ack(ack)),
            (None, None) => (window.ssthresh() - window.cwnd(), 1.0),
            (None, Some(_)) if self.after_timeout => (mss, 1.0),
            (None, Some(limit)) => (u64::from(limit) * mss, 1.0),
        };
        if ack.window_limited {
            let octets = ack.acked.min(limit);
            window.grow(octets as f64 / divisor);
        }
        if self.hystart.as_ref().is_some_and(HyStart::is_over) {
            self.hystart = None;
            window.set_ssthresh(window.cwnd());
        }
    }

    /// The window reached the threshold: congestion avoidance.
    pub(super) fn on_left(&mut self) {
        self.after_timeout = false;
    }

    /// HyStart++ is for the first slow start only (RFC 9406, 4.3): once there was a loss, the threshold is known.
    pub(super) fn on_congestion(&mut self) {
        self.hystart = None;
    }

    pub(super) fn on_timeout(&mut self) {
        self.after_timeout = true;
    }
}
