//! Estimators that were trained on measurements: features, forward passes and the shipped weights. Training is in `carma-learn`.

mod activation;
mod features;
pub mod gpumemnet;
mod graph_features;
mod graph_trees;
pub mod neural;
mod shipped;
mod trees;

pub use activation::ActivationFunction;
pub use features::{Features, LayerToken};
pub use graph_features::{GraphFeatures, NAMES};
pub use graph_trees::GraphTrees;
pub use trees::{BoostedTrees, Node, Tree};
