//! `carma compare`: policies side by side on one trace.

mod contender;
mod suite;
mod sweep;
mod table;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use carma_core::Settings;
use carma_sim::trace::shuffle;
use carma_sim::{
    Aim, Comparison, Contender, Curve, CurvePoint, LowerBounds, Origin, PolicyOrigin, Run, RunSummary, SimulationError, Trace, ratio,
    report, spread,
};

use crate::configuration::RuleArguments;
use crate::files::write_charts;
use crate::manager::write_json;
use crate::origin::{VERSION, seeds_in_words, settings_in_a_line};
use crate::progress::simulate_all;
use crate::simulate::{EnforceArguments, SERVERS, World, WorldArguments, waiting};
use contender::Entry;
use sweep::Sweep;

/// Options that a suite sets itself.
const NOT_OF_SUITES: [&str; 20] = [
    "trace",
    "estimators",
    "config",
    "preset",
    "server",
    "mode",
    "enforce",
    "estimates",
    "memory_error",
    "utilisation_error",
    "duration_error",
    "checkpoint",
    "cached",
    "progress",
    "foreign",
    "lose",
    "shuffle",
    "sweep",
    "report",
    "svg",
];
const POLICIES: [&str; 3] = ["or-magm", "magm", "carma"];
/// An even number, since seeds come in pairs that mirror each other.
const SEEDS: u64 = 6;

/// What is compared.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  carma compare mix.csv --policies magm,carma --seeds 20 --report report.html\n  carma compare mix.csv --policies carma --sweep power.cap=150:400:50"
)]
pub(crate) struct Arguments {
    /// The trace; `carma trace analyze --help` lists the formats.
    #[arg(required_unless_present = "suite")]
    trace: Option<PathBuf>,
    /// Run the standard comparison instead: 13 traces in nine scenarios. FOLDER holds the published traces (`philly60_jobs.csv`,
    /// `carma_mix90.csv`, ...). It prints tables, or --json or --csv.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = NOT_OF_SUITES)]
    suite: Option<PathBuf>,
    /// Run only these scenarios of the suite, such as "half load,8 GPUs".
    #[arg(long, value_delimiter = ',', requires = "suite")]
    scenarios: Vec<String>,
    /// Policies, separated by commas. `exclusive` is always included. Presets and settings can follow after slashes:
    /// or-magm/aegis/no-screen, carma/queue.order=submission. `pack` shares GPUs before it uses idle ones. [default: or-magm,magm,carma;
    /// for a suite all published policies and carma]
    #[arg(long, value_delimiter = ',')]
    policies: Option<Vec<String>>,
    /// Sources of memory estimates: none, oracle (the measured peak), or columns of --estimates.
    #[arg(long, value_delimiter = ',', default_value = "oracle")]
    estimators: Vec<String>,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    world: WorldArguments,
    #[command(flatten)]
    enforce: EnforceArguments,
    /// Number of runs of each policy; seeds count from 0. Seeds 2k and 2k+1 mirror each other, so give an even number. [default: 6; for a
    /// suite 20]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Number of further runs with the jobs in random order.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    shuffle: u64,
    /// Also search for the best order of jobs, with full knowledge of all jobs: makespan, mean-jct, p95-jct or all.
    #[arg(long, value_name = "AIM", value_delimiter = ',')]
    best: Vec<Aim>,
    /// Number of orders that the search tries for each seed.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    tries: u32,
    /// Vary a setting, such as smact=0.5:0.95:0.05. Can be repeated.
    #[arg(long, value_name = "KEY=FROM:TO:STEP")]
    sweep: Vec<Sweep>,
    /// Write a report (one HTML file).
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the charts of the report as SVG files to this folder.
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Print the table as CSV.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

/// Compares, prints the table, writes the report.
pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let world = arguments.world.load(SERVERS)?;
    let Some(file) = &arguments.trace else { return run_suite(arguments, &world, output) };
    let base = arguments.enforce.apply(arguments.rules.settings()?);
    let policies = arguments.policies.clone().unwrap_or_else(|| POLICIES.map(str::to_owned).to_vec());
    let knowledge = |estimator: &str| arguments.world.knowledge(estimator, &world.catalogue);
    let mut entries = contender::entries(&policies, &arguments.estimators, &base, knowledge)?;
    let steps = steps(&arguments.sweep, &entries)?;
    entries.extend(contender::best_orders(&arguments.best, &base));
    let trace = world.read_trace(file)?;
    for entry in &entries {
        world.warn_of_missing_estimates(&trace, &entry.knowledge);
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let comparison = compare(arguments, &world, (name, &trace), &entries, &steps)?;
    if let Some(file) = &arguments.report {
        fs::write(file, report::html(&comparison)).with_context(|| format!("cannot write {}", file.display()))?;
        eprintln!("carma: wrote {}", file.display());
    }
    if let Some(folder) = &arguments.svg {
        write_charts(folder, &report::svgs(&comparison))?;
    }
    if arguments.json {
        let Comparison { trace, jobs, servers, seeds, bounds, curves, caveats, origin, .. } = &comparison;
        let runs = comparison.contenders.iter().map(|one| serde_json::json!({ "policy": one.name, "runs": one.summaries }));
        let written = serde_json::json!({
            "trace": trace, "jobs": jobs, "servers": servers, "seeds": seeds, "rows": comparison.rows(), "bounds": bounds,
            "curves": curves, "contenders": runs.collect::<Vec<_>>(), "caveats": caveats, "carma": VERSION, "origin": origin,
        });
        return write_json(&written, output);
    }
    if arguments.csv { table::write_csv(&comparison, output) } else { table::print(&comparison, output) }
}

fn run_suite(arguments: &Arguments, world: &World, output: &mut impl Write) -> Result<()> {
    let Arguments { suite: Some(folder), scenarios, policies, seeds, best, tries, json, csv, .. } = arguments else {
        bail!("give a trace, or a suite");
    };
    let form = if *json {
        suite::Form::Json
    } else if *csv {
        suite::Form::Csv
    } else {
        suite::Form::Tables
    };
    let request = suite::Request { folder, scenarios, policies: policies.as_deref(), seeds: *seeds, best, tries: *tries, form };
    suite::run(&request, world, output)
}

/// A point of a sweep, before it has run.
struct Step {
    sweep: usize,
    entry: usize,
    value: f64,
    settings: Settings,
}

/// Every value of every sweep, for every policy that shares GPUs.
fn steps(sweeps: &[Sweep], entries: &[Entry]) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for (sweep, swept) in sweeps.iter().enumerate() {
        for (entry, entered) in entries.iter().enumerate().skip(1) {
            for value in &swept.values {
                steps.push(Step { sweep, entry, value: *value, settings: swept.apply(&entered.settings, *value)? });
            }
        }
    }
    Ok(steps)
}

fn compare(arguments: &Arguments, world: &World, (name, trace): (String, &Trace), entries: &[Entry], steps: &[Step]) -> Result<Comparison> {
    let seeds = arguments.seeds.unwrap_or(SEEDS);
    let shuffled = (1..=arguments.shuffle).map(|seed| shuffle(trace, seed));
    let traces: Vec<Trace> = std::iter::once(trace.clone()).chain(shuffled).collect();
    let of_entries = entries.iter().map(|entry| (&entry.settings, &entry.knowledge));
    let of_steps = steps.iter().map(|step| (&step.settings, &entries[step.entry].knowledge));
    let subjects: Vec<_> = of_entries.chain(of_steps).collect();
    let each = traces.len() * seeds as usize;
    let runs: Vec<(usize, usize)> = (0..subjects.len()).flat_map(|subject| (0..each).map(move |run| (subject, run))).collect();
    let simulate = |(subject, run): &(usize, usize)| -> Result<(RunSummary, Option<Run>), SimulationError> {
        let (settings, knowledge) = subjects[*subject];
        let (trace, seed) = (&traces[run / seeds as usize], *run as u64 % seeds);
        let mut simulation = world.simulation(trace, settings, knowledge, seed);
        let shown = *run == 0 && *subject < entries.len();
        simulation.timeline = shown;
        let run = match entries.get(*subject).and_then(|entry| entry.search) {
            Some(aim) => simulation.best_order(aim, arguments.tries)?,
            None => simulation.run()?,
        };
        Ok((run.summary(), shown.then_some(run)))
    };
    let results = simulate_all(&runs, simulate)?;
    let (summaries, examples): (Vec<RunSummary>, Vec<Option<Run>>) = results.into_iter().unzip();
    let (contended, swept) = summaries.split_at(entries.len() * each);
    let contenders: Vec<Contender> = entries
        .iter()
        .zip(contended.chunks_exact(each))
        .zip(examples.into_iter().flatten())
        .map(|((entry, summaries), example)| Contender { name: entry.name.clone(), summaries: summaries.to_vec(), example })
        .collect();
    let curves = curves(arguments, entries, steps, &contenders[0].summaries, swept.chunks_exact(each));
    let mut caveats = vec![world.caveat(trace)];
    caveats.extend(
        contenders
            .iter()
            .flat_map(|contender| waiting(&contender.example).into_iter().map(move |why| format!("{}: {why}", contender.name))),
    );
    caveats.extend(steps.iter().zip(swept.chunks_exact(each)).filter_map(|(step, summaries)| {
        let (failed, _) = spread(summaries, |summary| summary.failed as f64);
        let (policy, key) = (&entries[step.entry].name, &arguments.sweep[step.sweep].key);
        (failed > 0.0)
            .then(|| format!("{policy} with {key} = {}: {failed:.1} jobs a run did not succeed, and are not in the means.", step.value))
    }));
    Ok(Comparison {
        trace: name,
        jobs: trace.jobs.len(),
        servers: world.describe(&entries[0].knowledge),
        seeds: seeds as usize,
        contenders,
        bounds: LowerBounds::mean(traces.iter().map(|trace| LowerBounds::of(trace, &world.catalogue, &world.servers))),
        curves,
        caveats,
        origin: origin(arguments, world, entries, seeds)?,
    })
}

fn origin(arguments: &Arguments, world: &World, entries: &[Entry], seeds: u64) -> Result<Origin> {
    let policy = |entry: &Entry| {
        let Entry { name, estimator, settings, .. } = entry;
        Ok(PolicyOrigin { name: name.clone(), estimator: estimator.clone(), settings: settings_in_a_line(settings)? })
    };
    let policies = entries.iter().map(policy).collect::<Result<_>>()?;
    let read = world.origin(arguments.trace.as_deref().map(|trace| ("trace", trace)))?;
    Ok(Origin { seeds: seeds_in_words(seeds, arguments.shuffle), policies, ..read })
}

fn curves<'a>(
    arguments: &Arguments,
    entries: &[Entry],
    steps: &[Step],
    exclusive: &[RunSummary],
    summaries: impl Iterator<Item = &'a [RunSummary]>,
) -> Vec<Curve> {
    let mut curves: Vec<(usize, usize, Curve)> = Vec::new();
    for (step, summaries) in steps.iter().zip(summaries) {
        let over = |of: fn(&RunSummary) -> f64| ratio(spread(summaries, of).0, spread(exclusive, of).0);
        let point = CurvePoint {
            value: step.value,
            makespan_ratio: over(|summary| summary.makespan),
            mean_jct_ratio: over(|summary| summary.mean_jct),
            energy_ratio: over(|summary| summary.energy),
            oom_attempts: spread(summaries, |summary| summary.oom_attempts as f64).0,
        };
        match curves.last_mut() {
            Some((sweep, entry, curve)) if (*sweep, *entry) == (step.sweep, step.entry) => curve.points.push(point),
            _ => {
                let setting = arguments.sweep[step.sweep].key.clone();
                curves.push((step.sweep, step.entry, Curve { policy: entries[step.entry].name.clone(), setting, points: vec![point] }));
            }
        }
    }
    curves.into_iter().map(|(_, _, curve)| curve).collect()
}
