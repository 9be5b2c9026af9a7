//! Slurm by its own programs.

mod commands;
mod error;

pub use commands::Commands;
pub use error::SlurmError;
