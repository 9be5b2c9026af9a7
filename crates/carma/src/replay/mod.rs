//! `carma replay`: submits a trace to a running manager at its recorded times, and reports the results.

mod accuracy;
mod emulated;
mod figures;
mod follow;
mod plan;
mod prediction;
mod side_by_side;
pub(crate) mod table;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use carma_manager::api::{Status, TimedUpdate, Update};
use carma_manager::client::Client;
use carma_manager::store::Phase;
use carma_sim::trace::ReadLimits;
use carma_sim::{Catalogue, Estimator, Servers, Trace};
use clap::Args;

pub(crate) use emulated::{EmulatedManager, RunUpdate, STOPPED, stopped_by_signals};
pub(crate) use figures::{Figures, record};
pub(crate) use follow::Replayed;
use follow::{ReplayUpdate, replay};
pub(crate) use plan::{Planned, Training};
#[cfg(test)]
pub(crate) use prediction::simulated_runs;
pub(crate) use prediction::{SEEDS, predict, simulated_kind};

use crate::catalogue::CatalogueArguments;
use crate::configuration::policy_settings;
use crate::files::report_skipped;
use crate::manager::{Manager, write_json};
use crate::progress::bar;
use crate::simulate::memory_estimator;
use crate::submit::caller;
use carma_format::count;
use side_by_side::SideBySide;
use table::Column;

/// How much faster the time of GPUs passes that are emulated for a run.
const EMULATED_SPEED: f64 = 60.0;

#[derive(Debug, Args)]
#[command(after_help = "On emulated GPUs, each job runs `carma emu train` with its workload. On real GPUs, \
only task files (.rad) can be replayed: other traces have no commands.\n\n\
Examples:\n  carma replay trace.csv\n  carma replay trace.csv --against exclusive\n  \
carma replay trace.csv --emulated 4xA100-40GB --policies exclusive,magm,carma")]
pub(crate) struct Arguments {
    /// The trace; `carma trace analyze --help` lists the formats.
    trace: PathBuf,
    /// Submit this many times faster than the trace says [default: the speed of the emulated GPUs; 1 for real GPUs]. With --emulated, the speed of the
    /// emulated GPUs [default: 60].
    #[arg(long, value_parser = speed, allow_negative_numbers = true)]
    speed: Option<f64>,
    /// Memory that the jobs declare: none, oracle (the measured peak), or a column of --estimates.
    #[arg(long, default_value = "oracle")]
    estimator: String,
    /// A CSV file with memory estimates, as for `carma simulate`.
    #[arg(long, value_name = "FILE")]
    estimates: Option<PathBuf>,
    /// Also simulate the same jobs under this policy, with the other settings of the manager, and compare.
    #[arg(long, value_name = "POLICY")]
    against: Option<String>,
    /// Start a manager for each policy on these emulated GPUs, and compare the measured runs with the simulator.
    #[arg(long, value_name = "SERVERS", conflicts_with_all = ["against", "host"])]
    emulated: Option<Servers>,
    /// Policies, as for `carma compare`; ratios are to the first.
    #[arg(long, value_delimiter = ',', default_value = "exclusive,magm,carma", requires = "emulated")]
    policies: Vec<String>,
    /// Number of runs of each policy.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100), requires = "emulated")]
    runs: u64,
    /// Seed of run times and start-up times.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Also say how good the predicted starts and ends were.
    #[arg(long)]
    predictions: bool,
    #[command(flatten)]
    catalogue: CatalogueArguments,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    manager: Manager,
}

fn speed(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if (0.001..=100_000.0).contains(&number) { Ok(number) } else { Err("give 0.001 to 100000".to_owned()) }
}

/// Replays, and prints the results.
pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let catalogue = arguments.catalogue.load()?;
    let estimator = memory_estimator(&arguments.estimator, arguments.estimates.as_deref(), &catalogue)?;
    if let Some(servers) = &arguments.emulated {
        return arguments.side_by_side(servers, &catalogue, &estimator, output);
    }
    let client = &mut arguments.manager.connect()?;
    let status = client.status()?;
    ensure!(!status.observes, "the manager only observes: it would never start the jobs");
    let is_task = arguments.trace.extension().is_some_and(|extension| extension == "rad");
    let trace = (status.emulated || !is_task).then(|| Trace::read(&arguments.trace, &catalogue, &ReadLimits::default())).transpose()?;
    trace.as_ref().inspect(|trace| report_skipped(trace));
    let planned = arguments.plan(&status, trace.as_ref(), &catalogue, &estimator)?;
    let other = arguments.against.as_ref().map(|policy| simulate(client, policy, trace.as_ref(), &catalogue, &estimator)).transpose()?;
    let speed = arguments.speed.unwrap_or(status.speed);
    let watch = arguments.predictions.then(|| accuracy::Watch::start(client)).transpose()?;
    let replayed = replay_with_bar(client, &planned, speed)?;
    let accuracy = watch.map(|watch| watch.judge(&replayed.jobs));
    let measured = Figures::from(&replayed);
    let name = arguments.trace.file_name().unwrap_or_default().display();
    if arguments.json {
        let against = other.map(|other| serde_json::json!({ "policy": arguments.against, "simulated": other }));
        let written = serde_json::json!({
            "trace": name.to_string(), "jobs": replayed.jobs.len(), "speed": speed, "gpu_source": status.gpu_source, "policy": status.policy,
            "measured": measured, "against": against, "predictions": accuracy, "carma": env!("CARGO_PKG_VERSION"),
        });
        return write_json(&written, output);
    }
    writeln!(output, "{name}: {} on {} under {}\n", count(replayed.jobs.len(), "job"), count(status.gpus as usize, "GPU"), status.policy)?;
    let run = Column::Run("measured", &measured);
    match (&other, &arguments.against) {
        (Some(other), Some(policy)) => {
            table::write([Column::Names, run, Column::Run("simulated", other), Column::Ratio(&measured, other)], output)?;
            writeln!(output, "\nmeasured: {}, on this manager.\nsimulated: {policy}, mean of {SEEDS} seeds.", status.policy)?;
        }
        _ => table::write([Column::Names, run], output)?,
    }
    if let Some(accuracy) = &accuracy {
        accuracy::write(accuracy, output)?;
    }
    if status.emulated {
        writeln!(output, "\nThe GPUs are emulated; their time runs {} times faster than real time;", status.speed)?;
        writeln!(output, "times and energy are emulated.")?;
    }
    Ok(())
}

impl Arguments {
    fn training<'a>(&'a self, catalogue: &'a Catalogue, estimator: &'a Estimator) -> Training<'a> {
        Training { catalogue, files: self.catalogue.files(), estimator, seed: self.seed }
    }

    fn side_by_side(&self, servers: &Servers, catalogue: &Catalogue, estimator: &Estimator, output: &mut impl Write) -> Result<()> {
        let trace = Trace::read(&self.trace, catalogue, &ReadLimits::default())?;
        report_skipped(&trace);
        let name = &self.trace.file_name().unwrap_or_default().to_string_lossy();
        let (training, speed) = (self.training(catalogue, estimator), self.speed.unwrap_or(EMULATED_SPEED));
        SideBySide { name, trace: &trace, training, servers, speed, runs: self.runs }.run(&self.policies, self.json, output)
    }

    fn plan(&self, status: &Status, trace: Option<&Trace>, catalogue: &Catalogue, estimator: &Estimator) -> Result<Vec<Planned>> {
        let training = self.training(catalogue, estimator);
        match trace {
            None => plan::task_file(&self.trace, &caller()?),
            Some(trace) if status.emulated => training.plan(trace, &caller()?),
            Some(_) => bail!(
                "the manager has {}, and {} has no commands to run there: give a task file (.rad), or start a manager on emulated GPUs \
                 (`carma emu up`)",
                status.gpu_source,
                self.trace.display()
            ),
        }
    }
}

/// The same jobs on the same GPUs under another policy, simulated.
fn simulate(client: &mut Client, policy: &str, trace: Option<&Trace>, catalogue: &Catalogue, estimator: &Estimator) -> Result<Figures> {
    let trace = trace.context("a task file's command cannot be simulated")?;
    let settings = policy_settings(policy, &client.configuration()?.written)?;
    predict(catalogue, trace, &prediction::servers(&client.gpus()?)?, &settings, estimator)
}

/// Replays under a bar.
fn replay_with_bar(client: &mut Client, planned: &[Planned], speed: f64) -> Result<Replayed> {
    let progress = bar(planned.len(), "finished jobs");
    replay(client, planned, speed, |update| {
        if matches!(update, ReplayUpdate::Job(TimedUpdate { update: Update::Job { state: Phase::Done, .. }, .. })) {
            progress.step();
        }
    })
}
