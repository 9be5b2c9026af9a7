//! The driver's programs, which `carma` emulates when it is called by their names.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::machine::{Machine, MachineError};
use crate::{dcgm, mps, smi};

/// Runs as the program of this name, if it is one of [`crate::PROGRAMS`]. `arguments` are without the name.
pub fn play(name: &Path, arguments: &[OsString]) -> Option<ExitCode> {
    match name.file_name()?.to_str()? {
        "dcgmi" => Some(print(name, arguments, dcgm::play)),
        "nvidia-smi" => Some(print(name, arguments, smi::play)),
        "nvidia-cuda-mps-control" => Some(mps::control(name, arguments)),
        "nvidia-cuda-mps-server" => Some(mps::serve(name)),
        _ => None,
    }
}

/// A program that prints its answer.
type Printer = fn(Result<Machine, MachineError>, &[String], &mut io::StdoutLock<'static>) -> io::Result<ExitCode>;

fn print(name: &Path, arguments: &[OsString], program: Printer) -> ExitCode {
    let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let mut output = io::stdout().lock();
    let played = program(Machine::open(&Machine::folder_of(name)), &arguments, &mut output);
    // The reader of the output has closed it.
    played.and_then(|code| output.flush().map(|()| code)).unwrap_or(ExitCode::FAILURE)
}
