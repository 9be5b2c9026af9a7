//! Estimates how busy a training job keeps a GPU: from layers to kernels, features and counters.
//!
//! ```text
//! Model, Training -> work (kernels, roofline) -> Features -> Learned -> Utilisation
//! ```
//!
//! Trained on runs on an A100, so an estimate is for that GPU, including the data loader: it limited small images (CIFAR) and click
//! tables (DLRM), and a model does not say how fast its data arrive. Earlier runs of the same job, in [`crate::history`], are better
//! than any estimate.

mod estimate;
mod features;
mod learned;
mod ridge;
pub mod work;

pub use estimate::{Counter, Estimated, Utilisation, estimate};
pub use features::{Features, features};
pub use learned::{Learned, Predictors, Spread, activity};
pub use ridge::Ridge;
