//! TCP Westwood+: Westwood with a rate that bunched acknowledgements do not fool.

use super::{CongestionControl, Westwood};
use crate::estimate::Filter;
use crate::kit::{Build, Notes, Part};
use crate::time::Duration;
use crate::{choices, settings};

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "westwood-plus",
    summary: "Falls to the measured rate times the smallest delay; the rate is sampled once a round trip.",
    reference: "Grieco & Mascolo 2004",
    notes: Notes {
        errata: "The filter begins with its first sample, as Linux's does; the paper does not say where. Linux smooths by two filters of \
                 7/8 instead of one of 0.9 over the mean of two samples.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

choices! {
    /// Whose filter smooths the samples.
    enum Smoothing {
        /// The publication's.
        Paper = "paper",
        /// Linux's.
        Linux = "linux",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// Whose filter smooths the samples.
        filter: Smoothing;
        /// Weight of what was known before a sample; Linux's is fixed.
        gain: f64 = 0.9, 0.0..=0.999;
        /// Shortest time in seconds that a sample spans (Linux's 50 ms).
        min_interval: f64 = 0.05, 0.0..=10.0;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(Westwood::new(self.filter()))
    }
}

impl Settings {
    fn filter(&self) -> Filter {
        let least = Duration::from_secs_f64(self.min_interval);
        match self.filter {
            Smoothing::Linux => Filter::WestwoodLinux { least },
            Smoothing::Paper => Filter::WestwoodPlus { gain: self.gain, least },
        }
    }
}
