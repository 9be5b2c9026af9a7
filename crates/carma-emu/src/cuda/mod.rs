//! A CUDA program on the GPUs: its visible GPUs, its memory, its kernels, its errors.

#[cfg(test)]
mod against_simulation;
mod error;
mod launch;
mod mps;
mod program;

pub use crate::state::visible;
pub use error::CudaError;
pub use launch::launch;
pub use mps::{MpsConnection, MpsSettings};
pub use program::{Program, Rank};
