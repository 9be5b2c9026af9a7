//! `carma validate`: the simulator held against measured runs.

mod view;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use carma_sim::{
    Knowledge, MeasuredPolicy, MeasuredRun, Origin, RunSummary, Scored, Trace, mean_absolute_error, read_crowds, read_measured, read_pairs,
    spread,
};
use serde::Serialize;

use crate::files::{read_observations, read_table};
use crate::manager::write_json;
use crate::origin::{print, seeds_in_words};
use crate::progress::simulate_all;
use crate::simulate::{World, WorldArguments};
use carma_format::wrapped;

/// The measured data to compare the simulator with. Nothing is fitted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  carma validate --jobs philly60_jobs.csv --measured philly60_measured.csv --estimates estimates.csv")]
pub(crate) struct Arguments {
    /// The trace of the measured runs: CSV with `arrival_s`, `workload`, `gpus` and `exclusive_exec_s`. Other columns are ignored.
    #[arg(long, value_name = "FILE")]
    jobs: PathBuf,
    /// The measurements: CSV with `policy`, `makespan_s`, `mean_jct_s`, `p95_jct_s`, `mean_exec_s`, `oom_attempts` and
    /// `energy_vs_exclusive`.
    #[arg(long, value_name = "FILE")]
    measured: PathBuf,
    /// Also compare with measured pairs of jobs on one GPU.
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// Also compare with measured groups of jobs on one GPU.
    #[arg(long, value_name = "FILE")]
    crowds: Option<PathBuf>,
    #[command(flatten)]
    world: WorldArguments,
    /// Number of runs of each policy; seeds count from 0.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// One policy: signed errors, as shares of the measured value; differences where it may be 0.
#[derive(Debug, Serialize)]
struct Row {
    policy: String,
    makespan_error: f64,
    mean_jct_error: f64,
    p95_jct_error: f64,
    execution_error: f64,
    oom_difference: f64,
    energy_ratio_difference: Option<f64>,
    /// Unset for one seed.
    makespan_spread: Option<f64>,
    screened: bool,
    simulated: MeasuredRun,
    measured: MeasuredRun,
}

#[derive(Debug, Serialize)]
struct Accuracy {
    mape: f64,
}

#[derive(Debug, Serialize)]
struct Validation {
    rows: Vec<Row>,
    pairs: Option<Accuracy>,
    crowds: Option<Accuracy>,
    /// Measured policies that are not simulated: their estimates are not given.
    left_out: Vec<String>,
    servers: String,
    origin: Origin,
}

/// Simulates every measured policy and prints how far off that is.
pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let world = arguments.world.load("3xA100-40GB")?;
    let trace = world.read_trace(&arguments.jobs)?;
    let measured = read_table(&arguments.measured, read_measured)?;
    let (measured, left_out): (Vec<_>, Vec<_>) =
        measured.into_iter().partition(|(_, policy)| policy.estimator.is_none() || arguments.world.has_estimates());
    let left_out: Vec<String> = left_out.into_iter().map(|(run, _)| run.policy).collect();
    if !left_out.is_empty() {
        eprintln!("carma: left out, because they need --estimates: {}", left_out.join(", "));
    }
    let rows = rows(arguments, &world, &trace, &measured)?;
    let catalogue = &world.catalogue;
    let accuracy = |scored: Vec<Scored>| Accuracy { mape: mean_absolute_error(&scored) };
    let pairs = arguments.pairs.as_deref().map(|file| read_observations(file, |table| read_pairs(table, catalogue))).transpose()?;
    let pairs = pairs.map(|runs| accuracy(runs.iter().flat_map(|pair| world.interference.score_pair(catalogue, pair)).collect()));
    let crowds = arguments.crowds.as_deref().map(|file| read_observations(file, |table| read_crowds(table, catalogue))).transpose()?;
    let crowds = crowds.map(|trials| accuracy(trials.iter().map(|trial| world.interference.score_crowd(catalogue, trial)).collect()));
    let files = [("measured", Some(&arguments.measured)), ("pairs", arguments.pairs.as_ref()), ("crowds", arguments.crowds.as_ref())];
    let files = files.iter().filter_map(|(role, file)| Some((*role, file.as_ref()?.as_path())));
    let read = world.origin([("trace", arguments.jobs.as_path())].into_iter().chain(files))?;
    let origin = Origin { seeds: seeds_in_words(arguments.seeds, 0), ..read };
    let servers = world.describe(&arguments.world.knowledge("oracle", &world.catalogue)?);
    let validation = Validation { rows, pairs, crowds, left_out, servers, origin };
    if arguments.json {
        return write_json(&validation, output);
    }
    view::print(&validation, arguments.seeds, output)?;
    writeln!(output, "\n{}", wrapped(&world.caveat(&trace)))?;
    print(&validation.origin, output)
}

fn rows(arguments: &Arguments, world: &World, trace: &Trace, measured: &[(MeasuredRun, MeasuredPolicy)]) -> Result<Vec<Row>> {
    let knowledge = |policy: &MeasuredPolicy| match &policy.estimator {
        None => arguments.world.knowledge("oracle", &world.catalogue),
        Some(estimator) => arguments.world.knowledge(estimator, &world.catalogue),
    };
    let known = measured.iter().map(|(_, policy)| knowledge(policy)).collect::<Result<Vec<Knowledge>>>()?;
    for known in &known {
        world.warn_of_missing_estimates(trace, known);
    }
    let runs: Vec<(usize, u64)> = (0..measured.len()).flat_map(|row| (0..arguments.seeds).map(move |seed| (row, seed))).collect();
    let simulate = |(row, seed): &(usize, u64)| {
        let simulation = world.simulation(trace, &measured[*row].1.settings, &known[*row], *seed);
        simulation.run().map(|run| run.summary())
    };
    let summaries = simulate_all(&runs, simulate)?;
    let by_row: Vec<&[RunSummary]> = summaries.chunks_exact(arguments.seeds as usize).collect();
    let exclusive = measured.iter().position(|(run, _)| run.policy.eq_ignore_ascii_case("exclusive")).unwrap_or_default();
    let energy = spread(by_row[exclusive], |summary| summary.energy).0;
    Ok(measured.iter().zip(by_row).map(|((run, policy), summaries)| row(run, policy, summaries, energy)).collect())
}

fn row(measured: &MeasuredRun, policy: &MeasuredPolicy, summaries: &[RunSummary], exclusive_energy: f64) -> Row {
    let of = |of: fn(&RunSummary) -> f64| spread(summaries, of).0;
    let error = |simulated: f64, measured: f64| simulated / measured - 1.0;
    let energy_ratio = of(|summary| summary.energy) / exclusive_energy;
    let simulated = MeasuredRun {
        policy: measured.policy.clone(),
        makespan: of(|summary| summary.makespan),
        mean_jct: of(|summary| summary.mean_jct),
        p95_jct: of(|summary| summary.p95_jct),
        mean_execution: of(|summary| summary.mean_execution),
        oom_attempts: of(|summary| summary.oom_attempts as f64),
        energy_ratio: Some(energy_ratio),
    };
    Row {
        policy: measured.policy.clone(),
        makespan_error: error(simulated.makespan, measured.makespan),
        mean_jct_error: error(simulated.mean_jct, measured.mean_jct),
        p95_jct_error: error(simulated.p95_jct, measured.p95_jct),
        execution_error: error(simulated.mean_execution, measured.mean_execution),
        oom_difference: simulated.oom_attempts - measured.oom_attempts,
        energy_ratio_difference: measured.energy_ratio.map(|ratio| energy_ratio - ratio),
        makespan_spread: (summaries.len() > 1).then(|| spread(summaries, |summary| summary.makespan).1),
        screened: policy.screened,
        simulated,
        measured: measured.clone(),
    }
}
