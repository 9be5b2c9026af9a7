//! `carma estimator dataset`: networks to learn from.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use carma_estimate::Family;
use carma_learn::data::{self, Label, Observation};
use carma_learn::dataset::{Keep, clean, generate, write};
use clap::{Args, Subcommand};

use super::python_worker::PythonWorker;
use super::{evaluate, recipes};
use crate::files;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate random networks, labelled by the static estimator.
    Generate(GenerateArguments),
    /// Label the networks again: by training on a real GPU if there is one, otherwise by dry run. A column says which.
    Measure(MeasureArguments),
    /// Remove duplicates, crashed runs and impossible rows, with the reasons.
    Clean(CleanArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma estimator dataset generate cnn --rows 500 -o cnn.csv")]
pub(crate) struct GenerateArguments {
    /// The kind of networks: mlp, cnn or transformer
    #[arg(value_parser = family)]
    family: Family,
    /// Number of networks
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..1_000_000))]
    rows: u32,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to write
    #[arg(short, long)]
    output: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma estimator dataset measure cnn.csv -o measured.csv")]
pub(crate) struct MeasureArguments {
    /// The data set
    file: PathBuf,
    /// The file to write
    #[arg(short, long)]
    output: PathBuf,
    /// The Python interpreter that has PyTorch
    #[arg(long)]
    python: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma estimator dataset clean measured.csv -o clean.csv")]
pub(crate) struct CleanArguments {
    /// The data set
    file: PathBuf,
    /// The file to write
    #[arg(short, long)]
    output: PathBuf,
    /// Keep runs that ran out of memory; classifiers learn from them
    #[arg(long)]
    keep_crashed: bool,
}

fn family(word: &str) -> Result<Family, String> {
    serde_json::from_value(serde_json::Value::from(word)).map_err(|_| "known are mlp, cnn and transformer".to_owned())
}

pub(super) fn run(command: &Command, output: &mut impl Write) -> Result<()> {
    match command {
        Command::Generate(arguments) => {
            let memory = |model: &_, training: &_| evaluate::static_memory(model, training);
            let rows = generate(arguments.family, arguments.rows as usize, arguments.seed, Label::Static, &memory);
            save(&rows, &arguments.output, output)
        }
        Command::Measure(arguments) => measure(arguments, output),
        Command::Clean(arguments) => {
            let rows = files::read_table(&arguments.file, data::read)?;
            let cleaned = clean(rows, Keep { crashed: arguments.keep_crashed });
            for (reason, dropped) in cleaned.reasons() {
                writeln!(output, "{dropped} rows dropped: {reason}")?;
            }
            save(&cleaned.kept, &arguments.output, output)
        }
    }
}

fn measure(arguments: &MeasureArguments, output: &mut impl Write) -> Result<()> {
    let mut rows = files::read_table(&arguments.file, data::read)?;
    let mut worker = PythonWorker::new(arguments.python.as_deref(), None)?;
    let real = worker.has_gpu()?;
    eprintln!("carma: {}", if real { "training each network on the GPU for a minute" } else { "no GPU: labels are from dry runs" });
    let mut left_out = 0;
    for row in &mut rows {
        let labelled = if real { recipes::measured(&mut worker, row) } else { recipes::dry_run(&mut worker, row) };
        match labelled {
            Ok((memory, crashed)) => {
                (row.measured, row.crashed) = (Some(memory), crashed);
                row.label = if real { Label::Measured } else { Label::DryRun };
            }
            Err(error) => {
                left_out += 1;
                eprintln!("carma: {}: {error:#}", row.name);
            }
        }
    }
    if left_out > 0 {
        writeln!(output, "{left_out} rows keep their old label: they could not be run")?;
    }
    save(&rows, &arguments.output, output)
}

fn save(rows: &[Observation], file: &Path, output: &mut impl Write) -> Result<()> {
    let family = rows.iter().find_map(|row| row.family).context("there is no row whose kind of network is known")?;
    let written = write(rows, family, files::create(file)?).with_context(|| format!("cannot write {}", file.display()))?;
    writeln!(output, "{written} rows in {}", file.display())?;
    Ok(())
}
