//! The differentiator that this project has trained: gradient-boosted trees over what a sender can know of its path.
//!
//! [`features`] says what is measured, `model` is the trained table, written by `training/fit.py` from the losses of simulated worlds.

pub mod features;
pub mod forest;
#[allow(clippy::unreadable_literal, clippy::excessive_precision)] // numbers as they were trained
mod model;
#[cfg(test)]
mod tests;

use self::features::{Features, COUNT};
use self::forest::{Forest, TreeNode, LEAF};
use super::{Cause, LossDifferentiator, Verdict};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss};
use crate::settings;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "learned",
    summary: "Gradient-boosted trees over all that a sender can measure, trained on simulated worlds.",
    reference: "this project; after El Khayat, Geurts & Leduc 2005",
    notes: Notes {
        idea: "Each published signal says something of the queue, and none says enough: how full it was when the neighbours of the lost packet passed, how \
               full it usually is when packets are lost, how the window and the rate stand to their past. Trees weigh them together.",
        formula: "corruption iff P(corruption | features) > threshold; the score is that probability, calibrated for even odds of both causes",
        threshold: "threshold: the larger, the higher A_c and the lower A_w",
        fails: "The first losses of a connection, when nothing is known yet; paths that look like none of the training worlds. See docs/learned.md for the \
                families of worlds that it was not trained on.",
        errata: "The probability holds for worlds in which both causes are equally frequent; with other odds o = P(corruption)/P(congestion) it is \
                 p o / (p o + 1 - p).",
    },
    thresholds: &[Threshold::of_congestion("threshold", Cut::Score)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// The probability of corruption above which a loss is taken for corruption.
        threshold: f64 = model::THRESHOLD, 0.0..=1.0;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Learned { features: Features::default(), threshold: self.threshold })
    }
}

/// Version of the trained model: counts how often it was trained anew.
pub const VERSION: u32 = model::VERSION;

/// The trained trees.
static FOREST: Forest = Forest { roots: model::ROOTS, nodes: model::NODES, slope: model::SLOPE, intercept: model::INTERCEPT };

/// The probability of corruption.
#[must_use]
pub fn probability(features: &[f32; COUNT]) -> f64 {
    FOREST.probability(features)
}

/// The state of one connection.
#[derive(Debug)]
pub struct Learned {
    features: Features,
    threshold: f64,
}

impl LossDifferentiator for Learned {
    fn on_ack(&mut self, ack: &Ack) {
        self.features.on_ack(ack);
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        match self.features.observe(loss) {
            Some(features) => Verdict::by_threshold(probability(&features), self.threshold),
            None => Verdict { cause: Cause::Unknown, score: 0.0 },
        }
    }
}
