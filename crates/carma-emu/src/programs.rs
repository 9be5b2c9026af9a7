//! The driver's programs, which `carma` plays when it is called by their names.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::machine::{LIBRARY, Machine, MachineError};
use crate::{dcgm, smi};

/// Plays the program of this name, if it is one of [`crate::PROGRAMS`]. `arguments` are without the name.
pub fn play(name: &Path, arguments: &[OsString]) -> Option<ExitCode> {
    let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let mut out = io::stdout().lock();
    let played = match name.file_name()?.to_str()? {
        "dcgmi" => dcgm::play(machine(name), &arguments, &mut out),
        "nvidia-smi" => smi::play(machine(name), &arguments, &mut out),
        "nvidia-cuda-mps-control" | "nvidia-cuda-mps-server" => Ok(ExitCode::FAILURE),
        _ => return None,
    };
    // Whoever read the output has seen enough.
    Some(played.and_then(|code| out.flush().map(|()| code)).unwrap_or(ExitCode::FAILURE))
}

/// The machine that a program belongs to, by where it lies; else the one that is used when nobody names one.
fn machine(program: &Path) -> Result<Machine, MachineError> {
    let own = own_folder(program).filter(|folder| folder.join("lib").join(LIBRARY).exists());
    Machine::open(&own.unwrap_or_else(Machine::default_folder))
}

/// The folder above the one that a program was found in: by its path, or in `PATH` where it was called by its bare name.
fn own_folder(program: &Path) -> Option<PathBuf> {
    let above = |folder: &Path| folder.parent().map(Path::to_owned);
    match program.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => above(folder),
        _ => env::split_paths(&env::var_os("PATH")?).find(|folder| folder.join(program).is_file()).and_then(|folder| above(&folder)),
    }
}
