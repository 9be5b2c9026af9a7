//! Internal commands that become supervisors of attempts: `carma launch-server`, which a manager starts once, and `carma shim FOLDER`, by which a
//! running manager of an earlier version starts the program that has replaced its own.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use carma_manager::supervise::{self, AttemptFolder};

/// Runs the arguments, if they are such a command.
pub(crate) fn run(arguments: &[OsString]) -> Option<Result<()>> {
    match arguments {
        [word] if word == "launch-server" => Some(supervise::serve().map_err(Into::into)),
        [word, folder] if word == "shim" => Some(start(folder.as_ref())),
        _ => None,
    }
}

/// Starts a supervisor, and returns when it is on its own.
fn start(folder: &Path) -> Result<()> {
    // The supervisor must not keep a user's folder busy.
    let folder = std::path::absolute(folder)?;
    Ok(supervise::run(&AttemptFolder::at(folder))?)
}
