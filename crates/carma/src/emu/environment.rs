//! What a shell or a command needs in its environment to meet the emulated GPUs.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};
use carma_emu::Machine;
use clap::Args;
use serde_json::{Map, Value};

#[derive(Debug, Args)]
pub(super) struct EnvArguments {
    /// For the fish shell
    #[arg(long)]
    fish: bool,
    /// As JSON
    #[arg(long, conflicts_with = "fish")]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Prints it.
pub(super) fn print(arguments: &EnvArguments, machine: &Machine, output: &mut impl Write) -> Result<()> {
    let variables = machine.environment().into_iter().map(|(name, value)| (name, value.to_string_lossy().into_owned()));
    if arguments.json {
        let all: Map<String, Value> = variables.map(|(name, value)| (name.to_owned(), value.into())).collect();
        return Ok(writeln!(output, "{}", serde_json::to_string_pretty(&all)?)?);
    }
    for (name, value) in variables {
        if arguments.fish {
            writeln!(output, "set -gx {name} '{}'", value.replace('\\', r"\\").replace('\'', r"\'"))?;
        } else {
            writeln!(output, "export {name}={}", quoted(&value))?;
        }
    }
    Ok(())
}

/// As a shell reads it, whatever stands in it.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Becomes a command in it.
pub(super) fn run(arguments: &RunArguments, machine: &Machine) -> Result<()> {
    let [program, rest @ ..] = arguments.command.as_slice() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(rest).envs(machine.environment());
    Err(command.exec()).with_context(|| format!("cannot run {}", program.display()))
}
