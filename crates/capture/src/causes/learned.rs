//! Whether a loss was corruption or congestion, as trained on captures of simulated worlds: gradient-boosted trees over
//! [`features`](super::features). `model` is the trained table, written by `training/fit_offline.py`.

#[allow(clippy::unreadable_literal, clippy::excessive_precision)] // numbers as they were trained
mod model;

use super::features::{vector, COUNT};
use crate::evidence::Evidence;

/// A node of a tree. A sample goes to `low` if its feature is at most `threshold`, else to `high`; a leaf has itself for both and its value for
/// a threshold.
#[derive(Clone, Copy, Debug)]
struct TreeNode {
    feature: u8,
    low: u16,
    high: u16,
    threshold: f32,
}

/// Stands in place of a feature's number where a node of the tree is a leaf.
const LEAF: u8 = u8::MAX;

/// The probability of corruption, if it was corruption or congestion.
pub fn corruption(evidence: &Evidence) -> f64 {
    probability(&vector(evidence))
}

fn probability(features: &[f32; COUNT]) -> f64 {
    let mut sum = 0.0;
    for &root in model::ROOTS {
        let mut node = &model::NODES[usize::from(root)];
        while node.feature != LEAF {
            let low = features[usize::from(node.feature)] <= node.threshold;
            node = &model::NODES[usize::from(if low { node.low } else { node.high })];
        }
        sum += f64::from(node.threshold);
    }
    // Platt 1999: the sum of the trees is calibrated by a line before the logistic function.
    1.0 / (1.0 + libm::exp(-(model::SLOPE * sum + model::INTERCEPT)))
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
        for node in model::NODES {
            assert!(node.feature == LEAF || usize::from(node.feature) < COUNT);
            assert!(usize::from(node.low) < model::NODES.len() && usize::from(node.high) < model::NODES.len());
        }
        // Children come after their node, so that every way down ends.
        let down = |(index, node): (usize, &TreeNode)| node.feature == LEAF || usize::from(node.low.min(node.high)) > index;
        assert!(model::NODES.iter().enumerate().all(down));
    }
}
