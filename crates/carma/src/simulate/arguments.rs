//! The input of a simulation: the trace, the servers, and the scheduler's knowledge.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use carma_core::{Choice, EnforceSettings, Enforcement, Settings};
use carma_format::count;
use carma_sim::trace::{DurationRule, ReadLimits, map};
use carma_sim::{
    Catalogue, Disturbance, Estimates, Estimator, Extrapolated, InterferenceModel, Knowledge, Origin, Physics, Servers, Sharing,
    Simulation, Trace,
};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::catalogue::CatalogueArguments;
use crate::files::{read_table, report_skipped};
use crate::origin::origin;

/// Flags that describe the simulated servers and jobs.
#[derive(Debug, Args)]
pub(crate) struct WorldArguments {
    /// The simulated servers: 4xA100-40GB is one server with four GPUs, 312x8xV100-32GB is 312 servers. Separate kinds of servers by
    /// commas. [default: 4xA100-40GB; for validate 3xA100-40GB, where the published runs were measured]
    #[arg(long)]
    server: Option<Servers>,
    /// How jobs share a GPU: streams, mps, mig-1g, mig-2g, mig-3g, mig-4g or mig-7g.
    #[arg(long, default_value = "streams")]
    mode: Sharing,
    #[command(flatten)]
    catalogue: CatalogueArguments,
    /// Use the interference constants in this file, written by `carma calibrate`.
    #[arg(long, value_name = "FILE")]
    interference: Option<PathBuf>,
    /// A CSV file with memory estimates in MiB: a column `workload` (or `task`), and one column per estimator, named after it or with
    /// `_mib` appended.
    #[arg(long, value_name = "FILE")]
    estimates: Option<PathBuf>,
    /// Relative error of the memory estimates.
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    memory_error: f64,
    /// Relative error of the utilisation estimates.
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    utilisation_error: f64,
    /// Relative error of the run time estimates.
    #[arg(long, default_value_t = DEFAULT_DURATION_ERROR, value_parser = share)]
    duration_error: f64,
    /// Share of jobs that can checkpoint on request. Time slices and corrections need such jobs.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = part)]
    checkpoint: f64,
    /// Share of jobs that report their progress. The scheduler learns interference from them.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = part)]
    progress: f64,
    /// Share of its memory that a process can do without on a full GPU, because PyTorch frees its cache before it fails.
    #[arg(long, value_name = "SHARE", default_value_t = Physics::default().cached, value_parser = part)]
    cached: f64,
    /// A process that CARMA does not manage, such as gpu=0,from=100,until=2000,memory=8000,smact=0.5. Can be repeated.
    #[arg(long, value_name = "WHAT", value_parser = Disturbance::foreign)]
    foreign: Vec<Disturbance>,
    /// A GPU that fails, such as gpu=2,from=500,until=900. Can be repeated.
    #[arg(long, value_name = "WHAT", value_parser = Disturbance::loss)]
    lose: Vec<Disturbance>,
}

/// The flag about memory limits.
#[derive(Debug, Args)]
pub(crate) struct EnforceArguments {
    /// How strictly the driver keeps jobs to their reserved memory, as the key
    /// enforce.memory. [default: off, as drivers before 615]
    #[arg(long, value_name = "HOW", value_parser = enforcement())]
    enforce: Option<Enforcement>,
}

/// Default error of expected durations.
const DEFAULT_DURATION_ERROR: f64 = 0.3;

fn share(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if (0.0..=2.0).contains(&value) { Ok(value) } else { Err("give a share from 0 to 2".to_owned()) }
}

fn part(text: &str) -> Result<f64, String> {
    share(text).and_then(|value| if value <= 1.0 { Ok(value) } else { Err("give a share from 0 to 1".to_owned()) })
}

/// A source of memory estimates by name: `none`, `oracle`, or a column of a file.
pub(crate) fn memory_estimator(name: &str, estimates: Option<&Path>, catalogue: &Catalogue) -> Result<Estimator> {
    Ok(match (name, estimates) {
        ("none", _) => Estimator::None,
        ("oracle", _) => Estimator::Oracle,
        (other, None) => bail!("unknown estimator {other:?}: give none, oracle, or a column of the file that --estimates names"),
        (other, Some(file)) => {
            let estimates = read_table(file, |table| Estimates::read(table, other, catalogue))?;
            warn(file, "rows of unknown workloads are not used", estimates.unknown());
            Estimator::Table(estimates)
        }
    })
}

/// Prints a warning about these names of a file, the first of them.
fn warn(file: &Path, problem: &str, names: &BTreeSet<String>) {
    const MOST: usize = 5;
    // Several policies read the same file.
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if names.is_empty() {
        return;
    }
    let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
    let first: Vec<&str> = names.iter().map(String::as_str).take(MOST).collect();
    let text = format!("carma: {}: {problem}: {}{more}", file.display(), first.join(", "));
    if SAID.lock().is_ok_and(|mut said| said.insert(text.clone())) {
        eprintln!("{text}");
    }
}

/// The common input of all runs.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) catalogue: Catalogue,
    pub(crate) interference: InterferenceModel,
    pub(crate) servers: Servers,
    sharing: Sharing,
    physics: Physics,
    disturbances: Vec<Disturbance>,
    /// The files that were read, by what they hold.
    files: Vec<(&'static str, PathBuf)>,
}

fn enforcement() -> impl TypedValueParser<Value = Enforcement> {
    PossibleValuesParser::new(Enforcement::WORDS).try_map(|word| serde_json::from_value(word.into()))
}

impl EnforceArguments {
    /// The rules, with what drivers enforce.
    pub(crate) fn apply(&self, rules: Settings) -> Settings {
        let Some(memory) = self.enforce else { return rules };
        Settings { enforce: Some(EnforceSettings { memory: Some(memory), ..rules.enforce.unwrap_or_default() }), ..rules }
    }
}

impl WorldArguments {
    /// Reads the named files; uses these servers if none are given.
    pub(crate) fn load(&self, default_servers: &str) -> Result<World> {
        let interference = match &self.interference {
            None => InterferenceModel::shipped(),
            Some(file) => {
                let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
                InterferenceModel::parse(&text).with_context(|| format!("{} holds no interference constants", file.display()))?
            }
        };
        let disturbances = self.foreign.iter().chain(&self.lose).copied().collect();
        let servers = self.server.clone().map_or_else(|| default_servers.parse(), Ok)?;
        let physics = Physics { cached: self.cached, ..Physics::default() };
        let catalogues = self.catalogue.read_files().into_iter().map(|file| ("catalogue", file));
        let others = [("interference", &self.interference), ("estimates", &self.estimates)];
        let others = others.into_iter().filter_map(|(role, file)| Some((role, file.clone()?)));
        let files = catalogues.chain(others).collect();
        Ok(World { catalogue: self.catalogue.load()?, interference, servers, sharing: self.mode, physics, disturbances, files })
    }

    /// Whether a table of estimates is given.
    pub(crate) const fn has_estimates(&self) -> bool {
        self.estimates.is_some()
    }

    /// The scheduler's knowledge by estimator: `none`, `oracle`, or a column of the estimates.
    pub(crate) fn knowledge(&self, estimator: &str, catalogue: &Catalogue) -> Result<Knowledge> {
        Ok(Knowledge {
            memory: memory_estimator(estimator, self.estimates.as_deref(), catalogue)?,
            memory_error: self.memory_error,
            utilisation_error: self.utilisation_error,
            duration_error: Some(self.duration_error),
            checkpoint: self.checkpoint,
            progress: self.progress,
            ..Knowledge::default()
        })
    }
}

impl World {
    /// Version, command and files of a result: the given ones, and those of the world.
    pub(crate) fn origin<'a>(&'a self, files: impl IntoIterator<Item = (&'a str, &'a Path)>) -> Result<Origin> {
        origin(files.into_iter().chain(self.files.iter().map(|(role, file)| (*role, file.as_path()))))
    }

    /// Warns of workloads of the trace that a table of estimates lacks: nothing is known of the memory of their jobs.
    pub(crate) fn warn_of_missing_estimates(&self, trace: &Trace, knowledge: &Knowledge) {
        let (Estimator::Table(estimates), Some((_, file))) = (&knowledge.memory, self.files.iter().find(|(role, _)| *role == "estimates"))
        else {
            return;
        };
        let workloads = trace.jobs.iter().filter_map(|job| job.workload).filter(|workload| estimates.get(*workload).is_none());
        let names = workloads.map(|workload| self.catalogue.get(workload).name.clone()).collect();
        warn(file, "no estimate, so jobs of these workloads are of unknown need", &names);
    }

    /// Reads a trace; jobs with only times are given workloads.
    pub(crate) fn read_trace(&self, file: &Path) -> Result<Trace> {
        let trace = Trace::read(file, &self.catalogue, &ReadLimits::default())?;
        report_skipped(&trace);
        let unmapped = trace.jobs.iter().filter(|job| job.workload.is_none()).count();
        if unmapped == 0 {
            return Ok(trace);
        }
        let verb = if unmapped == 1 { "names no workload and was" } else { "name no workload and were" };
        eprintln!("carma: {} {verb} given one, as by carma trace map", count(unmapped, "job"));
        Ok(map(&trace, &self.catalogue, 0, DurationRule::Own))
    }

    /// A run with the defaults and these servers and jobs.
    pub(crate) fn simulation<'a>(
        &'a self,
        trace: &'a Trace,
        settings: &'a Settings,
        knowledge: &'a Knowledge,
        seed: u64,
    ) -> Simulation<'a> {
        Simulation {
            sharing: self.sharing,
            physics: self.physics.clone(),
            disturbances: &self.disturbances,
            seed,
            ..Simulation::new((&self.catalogue, &self.interference), trace, &self.servers, settings, knowledge)
        }
    }

    /// The caveat beside every figure.
    pub(crate) fn caveat(&self, trace: &Trace) -> String {
        let Extrapolated { workloads, families } = Extrapolated::of(trace, &self.catalogue, &self.interference);
        format!(
            "Simulated. {:.0} % of the GPU-seconds are of workloads in no measured pair ({:.0} % of model families in none): their interference is \
             extrapolated, from counters and from their family where that was measured.",
            100.0 * workloads,
            100.0 * families
        )
    }

    /// The servers, how they are shared, and other settings that are not default.
    pub(crate) fn describe(&self, knowledge: &Knowledge) -> String {
        let nonzero = |what: &str, size: f64| (size > 0.0).then(|| format!("{what} error {size}"));
        let disturbances = (!self.disturbances.is_empty()).then(|| format!("{} disturbances", self.disturbances.len()));
        let sharing = (self.sharing != Sharing::Streams).then(|| self.sharing.to_string());
        let parts = [
            Some(self.servers.to_string()),
            sharing,
            nonzero("memory", knowledge.memory_error),
            nonzero("utilisation", knowledge.utilisation_error),
            nonzero(
                "duration",
                knowledge.duration_error.filter(|error| error.to_bits() != DEFAULT_DURATION_ERROR.to_bits()).unwrap_or(0.0),
            ),
            (knowledge.checkpoint > 0.0).then(|| format!("{} % of jobs can checkpoint", 100.0 * knowledge.checkpoint)),
            (knowledge.progress > 0.0).then(|| format!("{} % of jobs tell their progress", 100.0 * knowledge.progress)),
            (self.physics != Physics::default()).then(|| format!("{} % of memory is cache", 100.0 * self.physics.cached)),
            disturbances,
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}
