//! Estimators that learn from measurements, and how far they can be trusted.

pub mod boosted_trees;
pub mod dataset;
pub mod dnnperf;
pub mod evaluate;
mod features;
pub mod gpumemnet;
mod neural;
mod parallel;
pub mod plots;
mod shipped;

pub use features::{Features, LayerToken};
pub use parallel::on_all_cores;
pub use shipped::{Weights, class_size, replayed_transformers, train_all};
