//! `carma simulate`: one run of a trace.

mod arguments;
mod jobs;
mod view;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use carma_sim::{LowerBounds, Origin, PolicyOrigin};

pub(crate) use arguments::{EnforceArguments, World, WorldArguments, memory_estimator};

use self::jobs::RunFacts;
pub(crate) use self::view::waiting;
use crate::configuration::ConfigArguments;
use crate::files::{create, write_to};
use crate::manager::write_json;
use crate::origin::settings_in_a_line;
use crate::progress::bar;
use carma_format::{count, wrapped};

/// Default servers: the published evaluation's server.
pub(crate) const SERVERS: &str = "4xA100-40GB";

/// What a run is made from.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  carma simulate mix.csv --policy magm --server 2x4xA100-80GB --jobs jobs.csv")]
pub(crate) struct Arguments {
    /// The trace; `carma trace analyze --help` lists the formats.
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
    /// Write the result of each job to this file: JSON if the name ends in .json, CSV otherwise. `-` prints it instead of the
    /// summary, as CSV or with --json as JSON.
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
    world.warn_of_missing_estimates(&trace, &knowledge);
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
    let policy = PolicyOrigin {
        name: settings.check()?.mapping.to_string(),
        estimator: arguments.estimator.clone(),
        settings: settings_in_a_line(&settings)?,
    };
    let seeds = arguments.seed.to_string();
    let origin = Origin { seeds, policies: vec![policy.clone()], ..world.origin([("trace", arguments.trace.as_path())])? };
    if let Some(file) = &arguments.jobs {
        let (servers, inputs) = (world.describe(&knowledge), origin.inputs_in_words());
        let facts = RunFacts { seed: arguments.seed, servers: &servers, origin: &origin, policy: &policy, inputs: &inputs };
        let lines = jobs::lines(&run, &trace, &world.catalogue, &facts);
        let json = file.extension().is_some_and(|extension| extension == "json") || file == Path::new("-") && arguments.json;
        write_to(
            file,
            output,
            |table| if json { Ok(serde_json::to_writer_pretty(table, &lines)?) } else { jobs::write_csv(&lines, table) },
        )?;
        // The table and the summary are not mixed.
        if file == Path::new("-") {
            return Ok(());
        }
    }
    let summary = run.summary();
    if arguments.json {
        let mut written = serde_json::to_value(summary)?;
        written["servers"] = world.describe(&knowledge).into();
        written["never_ended"] = serde_json::to_value(waiting(&run))?;
        written["origin"] = serde_json::to_value(&origin)?;
        return write_json(&written, output);
    }
    let config = settings.check()?;
    writeln!(
        output,
        "{} on {} under {} ({} preset), estimator {}, seed {}\n",
        count(trace.jobs.len(), "job"),
        world.describe(&knowledge),
        config.mapping,
        config.preset.name(),
        arguments.estimator,
        arguments.seed
    )?;
    view::print(&summary, LowerBounds::of(&trace, &world.catalogue, &world.servers), output)?;
    view::print_users(&run.by_user(&trace), output)?;
    waiting(&run).iter().try_for_each(|sentence| writeln!(output, "\n{}", wrapped(sentence)))?;
    Ok(writeln!(output, "\n{}", wrapped(&world.caveat(&trace)))?)
}
