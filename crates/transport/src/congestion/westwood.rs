//! TCP Westwood: the threshold is what the path was measured to hold.

use super::{CongestionControl, NewReno, Window};
use crate::estimate::{Bandwidth, Filter};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Path};
use crate::settings;

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "westwood",
    summary: "Falls to the measured rate times the smallest delay; the rate is sampled at every acknowledgement.",
    reference: "Mascolo et al. 2001",
    notes: Notes {
        fails: "Overestimates the rate where acknowledgements are bunched on their way.",
        errata: "The filter begins with its first sample: the paper does not say where. An acknowledgement less than half a step after a \
                 sample of zero takes its place.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Time constant of the filter in seconds.
        tau: f64 = 0.5, 0.001..=100.0;
        /// A sample of zero is taken after tau / m seconds without an acknowledgement.
        m: f64 = 2.0, 1.0..=16.0;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(Westwood::new(Filter::Westwood { tau: self.tau, m: self.m }))
    }
}

/// NewReno's growth with a threshold of rate times smallest delay, after duplicate acknowledgements and timeouts alike (Mascolo et al.
/// 2001, section 3). Until there is an estimate, half the flight.
///
/// A threshold above the window leaves the window alone, so that slow start fills what a random loss had emptied.
#[derive(Debug)]
pub struct Westwood {
    growth: NewReno,
    bandwidth: Bandwidth,
}

impl Westwood {
    /// With a rate estimated by `filter`.
    pub fn new(filter: Filter) -> Self {
        Self { growth: NewReno::new(false), bandwidth: Bandwidth::new(filter) }
    }
}

impl CongestionControl for Westwood {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.bandwidth.on_ack(ack);
        self.growth.on_ack(window, ack);
    }

    fn save(&mut self) {
        self.growth.save();
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> u64 {
        let half = self.growth.threshold(window, path);
        self.bandwidth.window(path.now).unwrap_or(half)
    }

    fn on_timeout(&mut self, window: &mut Window, path: &Path) {
        self.growth.on_timeout(window, path);
    }

    fn on_undo(&mut self, window: &mut Window, path: &Path) {
        self.growth.on_undo(window, path);
    }
}
