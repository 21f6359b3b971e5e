//! TCP Westwood: the threshold is what the path was measured to hold.

use super::{CongestionControl, NewReno, Window};
use crate::estimate::{Bandwidth, Filter};
use crate::kit::{Kind, Notes, Parameter, Part};
use crate::path::{Ack, Path};

/// Its row.
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
    parameters: &[
        Parameter {
            name: "tau",
            summary: "Time constant of the filter in seconds.",
            kind: Kind::Number { default: 0.5, min: 0.001, max: 100.0 },
        },
        Parameter {
            name: "m",
            summary: "A sample of zero is taken after tau / m seconds without an acknowledgement.",
            kind: Kind::Number { default: 2.0, min: 1.0, max: 16.0 },
        },
    ],
    build: |arguments| {
        Box::new(Westwood::new(Filter::Westwood { tau: arguments.number("tau"), m: arguments.number("m") }))
    },
};

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
