//! The driver's programs, which `carma` plays when it is called by their names.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use carma_gpu::find_program;

use crate::machine::{Machine, MachineError};
use crate::{dcgm, mps, smi};

/// Plays the program of this name, if it is one of [`crate::PROGRAMS`]. `arguments` are without the name.
pub fn play(name: &Path, arguments: &[OsString]) -> Option<ExitCode> {
    match name.file_name()?.to_str()? {
        "dcgmi" => Some(print(name, arguments, dcgm::play)),
        "nvidia-smi" => Some(print(name, arguments, smi::play)),
        "nvidia-cuda-mps-control" => Some(mps::control(name, arguments)),
        "nvidia-cuda-mps-server" => Some(mps::serve(name)),
        _ => None,
    }
}

/// A program that prints what it is asked for.
type Printer = fn(Result<Machine, MachineError>, &[String], &mut io::StdoutLock<'static>) -> io::Result<ExitCode>;

fn print(name: &Path, arguments: &[OsString], program: Printer) -> ExitCode {
    let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let mut output = io::stdout().lock();
    let played = program(Machine::open(&folder_of(name)), &arguments, &mut output);
    // Whoever read the output has seen enough.
    played.and_then(|code| output.flush().map(|()| code)).unwrap_or(ExitCode::FAILURE)
}

/// The folder of the machine that a program belongs to, by where it lies; else the one that is used when nobody names one.
pub(crate) fn folder_of(program: &Path) -> PathBuf {
    let holds = |folder: &PathBuf| folder.join("state").exists();
    own_folder(program).filter(holds).unwrap_or_else(Machine::default_folder)
}

/// The folder above the one that a program was found in: by its path, or in `PATH` where it was called by its bare name.
fn own_folder(program: &Path) -> Option<PathBuf> {
    find_program(program)?.parent()?.parent().map(Path::to_owned)
}
