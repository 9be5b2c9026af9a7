//! Boosted trees over features of the layer graph. They predict by how much the peak differs from a plain count of weights and activations.
//!
//! `DNNPerf` published this task with a graph neural network. This estimator uses the same kind of features, but trees instead of the network.

use serde::{Deserialize, Serialize};

use super::graph_features::GraphFeatures;
use super::trees::BoostedTrees;
use crate::model::Model;
use crate::training::Training;

/// Trees for the likely peak, and for an upper bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphTrees {
    /// Logarithm of the likely peak over the plain count.
    pub likely: BoostedTrees,
    /// Logarithm of the upper bound over the plain count.
    pub bound: BoostedTrees,
    /// Added to the bound, as a logarithm.
    pub lift: f32,
}

impl GraphTrees {
    /// Likely peak, and an upper bound that is not lower, in MiB.
    pub fn predict(&self, features: &GraphFeatures) -> (f64, f64) {
        let of = |trees: &BoostedTrees, lift: f32| features.plain * (trees.predict(&features.values) + f64::from(lift)).exp();
        let likely = of(&self.likely, 0.0);
        (likely, of(&self.bound, self.lift).max(likely))
    }

    /// The same for a model in training.
    pub fn predict_model(&self, model: &Model, training: &Training) -> (f64, f64) {
        self.predict(&GraphFeatures::of(model, training))
    }
}
