//! Slurm by its own programs: `scontrol`, `squeue`, `sbatch`. Their text is stable over versions; their JSON is not.
//!
//! ```text
//!  Commands (programs, time limits, errors) ─► record (Key=Value) ─► Node, Partition, Settings
//!                                               gres (gpu:a100:4) ─┘
//! ```

mod commands;
mod error;
mod gres;
mod job;
mod node;
mod record;

pub use commands::Commands;
pub use error::SlurmError;
pub use gres::{Gres, list as gres_list};
pub use job::{SlurmJob, SlurmState};
pub use node::{Node, Partition, Settings};
