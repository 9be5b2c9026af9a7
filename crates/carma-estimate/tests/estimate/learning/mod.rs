//! Estimators that learn: honest division of rows, scores by hand, training that can be repeated.

mod dataset;
mod gpumemnet;
mod plots;
mod scores;
mod trees;
