//! Training of the estimator of utilisation, and its errors on held-out runs.

mod fit;
mod held_out;
mod ridge;
mod rows;
pub mod solo;
mod train;

pub use held_out::{HeldOut, evaluate};
pub use rows::Set;
pub use train::{train, train_and_evaluate};
