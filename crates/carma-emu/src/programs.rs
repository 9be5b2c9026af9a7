//! The driver's programs, which `carma` plays when it is called by their names.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Plays the program of this name, if it is one of [`crate::PROGRAMS`]. `arguments` are without the name.
pub fn play(name: &Path, arguments: &[OsString]) -> Option<ExitCode> {
    let _ = arguments;
    match name.file_name()?.to_str()? {
        "dcgmi" | "nvidia-smi" | "nvidia-cuda-mps-control" | "nvidia-cuda-mps-server" => Some(ExitCode::FAILURE),
        _ => None,
    }
}
