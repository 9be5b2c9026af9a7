//! `carma estimator`: calibrate, train, evaluate and use the estimators.

mod beside;
mod bounds;
mod calibrate;
mod dataset;
mod evaluate;
pub(crate) mod learn;
mod learned;
mod machine;
mod plots;
mod python_worker;
mod recipes;
mod stacks;
mod train;

use std::io::Write;

use anyhow::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the estimators, the software stacks and the GPUs that are known.
    List,
    /// Fit a stack's context to your own nvidia-smi reading.
    Calibrate(calibrate::Arguments),
    /// Learn corrections from the measured peaks of a manager's jobs.
    Learn(learn::Arguments),
    /// Make, label and clean sets of networks to learn from.
    #[command(subcommand)]
    Dataset(dataset::Command),
    /// Train the learned estimators, and write their weights.
    Train(train::Arguments),
    /// Hold an estimator against measured memory.
    Evaluate(evaluate::Arguments),
    /// Record how far estimators were off, which their upper bounds rest on.
    Bounds(bounds::Arguments),
    /// Let the learned estimators answer for the rows of a set.
    Predict(train::PredictArguments),
}

pub(crate) fn run(command: &Command, output: &mut impl Write) -> Result<()> {
    match command {
        Command::List => stacks::list(output),
        Command::Calibrate(arguments) => calibrate::run(arguments, output),
        Command::Learn(arguments) => learn::run(arguments, output),
        Command::Dataset(command) => dataset::run(command, output),
        Command::Train(arguments) => train::run(arguments, output),
        Command::Evaluate(arguments) => evaluate::run(arguments, output),
        Command::Bounds(arguments) => bounds::run(arguments, output),
        Command::Predict(arguments) => train::predict(arguments, output),
    }
}
