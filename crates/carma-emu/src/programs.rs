//! The driver's programs, which `carma` plays when it is called by their names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::{Machine, mps};

/// Plays the program of this name, if it is one of [`crate::PROGRAMS`]. `arguments` are without the name.
pub fn play(name: &Path, arguments: &[OsString]) -> Option<ExitCode> {
    match name.file_name()?.to_str()? {
        "dcgmi" | "nvidia-smi" => Some(ExitCode::FAILURE),
        "nvidia-cuda-mps-control" => Some(mps::control(name, arguments)),
        "nvidia-cuda-mps-server" => Some(mps::serve(name)),
        _ => None,
    }
}

/// The folder of the machine that a program stands in for something of: the one it lies in, else the default.
pub(crate) fn folder_of(name: &Path) -> PathBuf {
    let own = name.parent().and_then(Path::parent).filter(|folder| folder.join("state").exists());
    own.map_or_else(Machine::default_folder, Path::to_owned)
}
