//! `carma trace-memory`: runs a training script for a few iterations without a GPU, and estimates from its allocations.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::estimate::{self, MachineArguments, SubjectArguments, TrainingArguments};
use crate::progress::run_program;
use crate::python::Package;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Keep the recorded events in this file
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Training iterations to record
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..1000))]
    iterations: u32,
    /// Seconds after which the script is stopped
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    time_limit: u32,
    /// GPUs that the script shall see
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..1024))]
    gpus: u32,
    /// Let the script open network connections
    #[arg(long)]
    network: bool,
    /// A description of the model, for a static answer where the script cannot
    /// be dry-run
    #[arg(long)]
    model: Option<PathBuf>,
    /// The Python interpreter that has PyTorch
    /// [default: `$CARMA_PYTHON`, the active environment's, or python3]
    #[arg(long)]
    python: Option<PathBuf>,
    /// Where there is no such interpreter, this one
    #[arg(long, hide = true, requires = "python")]
    fallback_python: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    training: TrainingArguments,
    #[command(flatten)]
    machine: MachineArguments,
    /// The script with its arguments, or -m and a module
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    script: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let fallback = arguments.fallback_python.as_deref();
    let own = arguments.python.as_deref().filter(|python| fallback.is_none() || carma_gpu::find_program(python).is_some());
    let package = Package::unpack(own.or(fallback))?;
    let scratch = tempfile::tempdir().context("cannot create a temporary folder")?;
    let recorded = arguments.output.clone().unwrap_or_else(|| scratch.path().join("events.trace"));
    let mut command = package.memory();
    command.arg("trace").arg("--iterations").arg(arguments.iterations.to_string());
    command.arg("--time-limit").arg(arguments.time_limit.to_string()).arg("--devices").arg(arguments.gpus.to_string());
    if arguments.network {
        command.arg("--network");
    }
    command.arg("-o").arg(&recorded).arg("--");
    // A launcher's own name in front of the script is for the shell.
    let script = arguments.script.iter().skip_while(|word| word.to_str().is_some_and(|word| word == "python" || word == "python3"));
    let status = run_program("dry-running", command.args(script).stdin(Stdio::null()));
    let status = status.with_context(|| format!("cannot start {}", package.interpreter().display()))?;
    let question = |trace: Option<PathBuf>| {
        let (model, training, machine) = (arguments.model.clone(), arguments.training.clone(), arguments.machine.clone());
        estimate::Arguments::of(SubjectArguments { model, trace, training, machine }, arguments.json)
    };
    if status.success() {
        return estimate::run(&question(Some(recorded)), output);
    }
    match &arguments.model {
        Some(_) => {
            eprintln!("carma: the script could not be dry-run, so the answer is from the model's description");
            estimate::run(&question(None), output)
        }
        None => bail!("the script could not be dry-run (see above); with --model FILE there would be a static answer"),
    }
}
