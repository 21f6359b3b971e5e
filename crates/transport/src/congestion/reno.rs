//! Additive increase by acknowledgements: Reno as BSD and the simulators count it.

use super::{CongestionControl, Window};
use crate::kit::{Notes, Part};
use crate::path::{Ack, Path};

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "reno",
    summary: "Additive increase counted in acknowledgements, half the flight on congestion.",
    reference: "RFC 5681",
    notes: Notes::NONE,
    ..Part::fixed(|_| Box::new(Reno))
};

/// RFC 5681, 3.1: one segment an acknowledgement in slow start, one segment a window in congestion avoidance.
#[derive(Debug, Default)]
pub struct Reno;

impl CongestionControl for Reno {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.acked == 0 || ack.in_recovery || !ack.window_limited {
            return;
        }
        let mss = f64::from(window.mss());
        if window.in_slow_start() {
            window.grow(mss);
        } else {
            window.grow(mss * mss / window.cwnd() as f64); // RFC 5681, eq. 3
        }
    }

    fn threshold(&mut self, _window: &Window, path: &Path) -> u64 {
        path.flight / 2 // RFC 5681, eq. 4; the floor of two segments is the window's
    }
}
