//! Errors of a machine.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::{MAX_GPUS, Machine};
use crate::state::StateError;

/// Errors of a machine.
#[derive(Debug, Error)]
pub enum MachineError {
    /// Its state.
    #[error(transparent)]
    State(#[from] StateError),
    /// There is already a machine.
    #[error("{0} already has emulated GPUs: `{advice}` removes them", advice = Machine::command("down", .0))]
    Exists(PathBuf),
    /// There is no machine.
    #[error("{0} has no emulated GPUs: `{advice}` creates them", advice = Machine::command("up", .0))]
    Absent(PathBuf),
    /// The machine was removed.
    #[error("the emulated GPUs in {0} were removed")]
    Gone(PathBuf),
    /// It belongs to another user.
    #[error("the emulated GPUs in {0} belong to another user: give another folder in CARMA_EMU")]
    Foreign(PathBuf),
    /// Only root and its owner may change it.
    #[error("permission denied: only root and the owner of the emulated GPUs in {0} may do this")]
    Forbidden(PathBuf),
    /// The emulated library is missing.
    #[error("the stand-in driver library is missing (`make install` installs it): looked for {}", .0.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
    NoLibrary(Vec<PathBuf>),
    /// A file cannot be made or removed.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A path with a colon cannot be part of a list of folders.
    #[error("{0} contains a colon and cannot be in PATH: give another folder")]
    Colon(PathBuf),
    /// Time cannot run like that.
    #[error("a speed of {0} is not possible: give one from 0.001 to 100000")]
    Speed(f64),
    /// Several servers, or too many GPUs.
    #[error("one server with at most {MAX_GPUS} GPUs can be emulated")]
    TooMany,
}
