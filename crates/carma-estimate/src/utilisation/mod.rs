//! How busy a training job will keep a GPU: from its layers to kernels, from kernels to features, from features to counters.
//!
//! ```text
//! Model, Training -> work (kernels, roofline) -> Features -> Learned -> Utilisation
//! ```
//!
//! Learned from runs on an A100, so an estimate is of the job as it would have run there, data loader included: small images (CIFAR) and
//! tables of clicks (DLRM) were starved by it, and nothing in a model says how fast its data come. Runs of a job's own, kept in
//! [`crate::history`], are better than any estimate.

mod estimate;
mod features;
mod held_out;
mod learned;
mod ridge;
mod rows;
pub mod solo;
pub mod work;

pub use estimate::{Counter, Estimated, Utilisation, estimate};
pub use features::{Features, features};
pub use held_out::{HeldOut, evaluate};
pub use learned::{Learned, train, train_and_evaluate};
pub use rows::Set;
