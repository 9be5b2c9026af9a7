//! Gradient-boosted regression trees: each tree corrects the error of the trees before it.

use serde::{Deserialize, Serialize};

/// A sum of regression trees.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BoostedTrees {
    /// The prediction before any tree.
    pub base: f32,
    /// Corrections, in training order.
    pub trees: Vec<Tree>,
}

/// Nodes from the root on; the two children of a node are adjacent and follow their parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tree(pub Vec<Node>);

/// A split (feature, threshold, index of the child for values up to the threshold; the other child follows it) or, if the child index is 0,
/// a leaf with its value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Node(pub u16, pub f32, pub u16);

impl Tree {
    /// The value of the leaf that a row falls into.
    pub fn predict(&self, row: &[f32]) -> f32 {
        let mut at = 0;
        // Children follow their parent, so the loop ends; a damaged file cannot lead outside.
        while let Some(&Node(feature, value, child)) = self.0.get(at) {
            if usize::from(child) <= at {
                return value;
            }
            let above = row.get(usize::from(feature)).is_some_and(|found| *found > value);
            at = usize::from(child) + usize::from(above);
        }
        0.0
    }
}

impl BoostedTrees {
    /// The prediction for a row of features.
    pub fn predict(&self, row: &[f32]) -> f64 {
        f64::from(self.base) + self.trees.iter().map(|tree| f64::from(tree.predict(row))).sum::<f64>()
    }
}
