//! `carma simulate`: one run of a trace.

mod arguments;
mod jobs;
mod view;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use carma_sim::LowerBounds;

pub(crate) use arguments::{EnforceArguments, World, WorldArguments, memory_estimator};

use self::jobs::RunOrigin;
use crate::configuration::ConfigArguments;
use crate::files::create;
use crate::manager::write_json;
use crate::origin::{VERSION, command, settings_in_a_line};
use crate::progress::bar;
use carma_format::wrapped;

/// Default servers: the published evaluation's server.
pub(crate) const SERVERS: &str = "4xA100-40GB";

/// What a run is made from.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  carma simulate mix.csv --policy magm --server 2x4xA100-80GB --jobs jobs.csv")]
pub(crate) struct Arguments {
    /// The trace; `carma trace --help` lists the formats.
    trace: PathBuf,
    #[command(flatten)]
    rules: ConfigArguments,
    /// Source of memory estimates: none, oracle (the measured peak), or a column of --estimates.
    #[arg(long, default_value = "oracle")]
    estimator: String,
    #[command(flatten)]
    world: WorldArguments,
    #[command(flatten)]
    enforce: EnforceArguments,
    /// Seed of the random numbers. The same seed gives the same run.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write the result of each job to this file: JSON if the name ends in .json, CSV otherwise.
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
    /// Write the event log of the scheduler to this file. `carma replay-log` replays it.
    #[arg(long, value_name = "FILE")]
    event_log: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Simulates, and prints the results.
pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let settings = arguments.enforce.apply(arguments.rules.settings()?);
    let world = arguments.world.load(SERVERS)?;
    let knowledge = arguments.world.knowledge(&arguments.estimator, &world.catalogue)?;
    let trace = world.read_trace(&arguments.trace)?;
    let simulation = world.simulation(&trace, &settings, &knowledge, arguments.seed);
    let bar = bar(trace.jobs.len(), "simulating");
    let over = &mut || bar.step();
    let run = match &arguments.event_log {
        None => simulation.run_watched(over)?,
        Some(file) => {
            let mut log = create(file)?;
            let run = simulation.run_logged(&mut log, over)?;
            log.flush().with_context(|| format!("cannot write {}", file.display()))?;
            run
        }
    };
    drop(bar);
    let origin = RunOrigin {
        estimator: arguments.estimator.clone(),
        seed: arguments.seed,
        settings: settings_in_a_line(&settings)?,
        servers: world.describe(&knowledge),
        carma: VERSION.to_owned(),
        command: command(),
    };
    if let Some(file) = &arguments.jobs {
        let mut table = create(file)?;
        let lines = jobs::lines(&run, &trace, &world.catalogue, &origin);
        if file.extension().is_some_and(|extension| extension == "json") {
            serde_json::to_writer_pretty(&mut table, &lines)?;
        } else {
            jobs::write_csv(&lines, &mut table)?;
        }
        table.flush().with_context(|| format!("cannot write {}", file.display()))?;
    }
    let summary = run.summary();
    if arguments.json {
        let mut written = serde_json::to_value(summary)?;
        written["origin"] = serde_json::to_value(&origin)?;
        return write_json(&written, output);
    }
    let config = settings.check()?;
    writeln!(
        output,
        "{} jobs on {} under {} ({} preset), estimator {}, seed {}\n",
        trace.jobs.len(),
        world.describe(&knowledge),
        config.mapping,
        config.preset.name(),
        arguments.estimator,
        arguments.seed
    )?;
    view::print(&summary, LowerBounds::of(&trace, &world.catalogue, &world.servers), output)?;
    view::print_users(&run.by_user(&trace), output)?;
    Ok(writeln!(output, "\n{}", wrapped(&world.caveat(&trace)))?)
}
