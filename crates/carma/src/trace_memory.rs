//! `carma trace-memory`: runs a training script for a few iterations without a GPU, and estimates from its allocations.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use carma_manager::DRY_RUN_FAILED;
use clap::Args;
use tempfile::TempDir;

use crate::dry_runs::{Cache, Request, resolved};
use crate::estimate::{self, FitArguments, MachineArguments, Precision, SubjectArguments, TrainingArguments};
use crate::progress::run_program;
use crate::python::{Package, temporary_folder};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  carma trace-memory train.py --epochs 1\n  carma trace-memory --gpu RTX4060 train.py --batch-size 32\n  carma trace-memory --fits RTX4060,A100-40GB --max-batch train.py --batch-size {batch}"
)]
pub(crate) struct Arguments {
    /// Save the recorded events to this file
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Training iterations to record
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..1000))]
    iterations: u32,
    /// Stop the script after this many seconds
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    time_limit: u32,
    /// Number of GPUs that the script sees
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..1024))]
    gpus: u32,
    /// Allow network connections
    #[arg(long)]
    network: bool,
    /// Run the script also if an earlier dry run can answer
    #[arg(long)]
    no_cache: bool,
    /// A description of the model, for a static estimate if the dry run fails
    #[arg(long)]
    model: Option<PathBuf>,
    /// The Python interpreter with PyTorch [default: `$CARMA_PYTHON`, that of the active environment, or python3]
    #[arg(long)]
    python: Option<PathBuf>,
    /// The interpreter to use if that one does not exist
    #[arg(long, hide = true, requires = "python")]
    fallback_python: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    training: TrainingArguments,
    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    fits: FitArguments,
    /// The script and its arguments, or -m and a module. With --max-batch, {batch} is replaced by the batch size
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    script: Vec<OsString>,
}

/// Stands for the batch size in a command.
const BATCH: &str = "{batch}";

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let dry_run = DryRun::new(arguments)?;
    if arguments.fits.max_batch {
        return dry_run.largest_batches(output);
    }
    let recorded = arguments.output.clone().unwrap_or_else(|| dry_run.scratch.path().join("events.trace"));
    if dry_run.record(&arguments.script, &recorded)? {
        return dry_run.answer(Some(recorded), output);
    }
    if arguments.model.is_none() {
        bail!("{DRY_RUN_FAILED}; --model FILE gives an estimate from a description of the model");
    }
    eprintln!("carma: {DRY_RUN_FAILED}; the answer is from the description of the model");
    dry_run.answer(None, output)
}

/// A script, the interpreter that runs it, and a folder for its events.
struct DryRun<'a> {
    arguments: &'a Arguments,
    package: Package,
    scratch: TempDir,
}

impl<'a> DryRun<'a> {
    fn new(arguments: &'a Arguments) -> Result<Self> {
        let fallback = arguments.fallback_python.as_deref();
        let own = arguments.python.as_deref().filter(|python| fallback.is_none() || carma_gpu::find_program(python).is_some());
        let scratch = temporary_folder()?;
        Ok(Self { arguments, package: Package::unpack(own.or(fallback))?, scratch })
    }

    /// Records the events of a command; false if it could not be dry-run.
    fn record(&self, words: &[OsString], recorded: &Path) -> Result<bool> {
        // The interpreter's name in front of the script is for the shell.
        let script = words.iter().skip_while(|word| word.to_str().is_some_and(|word| word == "python" || word == "python3"));
        let mut options = self.options();
        options.extend(script.cloned());
        // What comes over the network may be new each time.
        let cache = Cache::of_user().filter(|_| !self.arguments.no_cache && !self.arguments.network);
        let Some(cache) = cache else { return self.run(&options, recorded, None) };
        let request = self.request(&options)?;
        if let Some(events) = cache.find(&request) {
            fs::write(recorded, events).with_context(|| format!("cannot write {}", recorded.display()))?;
            eprintln!("carma: from an earlier dry run: nothing that the script reads has changed since (--no-cache runs it again)");
            return Ok(true);
        }
        let (inputs, began) = (self.scratch.path().join("inputs"), SystemTime::now());
        let done = self.run(&options, recorded, Some(&inputs))?;
        if done && let Err(error) = cache.keep(&request, &inputs, recorded, began) {
            eprintln!("carma: this dry run is not kept for the next time: {error}");
        }
        Ok(done)
    }

    /// The recorder's options.
    fn options(&self) -> Vec<OsString> {
        let Arguments { iterations, time_limit, gpus, network, .. } = self.arguments;
        let numbers = [("--iterations", iterations), ("--time-limit", time_limit), ("--devices", gpus)];
        let mut options: Vec<OsString> = numbers.into_iter().flat_map(|(name, number)| [name.into(), number.to_string().into()]).collect();
        options.extend(network.then(|| "--network".into()));
        options.push("--".into());
        options
    }

    fn request(&self, options: &[OsString]) -> Result<Request> {
        Ok(Request {
            arguments: options.to_vec(),
            folder: env::current_dir().context("the working folder is gone")?,
            environment: env::vars_os().collect(),
            interpreter: resolved(self.package.interpreter()),
            recorder: Package::digest(),
        })
    }

    fn run(&self, options: &[OsString], recorded: &Path, inputs: Option<&Path>) -> Result<bool> {
        let mut command = self.package.memory();
        command.arg("trace").arg("-o").arg(recorded);
        if let Some(inputs) = inputs {
            command.arg("--inputs").arg(inputs);
        }
        let status = run_program("dry-running", command.args(options).stdin(Stdio::null()));
        let status = status.with_context(|| format!("cannot start {}", self.package.interpreter().display()))?;
        // A process that is killed says nothing itself.
        if status.code().is_none() {
            eprintln!("carma: the dry run was killed ({status}); it may have taken too much memory");
        }
        Ok(status.success())
    }

    fn subject(&self, trace: Option<PathBuf>) -> SubjectArguments {
        let Arguments { model, training, machine, .. } = self.arguments;
        SubjectArguments { model: model.clone(), trace, training: training.clone(), machine: machine.clone() }
    }

    fn answer(&self, trace: Option<PathBuf>, output: &mut impl Write) -> Result<()> {
        estimate::run(&estimate::Arguments::of(self.subject(trace), self.arguments.fits.clone(), self.arguments.json), output)
    }

    /// Runs the script with one batch after the other, each once.
    fn largest_batches(&self, output: &mut impl Write) -> Result<()> {
        let Arguments { script, training, fits, json, .. } = self.arguments;
        if !script.iter().any(|word| word.to_string_lossy().contains(BATCH)) {
            bail!("write {BATCH} where the command has its batch size, as in: train.py --batch-size {BATCH}");
        }
        let subject = |batch: u64| {
            let recorded = self.scratch.path().join(format!("{batch}.trace"));
            let words: Vec<OsString> = script.iter().map(|word| with_batch(word, batch)).collect();
            if !recorded.exists() && !self.record(&words, &recorded)? {
                bail!("the script could not be dry-run with a batch of {batch}");
            }
            self.subject(Some(recorded)).with_batch(batch)
        };
        fits.show(&subject(training.batch.unwrap_or(FIRST_BATCH))?, Precision::Coarse, subject, *json, output)
    }
}

/// The batch that the search starts with.
const FIRST_BATCH: u64 = 16;

fn with_batch(word: &OsStr, batch: u64) -> OsString {
    word.to_str().map_or_else(|| word.to_owned(), |word| word.replace(BATCH, &batch.to_string()).into())
}
