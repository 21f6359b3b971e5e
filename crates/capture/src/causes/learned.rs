//! Whether a link was down, and if not whether a loss was corruption or congestion, as trained on captures of simulated worlds: gradient-boosted trees over
//! [`features`](super::features). `down` and `model` are the trained tables, written by `training/fit_offline.py`.

#[allow(clippy::unreadable_literal, clippy::excessive_precision)] // numbers as they were trained
mod down;
#[allow(clippy::unreadable_literal, clippy::excessive_precision)] // numbers as they were trained
mod model;

use super::features::{all, vector, ALL, COUNT};
use crate::evidence::Evidence;
use whyloss_transport::differentiation::learned::forest::{Forest, TreeNode, LEAF};

/// The trained trees.
static FOREST: Forest = Forest { roots: model::ROOTS, nodes: model::NODES, slope: model::SLOPE, intercept: model::INTERCEPT };

/// Those that tell whether a link was down.
static DOWN: Forest = Forest { roots: down::ROOTS, nodes: down::NODES, slope: down::SLOPE, intercept: down::INTERCEPT };

/// The probability that a link was down.
pub fn link_down(evidence: &Evidence) -> f64 {
    outage(&all(evidence))
}

fn outage(features: &[f32; ALL]) -> f64 {
    DOWN.probability(features)
}

/// The probability of corruption, if it was corruption or congestion.
pub fn corruption(evidence: &Evidence) -> f64 {
    probability(&vector(evidence))
}

fn probability(features: &[f32; COUNT]) -> f64 {
    FOREST.probability(features)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_say_what_they_said_when_they_were_trained() {
        assert!(model::EXAMPLES.len() > 20);
        for (features, said) in model::EXAMPLES {
            assert!((probability(features) - said).abs() < 1e-4, "{} instead of {said}", probability(features));
        }
        assert!(down::EXAMPLES.len() > 20);
        for (features, said) in down::EXAMPLES {
            assert!((outage(features) - said).abs() < 1e-4, "{} instead of {said}", outage(features));
        }
    }

    #[test]
    fn every_tree_ends_in_leaves() {
        assert!(FOREST.is_sound(COUNT) && DOWN.is_sound(ALL));
    }
}
