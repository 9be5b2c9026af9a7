//! What goes wrong with programs of Slurm.

use std::io;
use std::time::Duration;

use thiserror::Error;

/// Why a program of Slurm gave no answer. None of these says that nothing was done: a controller that hangs may act later.
#[derive(Debug, Error)]
pub enum SlurmError {
    /// The program is not in PATH.
    #[error("{0} is not in PATH: this machine has no Slurm, or its module is not loaded")]
    NotInstalled(String),
    /// The program could not be started.
    #[error("cannot run {program}: {error}")]
    NotStarted {
        /// The program.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// The program did not end in time.
    #[error("{program} gave no answer within {} s", limit.as_secs())]
    Late {
        /// The program.
        program: String,
        /// The time it had.
        limit: Duration,
    },
    /// The program failed.
    #[error("{command}: {message}")]
    Failed {
        /// The program and its arguments.
        command: String,
        /// What it printed, or its exit code.
        message: String,
    },
}
