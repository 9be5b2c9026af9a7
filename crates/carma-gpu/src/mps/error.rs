//! Errors of MPS.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// An error of MPS's control daemon, or in reaching it.
#[derive(Debug, Error)]
pub enum MpsError {
    /// The control program cannot be run.
    #[error("cannot run {program}: {error}; it is part of NVIDIA's driver")]
    NoProgram {
        /// The program.
        program: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A folder for its pipes or logs cannot be made.
    #[error("{path}: {error}")]
    Folder {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Sockets cannot have such long names.
    #[error("{} is too long for the folder of MPS pipes: its sockets would exceed the system's limit; use at most {most} characters", path.display())]
    LongPath {
        /// The folder.
        path: PathBuf,
        /// The most.
        most: usize,
    },
    /// No daemon runs on these pipes.
    #[error("no MPS control daemon runs on {0}")]
    NotRunning(PathBuf),
    /// A daemon already runs there.
    #[error("an MPS control daemon runs on {0} already")]
    AlreadyRunning(PathBuf),
    /// It belongs to another user.
    #[error("permission denied: the daemon belongs to {owner}")]
    Forbidden {
        /// The user.
        owner: String,
    },
    /// It did not answer in time.
    #[error("the MPS control daemon did not answer {command:?} within {} ms", after.as_millis())]
    Unresponsive {
        /// The command.
        command: String,
        /// The deadline that passed.
        after: Duration,
    },
    /// It does not have this command: it belongs to an older driver.
    #[error("the MPS control daemon does not know {command:?}: its driver is too old")]
    UnknownCommand {
        /// The command.
        command: String,
    },
    /// It refused, or its answer is not understood.
    #[error("the MPS control daemon answered {command:?} with {answer:?}")]
    Refused {
        /// The command.
        command: String,
        /// Its answer.
        answer: String,
    },
    /// A process of MPS does not even end when killed.
    #[error("MPS process {0} does not end after a kill: it hangs in the driver")]
    Stuck(u32),
}
