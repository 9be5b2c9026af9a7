//! Environment variables that a shell or a command needs to use the emulated GPUs.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use carma_emu::Machine;
use clap::Args;
use serde_json::{Map, Value};

use crate::manager::write_json;
use crate::units::quoted;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  eval \"$(carma emu env)\"")]
pub(super) struct EnvArguments {
    /// Print commands for the fish shell
    #[arg(long)]
    fish: bool,
    /// Print JSON; variables to unset are null
    #[arg(long, conflicts_with = "fish")]
    json: bool,
    /// Print commands that leave the emulated GPUs: eval "$(carma emu env --unset)"
    #[arg(long)]
    unset: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma emu run -- nvidia-smi")]
pub(super) struct RunArguments {
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Prints it.
pub(super) fn print(arguments: &EnvArguments, folder: &Path, output: &mut impl Write) -> Result<()> {
    // Unsetting works without the machine.
    let variables = if arguments.unset {
        Machine::environment_without(folder)
    } else {
        Machine::open(folder)?.environment().into_iter().map(|(name, value)| (name, Some(value))).collect()
    };
    let variables = variables.into_iter().map(|(name, value)| (name, value.map(|value| value.to_string_lossy().into_owned())));
    if arguments.json {
        let all: Map<String, Value> = variables.map(|(name, value)| (name.to_owned(), value.into())).collect();
        return write_json(&all, output);
    }
    for (name, value) in variables {
        match value {
            Some(value) if arguments.fish => writeln!(output, "set -gx {name} '{}'", value.replace('\\', r"\\").replace('\'', r"\'"))?,
            Some(value) => writeln!(output, "export {name}={}", quoted(&value))?,
            None if arguments.fish => writeln!(output, "set -e {name}")?,
            None => writeln!(output, "unset {name}")?,
        }
    }
    Ok(())
}

/// Becomes a command in it.
pub(super) fn run(arguments: &RunArguments, machine: &Machine) -> Result<()> {
    let [program, rest @ ..] = arguments.command.as_slice() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(rest).envs(machine.environment());
    Err(command.exec()).with_context(|| format!("cannot run {}", program.display()))
}
