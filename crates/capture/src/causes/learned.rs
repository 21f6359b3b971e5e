//! Whether a loss was corruption or congestion, as trained on captures of simulated worlds: gradient-boosted trees over
//! [`features`](super::features). `model` is the trained table, written by `training/fit_offline.py`.

#[allow(clippy::unreadable_literal, clippy::excessive_precision)] // numbers as they were trained
mod model;

use super::features::{vector, COUNT};
use crate::evidence::Evidence;
use whyloss_transport::differentiation::learned::forest::{Forest, TreeNode, LEAF};

/// The trained trees.
static FOREST: Forest = Forest { roots: model::ROOTS, nodes: model::NODES, slope: model::SLOPE, intercept: model::INTERCEPT };

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
    }

    #[test]
    fn every_tree_ends_in_leaves() {
        assert!(FOREST.is_sound(COUNT));
    }
}
