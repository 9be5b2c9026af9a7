//! How good an estimator is: the same scores for all of them, and honest division into rows to learn from and rows to judge by.

mod confusion;
mod folds;
mod scores;

pub use confusion::Confusion;
pub use folds::{Folds, k_fold};
pub use scores::{Answer, LARGEST_MIB, Scores, same_class};
