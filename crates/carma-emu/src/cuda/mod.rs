//! What a CUDA program does to the GPUs: which it sees, memory it takes, kernels it runs, errors it meets.

mod error;
mod launch;
mod program;
mod visible;

pub use error::CudaError;
pub use launch::launch;
pub use program::{MpsClient, Program, Rank};
pub use visible::visible;
