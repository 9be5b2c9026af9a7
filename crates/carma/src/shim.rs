//! `carma shim`: what a manager starts for each attempt, and people never do.

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
    // The supervisor is to keep nobody's folder busy.
    let folder = std::path::absolute(folder)?;
    Ok(supervise::run(&AttemptFolder::at(folder))?)
}
