//! `nvidia-smi` over the state: the parts of it that scripts use.

mod arguments;
mod gpu;
mod query;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::machine::{Machine, MachineError};
use crate::state::State;
use arguments::{Command, ViewRequest};
use gpu::Gpu;

const NO_DRIVER: &str = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is \
                         installed and running.\n\n";
/// The program's exit codes.
const INVALID_ARGUMENT: u8 = 2;
const NOT_FOUND: u8 = 6;
const DRIVER_NOT_LOADED: u8 = 9;
const GPU_IS_LOST: u8 = 15;

/// Why there is no output.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// The exit code of the real program, and its message.
    Message(u8, String),
    /// An option that only the real program has.
    NotEmulated(String),
}

/// Runs as `nvidia-smi`.
pub(crate) fn play(machine: Result<Machine, MachineError>, arguments: &[String], out: &mut impl Write) -> io::Result<ExitCode> {
    let no_driver = |error| {
        // The reason, for people.
        let _ = writeln!(io::stderr(), "{error}");
        Refusal::Message(DRIVER_NOT_LOADED, NO_DRIVER.to_owned())
    };
    let shown = |wanted: ViewRequest| machine.and_then(|machine| machine.with(|state| answer(state, &wanted))).map_err(no_driver)?;
    let answer = Command::read(arguments).and_then(|command| match command {
        Command::Help => Ok(arguments::HELP.to_owned()),
        Command::Show(wanted) => shown(wanted),
    });
    let (code, text) = match answer {
        Ok(text) => (0, text),
        Err(Refusal::Message(code, message)) => (code, message),
        Err(Refusal::NotEmulated(option)) => {
            writeln!(io::stderr(), "{option} is not emulated: this stand-in knows {}", arguments::KNOWN)?;
            (INVALID_ARGUMENT, String::new())
        }
    };
    out.write_all(text.as_bytes())?;
    Ok(code.into())
}

fn answer(state: &State<'_>, request: &ViewRequest) -> Result<String, Refusal> {
    let all: Vec<Gpu> = (0..state.gpus.len()).map(|place| Gpu::new(state, place)).collect();
    let mut gpus: Vec<&Gpu> = Vec::new();
    for name in &request.gpus {
        let found = all.iter().find(|gpu| gpu.is_called(name));
        gpus.push(found.ok_or_else(|| Refusal::Message(NOT_FOUND, "No devices were found\n".to_owned()))?);
    }
    if request.gpus.is_empty() {
        gpus.extend(&all);
    }
    if let Some(lost) = gpus.iter().find(|gpu| gpu.lost) {
        let message = "GPU is lost.  Reboot the system to recover this GPU";
        return Err(Refusal::Message(
            GPU_IS_LOST,
            format!("Unable to determine the device handle for GPU{}: {}: {message}\n", lost.index, lost.bus_id),
        ));
    }
    Ok(request.view.show(&gpus))
}
