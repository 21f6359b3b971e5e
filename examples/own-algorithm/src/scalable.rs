//! Scalable TCP: doubling time and loss rate do not depend on the window.

use whyloss_transport::congestion::{CongestionControl, Window};
use whyloss_transport::kit::{Build, Part};
use whyloss_transport::path::{Ack, Path};
use whyloss_transport::settings;

/// How the catalogue knows it.
pub const PART: Part<dyn CongestionControl> = Part {
    name: "scalable",
    summary: "Grows by a fixed part of what is acknowledged, falls by a fixed fraction.",
    reference: "Kelly 2003",
    ..Part::of::<Scalable>()
};

settings! {
    /// Kelly 2003, section 3: `cwnd += a` an acknowledged segment, `cwnd -= b * cwnd` a congestion signal.
    pub struct Scalable {
        /// Octets of growth an acknowledged octet.
        increase: f64 = 0.01, 0.0..=1.0;
        /// Fraction of the window given up on congestion.
        decrease: f64 = 0.125, 0.0..=0.9;
    }
}

impl Build<dyn CongestionControl> for Scalable {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(self)
    }
}

impl CongestionControl for Scalable {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.in_recovery || !ack.window_limited {
            return;
        }
        let acked = ack.acked as f64;
        window.grow(if window.in_slow_start() { acked } else { self.increase * acked });
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> u64 {
        (window.used(path) as f64 * (1.0 - self.decrease)) as u64
    }
}
