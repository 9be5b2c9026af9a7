//! `carma pool`: pilots of a batch system, as many as waiting jobs need.

mod add;
mod list;

use std::io::Write;

use anyhow::{Result, bail};
use carma_manager::api::PoolChange;
use clap::{Args, Subcommand};

use crate::manager::{AnswerArguments, Manager};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add a pool.
    #[command(subcommand)]
    Add(AddCommand),
    /// List the pools.
    #[command(after_help = "Example:\n  carma pool list")]
    List(AnswerArguments),
    /// Show a pool, its pilots, and why it requests no pilots.
    Show(ShowArguments),
    /// Request no more pilots. Present pilots continue.
    #[command(after_help = "Example:\n  carma pool pause gpu")]
    Pause(NameArguments),
    /// Request pilots again.
    #[command(after_help = "Example:\n  carma pool resume gpu")]
    Resume(NameArguments),
    /// Remove a pool: pending pilots are cancelled, running pilots end with their jobs.
    #[command(after_help = "Example:\n  carma pool remove gpu")]
    Remove(NameArguments),
    /// Ask the batch system whether it would accept a pilot, and when it would start.
    #[command(after_help = "Example:\n  carma pool test gpu")]
    Test(NameArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum AddCommand {
    /// Pilots are batch jobs of Slurm.
    Slurm(Box<add::Arguments>),
}

#[derive(Debug, Args)]
pub(crate) struct NameArguments {
    /// The pool.
    name: String,
    #[command(flatten)]
    manager: Manager,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma pool show gpu")]
pub(crate) struct ShowArguments {
    /// The pool.
    name: String,
    #[command(flatten)]
    answer: AnswerArguments,
}

pub(crate) fn run(command: &Command, output: &mut impl Write) -> Result<()> {
    match command {
        Command::Add(AddCommand::Slurm(arguments)) => add::run(arguments, output),
        Command::List(arguments) => list::list(arguments, output),
        Command::Show(arguments) => list::show(&arguments.name, &arguments.answer, output),
        Command::Pause(arguments) => change(arguments, PoolChange::Pause, "requests no more pilots", output),
        Command::Resume(arguments) => change(arguments, PoolChange::Resume, "requests pilots again", output),
        Command::Remove(arguments) => change(arguments, PoolChange::Remove, "is removed after its last pilot", output),
        Command::Test(arguments) => test(arguments, output),
    }
}

fn change(arguments: &NameArguments, change: PoolChange, text: &str, output: &mut impl Write) -> Result<()> {
    arguments.manager.connect()?.change_pool(&arguments.name, change)?;
    Ok(writeln!(output, "pool {} {text}", arguments.name)?)
}

fn test(arguments: &NameArguments, output: &mut impl Write) -> Result<()> {
    let answer = arguments.manager.connect()?.test_pool(&arguments.name)?;
    let text = carma_format::printable(&answer.text);
    if !answer.accepted {
        bail!("the batch system does not accept a pilot of pool {}: {text}", arguments.name);
    }
    Ok(writeln!(output, "{text}")?)
}
