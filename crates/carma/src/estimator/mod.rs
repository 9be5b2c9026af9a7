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
    /// List the estimators, the software stacks and the known GPUs.
    #[command(after_help = "Example:\n  carma estimator list")]
    List,
    /// Fit the CUDA context of a software stack to a reading of nvidia-smi.
    Calibrate(calibrate::Arguments),
    /// Learn corrections from the measured peaks of your jobs.
    Learn(learn::Arguments),
    /// Create, label and clean data sets for the learned estimators.
    #[command(subcommand)]
    Dataset(dataset::Command),
    /// Train the learned estimators.
    Train(train::Arguments),
    /// Compare an estimator with measured memory.
    Evaluate(evaluate::Arguments),
    /// Record the errors of estimators; upper bounds follow from them.
    Bounds(bounds::Arguments),
    /// Run a learned estimator on a data set.
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
