//! Growth by whole segments, after Linux's `net/ipv4/tcp_cubic.c`.
//!
//! The window grows by one segment for every so many acknowledged. How many is looked at when the window has changed, else every 31 ms. The estimate of
//! Reno's window grows by whole segments too, and the window follows only once it is larger by one. Beyond the window before the reduction the estimate keeps
//! its pace, where RFC 9438 has one segment a round trip. Left out: Linux computes the curve at most once a tick of its clock.

use crate::time::{Duration, Instant};

/// A thirty-second of a second: as long as a look holds while the window stays.
const HELD: Duration = Duration::from_micros(31_250);
/// Segments acknowledged for one of growth: at least, where the window should not grow (windows of them), and at most before any loss.
const LEAST: f64 = 2.0;
const STILL: f64 = 100.0;
const MOST_BEFORE_LOSS: f64 = 20.0;

/// One stage of congestion avoidance. All counts are of segments.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    /// Segments acknowledged for one of growth.
    per_segment: f64,
    /// Acknowledged since the window last grew.
    acked: f64,
    /// The estimate of Reno's window, and what was acknowledged since it last grew.
    reno: f64,
    reno_acked: f64,
    /// No loss has said how large the window may be.
    before_loss: bool,
    /// Window and time of the last look.
    looked: Option<(f64, Instant)>,
}

impl Steps {
    /// Begins a stage with a window of `cwnd`.
    pub(super) fn begin(&mut self, cwnd: f64, before_loss: bool) {
        *self = Self { reno: cwnd.floor(), before_loss, ..Self::default() };
    }

    /// What `acked` segments add to a window of `cwnd` that should be `target` a round trip later. `beta` is the factor of a reduction.
    pub(super) fn grow(&mut self, now: Instant, cwnd: f64, acked: f64, target: f64, beta: f64) -> f64 {
        let cwnd = cwnd.floor();
        self.reno_acked += acked;
        if self.looked.is_none_or(|(window, at)| window != cwnd || now.since(at) > HELD) {
            self.looked = Some((cwnd, now));
            self.look(cwnd, target, beta);
        }
        // What was acknowledged at a slower pace is worth one segment, however much it is.
        let earlier = if self.acked >= self.per_segment { 1.0 } else { 0.0 };
        self.acked = if earlier > 0.0 { acked } else { self.acked + acked };
        let steps = (self.acked / self.per_segment).floor();
        self.acked -= steps * self.per_segment;
        earlier + steps
    }

    fn look(&mut self, cwnd: f64, target: f64, beta: f64) {
        // In eighths, as Linux computes it: 15 for 0.7.
        let windows = (8.0 * (1.0 + beta) / (3.0 * (1.0 - beta))).floor() / 8.0;
        let per_reno = (windows * cwnd).floor().max(1.0);
        let steps = (self.reno_acked / per_reno).floor();
        self.reno_acked -= steps * per_reno;
        self.reno += steps;

        let by_curve = if target > cwnd { cwnd / (target - cwnd) } else { STILL * cwnd };
        let by_curve = if self.before_loss { by_curve.min(MOST_BEFORE_LOSS) } else { by_curve };
        let by_reno = if self.reno > cwnd { cwnd / (self.reno - cwnd) } else { f64::INFINITY };
        self.per_segment = by_curve.min(by_reno).floor().max(LEAST);
    }
}
