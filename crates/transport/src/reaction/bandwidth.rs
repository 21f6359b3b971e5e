//! Fall to what the path was measured to hold when the loss was corruption.

use super::{Reaction, Response};
use crate::estimate::{self, Filter};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Loss};
use crate::time::Duration;
use crate::verdict::{Cause, Verdict};
use crate::{choices, settings};

pub(super) const PART: Part<dyn Reaction> = Part {
    name: "bandwidth",
    summary: "Sets the threshold to the measured rate times the smallest delay, and the window to no more, when the loss was corruption.",
    reference: "Mascolo et al. 2001",
    notes: Notes::NONE,
    ..Part::of::<Settings>()
};

choices! {
    /// How the rate is smoothed.
    enum Smoothing {
        /// Westwood+'s samples of a round trip.
        WestwoodPlus = "westwood-plus",
        /// Westwood's of every acknowledgement.
        Westwood = "westwood",
        /// TCP-Jersey's.
        Jersey = "jersey",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// How the rate is smoothed: Westwood+'s samples of a round trip, Westwood's of every acknowledgement, or TCP-Jersey's.
        filter: Smoothing;
    }
}

impl Build<dyn Reaction> for Settings {
    fn build(self) -> Box<dyn Reaction> {
        Box::new(Bandwidth::new(self.filter()))
    }
}

impl Settings {
    fn filter(self) -> Filter {
        match self.filter {
            Smoothing::WestwoodPlus => Filter::WestwoodPlus { gain: 0.9, least: Duration::from_millis(50) },
            Smoothing::Westwood => Filter::Westwood { tau: 0.5, m: 2.0 },
            Smoothing::Jersey => Filter::Jersey,
        }
    }
}

/// Reduce for congestion and for the unknown; for corruption, what Westwood does for every loss. Until there is an estimate, corruption
/// reduces, too.
#[derive(Debug)]
pub struct Bandwidth {
    estimate: estimate::Bandwidth,
}

impl Bandwidth {
    /// With a rate estimated by `filter`.
    pub fn new(filter: Filter) -> Self {
        Self { estimate: estimate::Bandwidth::new(filter) }
    }
}

impl Reaction for Bandwidth {
    fn on_ack(&mut self, ack: &Ack) {
        self.estimate.on_ack(ack);
    }

    fn respond(&mut self, verdict: &Verdict, loss: &Loss) -> Response {
        match (verdict.cause, self.estimate.window(loss.path.now)) {
            (Cause::Corruption, Some(octets)) => Response::Limit(octets),
            _ => Response::Reduce,
        }
    }
}
