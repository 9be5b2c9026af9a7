//! Training and evaluation of the learned estimators, whose forward passes are in `carma-estimate`.
//!
//! ```text
//! published tables -> data -> dataset -> gpumemnet (neural) --+-> weights files of carma-estimate
//!                        \------------> graph_trees (trees) --+
//!                         \-----------> utilisation ----------+
//!                          \----------> evaluate -> plots
//! ```

pub mod data;
pub mod dataset;
pub mod evaluate;
pub mod gpumemnet;
pub mod graph_trees;
mod neural;
mod parallel;
pub mod plots;
mod record;
mod short;
pub mod trees;
pub mod utilisation;
mod weights;

pub use parallel::on_all_cores;
pub use record::{Outcome, record};
pub use weights::{Weights, class_size, replayed_transformers, train_all};
