//! Programs that deliver: found, given their input, and waited for.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use super::DeliveryError;

/// Folders that are searched after `PATH`.
const ELSEWHERE: [&str; 4] = ["/usr/bin", "/bin", "/usr/sbin", "/usr/lib"];

/// The program of this name.
pub(super) fn find(name: &'static str) -> Result<PathBuf, DeliveryError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).chain(ELSEWHERE.map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file()).ok_or(DeliveryError::Missing(name))
}

/// Runs a program to its end. Its standard error is ours.
pub(super) fn run(program: &Path, input: Vec<u8>, prepare: impl FnOnce(&mut Command)) -> Result<(), DeliveryError> {
    let name = || program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |source| DeliveryError::NotRun { program: name(), source };
    let mut command = Command::new(program);
    prepare(&mut command);
    // Our own output reports the success.
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().map_err(failed)?;
    if let Some(mut pipe) = child.stdin.take() {
        // The program may end without reading all of it.
        thread::spawn(move || pipe.write_all(&input));
    }
    let status = child.wait().map_err(failed)?;
    if status.success() { Ok(()) } else { Err(DeliveryError::Failed { program: name(), status }) }
}
