//! What a CUDA program does to the GPUs: which it sees, memory it takes, kernels it runs, errors it meets.

#[cfg(test)]
mod against_simulation;
mod error;
mod launch;
mod mps;
mod program;
mod visible;

pub use error::CudaError;
pub use launch::launch;
pub use mps::{MpsConnection, MpsSettings};
pub(crate) use program::is_open_to;
pub use program::{Program, Rank};
pub use visible::visible;
