//! How busy a training job will keep a GPU.

mod features;
pub mod solo;
pub mod work;

pub use features::{Features, features};
