//! Gradient-boosted trees as a table that a training script has written, and the probability that they give.

/// A node of a tree. A sample goes to `low` if its feature is at most `threshold`, else to `high`; a leaf has itself for both and its value for
/// a threshold.
#[derive(Clone, Copy, Debug)]
pub struct TreeNode {
    /// Number of the feature; [`LEAF`] at a leaf.
    pub feature: u8,
    /// Where a sample goes whose feature is at most the threshold.
    pub low: u16,
    /// Where it goes else.
    pub high: u16,
    /// The threshold, or the value of a leaf.
    pub threshold: f32,
}

/// Stands in place of a feature's number where a node of the tree is a leaf.
pub const LEAF: u8 = u8::MAX;

/// Trees whose sum, through a logistic function, is a probability.
#[derive(Clone, Copy, Debug)]
pub struct Forest {
    /// The first node of each tree.
    pub roots: &'static [u16],
    /// The nodes of all trees.
    pub nodes: &'static [TreeNode],
    /// Slope of the line that calibrates the sum (Platt 1999).
    pub slope: f64,
    /// Its intercept.
    pub intercept: f64,
}

impl Forest {
    /// The probability for a sample with these features.
    #[must_use]
    pub fn probability(&self, features: &[f32]) -> f64 {
        let mut sum = 0.0;
        for &root in self.roots {
            let mut node = &self.nodes[usize::from(root)];
            while node.feature != LEAF {
                let low = features[usize::from(node.feature)] <= node.threshold;
                node = &self.nodes[usize::from(if low { node.low } else { node.high })];
            }
            sum += f64::from(node.threshold);
        }
        // Platt 1999: the sum of the trees is calibrated by a line before the logistic function.
        1.0 / (1.0 + libm::exp(-(self.slope * sum + self.intercept)))
    }

    /// Whether every way through it ends in a leaf and asks for none but the first `features` features.
    #[must_use]
    pub fn is_sound(&self, features: usize) -> bool {
        let ends = |(index, node): (usize, &TreeNode)| {
            // Children come after their node: no way goes round.
            let down = usize::from(node.low.min(node.high)) > index && usize::from(node.low.max(node.high)) < self.nodes.len();
            node.feature == LEAF || down && usize::from(node.feature) < features
        };
        self.roots.iter().all(|root| usize::from(*root) < self.nodes.len()) && self.nodes.iter().enumerate().all(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn node(feature: u8, low: u16, high: u16, threshold: f32) -> TreeNode {
        TreeNode { feature, low, high, threshold }
    }

    const STUMP: [TreeNode; 3] = [node(1, 1, 2, 0.5), node(LEAF, 1, 1, -1.0), node(LEAF, 2, 2, 2.0)];

    fn forest(nodes: &'static [TreeNode]) -> Forest {
        Forest { roots: &[0], nodes, slope: 2.0, intercept: 1.0 }
    }

    #[test]
    fn a_sample_goes_low_up_to_the_threshold() {
        let stump = forest(&STUMP);
        // 1 / (1 + e^-(2 (-1) + 1)) and 1 / (1 + e^-(2 2 + 1))
        assert!((stump.probability(&[9.0, 0.5]) - 0.268_941_421).abs() < 1e-9);
        assert!((stump.probability(&[9.0, 0.6]) - 0.993_307_149).abs() < 1e-9);
    }

    #[test]
    fn circles_and_unknown_features_are_unsound() {
        assert!(forest(&STUMP).is_sound(2) && !forest(&STUMP).is_sound(1));
        static CIRCLE: [TreeNode; 2] = [node(0, 1, 1, 0.5), node(0, 0, 0, 0.5)];
        static BEYOND: [TreeNode; 2] = [node(0, 1, 2, 0.5), node(LEAF, 1, 1, 0.5)];
        assert!(!forest(&CIRCLE).is_sound(2) && !forest(&BEYOND).is_sound(2));
    }
}
