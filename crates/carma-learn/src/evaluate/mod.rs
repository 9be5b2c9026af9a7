//! Evaluation of estimators: the same scores for all, and cross-validation.

mod confusion;
mod folds;
mod scores;

pub use confusion::Confusion;
pub use folds::{Folds, k_fold};
pub use scores::{Answer, LARGEST_MIB, Scores, same_class};
