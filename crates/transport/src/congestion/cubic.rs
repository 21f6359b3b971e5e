//! CUBIC (RFC 9438).
//!
//! After a reduction at time 0 the window follows `W(t) = C (t - K)^3 + W_max` with `K = cbrt((W_max - cwnd) / C)`: fast back to
//! where it was, flat around it, fast beyond it. Windows in segments, times in seconds. Where Reno would be faster, the window
//! follows an estimate of Reno's instead.

mod linux;

use super::slow_start::SlowStart;
use super::{hystart, CongestionControl, Window};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Path, Sent};
use crate::time::Instant;
use crate::{choices, settings};
use linux::Steps;

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "cubic",
    summary: "The window is a cubic function of the time since the last reduction, and never less than Reno's.",
    reference: "RFC 9438",
    notes: Notes::NONE,
    ..Part::of::<Settings>()
};

choices! {
    /// How the window follows the curve and the estimate of Reno's window.
    enum Growth {
        /// With each acknowledgement, by fractions of a segment.
        Rfc9438 = "rfc9438",
        /// By whole segments, behind an estimate in whole segments.
        Linux = "linux",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// C: how fast the cubic grows, in segments/s^3.
        c: f64 = 0.4, 0.001..=100.0;
        /// The factor by which congestion multiplies the flight.
        beta: f64 = 0.7, 0.1..=0.99;
        /// Aim lower after a loss below the window of the loss before (RFC 9438, 4.7).
        fast_convergence: bool = true;
        /// With each acknowledgement by fractions of a segment, or by whole segments as Linux does, which is slower where Reno's window is the larger.
        growth: Growth;
        slow_start: hystart::Settings;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        let cubic = Cubic::new(self.c, self.beta, self.fast_convergence, self.slow_start.hystart);
        Box::new(Cubic { growth: self.growth, ..cubic })
    }
}

/// RFC 9438 with its constants as parameters.
#[derive(Debug)]
pub struct Cubic {
    c: f64,
    beta: f64,
    fast_convergence: bool,
    growth: Growth,
    state: State,
    undo: Option<State>,
    /// When the clock of the curve last went on.
    last: Instant,
}

#[derive(Clone, Debug)]
struct State {
    slow_start: SlowStart,
    /// Beginning of this stage of congestion avoidance; `None` until its first acknowledgement.
    epoch: Option<Instant>,
    w_max: f64,
    k: f64,
    w_est: f64,
    cwnd_prior: f64,
    /// No loss has set `w_max` for this stage: after a timeout, or if slow start was left without a loss (RFC 9438, 4.8 and 4.10).
    unanchored: bool,
    steps: Steps,
}

impl Cubic {
    /// `c` in segments/s³, `beta` the factor of a reduction; with HyStart++ (RFC 9406) in the first slow start or without.
    pub fn new(c: f64, beta: f64, fast_convergence: bool, hystart: bool) -> Self {
        let state = State {
            slow_start: SlowStart::new(hystart),
            epoch: None,
            w_max: 0.0,
            k: 0.0,
            w_est: 0.0,
            cwnd_prior: 0.0,
            unanchored: true,
            steps: Steps::default(),
        };
        Self { c, beta, fast_convergence, growth: Growth::Rfc9438, state, undo: None, last: Instant::ZERO }
    }

    fn begin_epoch(&mut self, cwnd: f64) -> Instant {
        let state = &mut self.state;
        state.steps.begin(cwnd, state.unanchored);
        if state.unanchored {
            state.cwnd_prior = cwnd;
        }
        if state.unanchored || state.w_max <= cwnd {
            state.w_max = cwnd;
            state.k = 0.0;
        } else {
            state.k = libm::cbrt((state.w_max - cwnd) / self.c); // RFC 9438, eq. 2
        }
        state.unanchored = false;
        state.w_est = cwnd;
        state.epoch = Some(self.last);
        self.last
    }

    /// RFC 9438, eq. 1.
    fn curve(&self, t: f64) -> f64 {
        let from_inflection = t - self.state.k;
        self.c * from_inflection * from_inflection * from_inflection + self.state.w_max
    }

    /// What `acked` segments add to a window of `cwnd`, `t` after the epoch began: RFC 9438, 4.3 to 4.5.
    fn fraction(&mut self, cwnd: f64, acked: f64, t: f64, rtt: f64) -> f64 {
        let alpha = if self.state.w_est < self.state.cwnd_prior { 3.0 * (1.0 - self.beta) / (1.0 + self.beta) } else { 1.0 };
        self.state.w_est += alpha * acked / cwnd; // RFC 9438, eq. 4
        if self.curve(t) < self.state.w_est {
            return self.state.w_est - cwnd;
        }
        let target = self.curve(t + rtt).clamp(cwnd, 1.5 * cwnd);
        // A step for each segment acknowledged, so that delayed acknowledgements do not slow the curve.
        (target - cwnd) * (acked / cwnd).min(1.0)
    }

    /// The curve's clock stands still while the window is not what limits the sender (RFC 9438, 4.2 and 5.8).
    fn hold_clock(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.state.epoch {
            *epoch += now.since(self.last);
        }
        self.last = now;
    }
}

impl CongestionControl for Cubic {
    fn on_sent(&mut self, sent: &Sent) {
        if sent.was_idle {
            self.hold_clock(sent.now);
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let now = ack.path.now;
        if ack.in_recovery {
            self.last = now;
            return;
        }
        if ack.acked == 0 {
            return;
        }
        if window.in_slow_start() {
            self.state.epoch = None;
            self.state.slow_start.on_ack(window, ack);
            return;
        }
        self.state.slow_start.on_left();
        if !ack.window_limited {
            self.hold_clock(now);
            return;
        }
        self.last = now;

        let mss = f64::from(window.mss());
        let cwnd = window.cwnd() as f64 / mss;
        let acked = ack.acked as f64 / mss;
        let epoch = self.state.epoch.unwrap_or_else(|| self.begin_epoch(cwnd));
        let t = now.since(epoch).as_secs_f64();

        let growth = match self.growth {
            Growth::Rfc9438 => self.fraction(cwnd, acked, t, ack.path.srtt.unwrap_or_default().as_secs_f64()),
            Growth::Linux => {
                let rtt = ack.path.min_rtt.unwrap_or_default().as_secs_f64();
                let target = self.curve(t + rtt);
                self.state.steps.grow(now, cwnd, acked, target, self.beta)
            }
        };
        window.grow(growth.max(0.0) * mss);
    }

    fn save(&mut self) {
        self.undo = Some(self.state.clone());
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> u64 {
        let cwnd = window.cwnd() as f64 / f64::from(window.mss());
        let state = &mut self.state;
        // RFC 9438, 4.7: a flow whose windows shrink from loss to loss makes room for new ones.
        state.w_max = if self.fast_convergence && cwnd < state.w_max { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd };
        state.cwnd_prior = cwnd;
        state.epoch = None;
        state.unanchored = false;
        state.slow_start.on_congestion();
        (window.used(path) as f64 * self.beta) as u64 // RFC 9438, 4.6
    }

    fn on_timeout(&mut self, _window: &mut Window, _path: &Path) {
        self.state.unanchored = true;
        self.state.epoch = None;
        self.state.slow_start.on_timeout();
    }

    fn on_undo(&mut self, _window: &mut Window, _path: &Path) {
        if let Some(state) = self.undo.take() {
            self.state = state; // RFC 9438, 4.9
        }
    }
}
