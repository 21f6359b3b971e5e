//! Additive increase by octets: what RFC 5681 recommends.

use super::slow_start::SlowStart;
use super::{hystart, CongestionControl, Window};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Path};
use crate::settings;

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "newreno",
    summary: "Additive increase counted in octets (appropriate byte counting), half the flight on congestion.",
    reference: "RFC 5681, RFC 3465",
    notes: Notes::NONE,
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        slow_start: hystart::Settings;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(NewReno::new(self.slow_start.hystart))
    }
}

/// Appropriate byte counting (RFC 3465): slow start by `SlowStart`, then one segment for each window of acknowledged octets; half
/// the flight on congestion (RFC 5681, eq. 4).
#[derive(Debug)]
pub struct NewReno {
    growth: Growth,
    undo: Option<Growth>,
}

#[derive(Clone, Debug)]
struct Growth {
    slow_start: SlowStart,
    /// Octets acknowledged since the window last grew in congestion avoidance.
    acked: u64,
}

impl NewReno {
    /// With HyStart++ (RFC 9406) in the first slow start or without.
    pub fn new(hystart: bool) -> Self {
        Self { growth: Growth { slow_start: SlowStart::new(hystart), acked: 0 }, undo: None }
    }
}

impl CongestionControl for NewReno {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.acked == 0 || ack.in_recovery {
            return;
        }
        let growth = &mut self.growth;
        if window.in_slow_start() {
            growth.slow_start.on_ack(window, ack);
            return;
        }
        growth.slow_start.on_left();
        if ack.window_limited {
            growth.acked += ack.acked;
            if growth.acked >= window.cwnd() {
                growth.acked -= window.cwnd();
                window.grow(f64::from(window.mss())); // RFC 3465, 2.1
            }
        }
    }

    fn save(&mut self) {
        self.undo = Some(self.growth.clone());
    }

    fn threshold(&mut self, _window: &Window, path: &Path) -> u64 {
        self.growth.acked = 0;
        self.growth.slow_start.on_congestion();
        path.flight / 2
    }

    fn on_timeout(&mut self, _window: &mut Window, _path: &Path) {
        self.growth.slow_start.on_timeout();
    }

    fn on_undo(&mut self, _window: &mut Window, _path: &Path) {
        if let Some(growth) = self.undo.take() {
            self.growth = growth;
        }
    }
}
