//! DCGM over the state: the `dcgmi` program, and dcgm-exporter's page.

mod arguments;
mod discovery;
mod dmon;
mod exporter;
mod observation;

pub use exporter::{ServeError, serve};

use std::io::{self, Write};
use std::process::ExitCode;

use crate::machine::{Machine, MachineError};
use arguments::{Command, Refusal};

const HELP: &str = "\
 Usage: dcgmi
   dcgmi dmon -e FIELDS [-d MILLISECONDS] [-c COUNT] [-i ENTITIES]
   dcgmi dmon -l
   dcgmi discovery -l | -c
   dcgmi -v | --version
   dcgmi -h | --help

 It stands in for NVIDIA's program on emulated GPUs.
";
const KNOWN: &str = "dmon with -e, -d, -c and -i, dmon -l, discovery -l and discovery -c";
const VERSION: &str = "dcgmi  version: 3.3.9 (emulated by carma)\n";
/// The program's message without a host engine; here, without emulated GPUs.
const NO_HOST_ENGINE: &str = "\
Error: unable to establish a connection to the specified host: localhost
Error: Unable to connect to host engine. Host engine connection invalid/disconnected.
";

/// Runs as `dcgmi`.
pub(crate) fn play(machine: Result<Machine, MachineError>, arguments: &[String], out: &mut impl Write) -> io::Result<ExitCode> {
    let machine = machine.map_err(|error| no_host_engine(&error));
    let answer = match Command::read(arguments) {
        Err(Refusal::Message(message)) => Err(message),
        Err(Refusal::NotEmulated(what)) => {
            writeln!(io::stderr(), "{what} is not emulated: this stand-in knows {KNOWN}")?;
            Err(String::new())
        }
        Ok(Command::Help) => Ok(HELP.to_owned()),
        Ok(Command::Version) => Ok(VERSION.to_owned()),
        Ok(Command::Fields) => Ok(dmon::list()),
        Ok(Command::Gpus) => machine.and_then(|machine| read_state(&machine, discovery::gpus)),
        Ok(Command::Hierarchy) => machine.and_then(|machine| read_state(&machine, discovery::hierarchy)),
        Ok(Command::Watch(watch)) => match machine {
            Ok(machine) => dmon::run(&machine, &watch, out)?.map(|()| String::new()),
            Err(message) => Err(message),
        },
    };
    let (text, code) = answer.map_or_else(|message| (message, ExitCode::FAILURE), |text| (text, ExitCode::SUCCESS));
    out.write_all(text.as_bytes())?;
    Ok(code)
}

/// Reads the state; the error is the program's message when its host engine is gone.
fn read_state<R>(machine: &Machine, act: impl FnOnce(&crate::state::State<'_>) -> R) -> Result<R, String> {
    machine.with(|state| act(state)).map_err(|error| no_host_engine(&error))
}

/// The same message, with the reason on stderr.
fn no_host_engine(error: &MachineError) -> String {
    let _ = writeln!(io::stderr(), "{error}");
    NO_HOST_ENGINE.to_owned()
}
