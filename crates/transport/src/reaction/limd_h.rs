//! LIMD/H's three answers: halve, step back, keep.

use super::{Reaction, Response};
use crate::kit::{Build, Notes, Part};
use crate::path::Loss;
use crate::settings;
use crate::verdict::{Cause, Verdict};

pub(super) const PART: Part<dyn Reaction> = Part {
    name: "limd-h",
    summary: "Reduces for certain congestion, steps back a little for congestion that is not certain, keeps the window for corruption.",
    reference: "after Kim, Lu & Bharghavan 1999",
    notes: Notes {
        errata: "A reconstruction: the paper has three answers, but how far a probe loss steps back is our reading. A verdict has two causes; \
                 the differentiator `limd-h` scores congestion 0, and probe losses, which are congestion too, above 0. The second episode in \
                 quick succession scores 0 and halves.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// The share of the window that a probe loss costs.
        step: f64 = 0.1, 0.0..=0.5;
    }
}

impl Build<dyn Reaction> for Settings {
    fn build(self) -> Box<dyn Reaction> {
        Box::new(LimdH::new(self.step))
    }
}

/// Congestion with a score of 0 is congestion loss, with a larger one probe loss: the flow's own increase went too far.
#[derive(Debug)]
pub struct LimdH {
    step: f64,
}

impl LimdH {
    /// A probe loss costs `step` of the window.
    pub fn new(step: f64) -> Self {
        Self { step }
    }
}

impl Reaction for LimdH {
    fn respond(&mut self, verdict: &Verdict, _loss: &Loss) -> Response {
        match verdict.cause {
            Cause::Corruption => Response::Keep,
            Cause::Congestion if verdict.score > 0.0 => Response::Scale(1.0 - self.step),
            Cause::Congestion | Cause::Unknown => Response::Reduce,
        }
    }
}
