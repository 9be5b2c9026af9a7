//! `carma shim`: internal command that a manager starts for each attempt.

use std::path::{Path, PathBuf};

use anyhow::Result;
use carma_manager::supervise::{self, AttemptFolder};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder of the attempt
    pub(crate) folder: PathBuf,
}

/// Starts a supervisor, and returns when it is on its own.
pub(crate) fn run(folder: &Path) -> Result<()> {
    // The supervisor must not keep a user's folder busy.
    let folder = std::path::absolute(folder)?;
    Ok(supervise::run(&AttemptFolder::at(folder))?)
}
