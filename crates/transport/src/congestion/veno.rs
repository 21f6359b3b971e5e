//! TCP Veno: Reno that grows at half the pace once it has a queue of its own.

use super::slow_start::SlowStart;
use super::{CongestionControl, Window};
use crate::estimate::Backlog;
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Path};
use crate::settings;

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "veno",
    summary: "Reno that grows at half the pace while beta segments of its own or more are queued.",
    reference: "Fu & Liew 2003",
    notes: Notes {
        errata: "The paper grows on every second acknowledgement then, Linux by a segment every second round trip; here every acknowledgement \
                 earns half: the same pace. Losses are not this part's business: the differentiator `veno` tells random ones by the same \
                 backlog, and the reaction `scale` cuts the window to 4/5 for them.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Segments queued from which on the window grows at half the pace.
        beta: f64 = 3.0, 0.0..=1000.0;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(Veno::new(self.beta))
    }
}

/// Samples a round needs to have for its backlog to be believed (Linux's `tcp_veno`).
const SAMPLES: u32 = 3;

/// Congestion avoidance of Fu & Liew 2003, section III-B. The congestion threshold is half the window, as Reno's.
#[derive(Debug)]
pub struct Veno {
    beta: f64,
    backlog: Backlog,
    slow_start: SlowStart,
}

impl Veno {
    /// With the threshold `beta` in segments.
    pub fn new(beta: f64) -> Self {
        Self { beta, backlog: Backlog::default(), slow_start: SlowStart::new(false) }
    }

    fn is_queued(&self, window: &Window) -> bool {
        let queued = self.backlog.segments(window.segments());
        self.backlog.round().samples >= SAMPLES && queued.is_some_and(|queued| queued >= self.beta)
    }
}

impl CongestionControl for Veno {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.backlog.on_ack(ack);
        if ack.acked == 0 || ack.in_recovery {
            return;
        }
        if window.in_slow_start() {
            self.slow_start.on_ack(window, ack);
            return;
        }
        self.slow_start.on_left();
        if ack.window_limited {
            let pace = if self.is_queued(window) { 0.5 } else { 1.0 };
            window.grow(pace * f64::from(window.mss()) * ack.acked as f64 / window.cwnd() as f64);
        }
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> u64 {
        window.used(path) / 2
    }

    fn on_timeout(&mut self, _window: &mut Window, _path: &Path) {
        self.slow_start.on_timeout();
    }
}
