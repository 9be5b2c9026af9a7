//! `nvidia-smi` over the state: the parts of it that scripts use.

mod arguments;
mod gpu;
mod query;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::machine::{Machine, MachineError};
use crate::state::State;
use arguments::{Command, Wanted};
use gpu::Gpu;

const NO_DRIVER: &str = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is \
                         installed and running.\n\n";
/// The program's numbers for what goes wrong.
const INVALID_ARGUMENT: u8 = 2;
const NOT_FOUND: u8 = 6;
const DRIVER_NOT_LOADED: u8 = 9;
const GPU_IS_LOST: u8 = 15;

/// What the program says, and its exit code.
#[derive(Debug, PartialEq, Eq)]
struct Refusal(u8, String);

/// Plays `nvidia-smi`.
pub(crate) fn play(machine: Result<Machine, MachineError>, arguments: &[String], out: &mut impl Write) -> io::Result<ExitCode> {
    let no_driver = |_| Refusal(DRIVER_NOT_LOADED, NO_DRIVER.to_owned());
    let look = |wanted: Wanted| machine.and_then(|machine| machine.with(|state| answer(state, &wanted))).map_err(no_driver)?;
    let (code, text) = match Command::read(arguments) {
        Ok(Command::Help) => (0, arguments::HELP.to_owned()),
        Ok(Command::Show(wanted)) => look(wanted).map_or_else(|Refusal(code, message)| (code, message), |text| (0, text)),
        Err(Refusal(code, message)) => (code, message),
    };
    out.write_all(text.as_bytes())?;
    Ok(code.into())
}

fn answer(state: &State<'_>, wanted: &Wanted) -> Result<String, Refusal> {
    let all: Vec<Gpu> = (0..state.gpus.len()).map(|place| Gpu::new(state, place)).collect();
    let mut gpus: Vec<&Gpu> = Vec::new();
    for name in &wanted.gpus {
        let found = all.iter().find(|gpu| gpu.is_called(name));
        gpus.push(found.ok_or_else(|| Refusal(NOT_FOUND, "No devices were found\n".to_owned()))?);
    }
    if wanted.gpus.is_empty() {
        gpus.extend(&all);
    }
    if let Some(lost) = gpus.iter().find(|gpu| gpu.lost) {
        let message = "GPU is lost.  Reboot the system to recover this GPU";
        return Err(Refusal(
            GPU_IS_LOST,
            format!("Unable to determine the device handle for GPU{}: {}: {message}\n", lost.index, lost.bus_id),
        ));
    }
    Ok(wanted.view.show(&gpus))
}
