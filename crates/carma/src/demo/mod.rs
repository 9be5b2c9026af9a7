//! `carma demo`: a built-in trace scheduled with one job a GPU and with sharing, side by side.

mod view;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use carma_core::{Config, JobId, MiB, Settings, Time};
use carma_sim::trace::ReadLimits;
use carma_sim::{Catalogue, Estimates, Estimator, InterferenceModel, JobRecord, Knowledge, Run, Servers, Simulation, Trace};

use crate::configuration::ConfigArguments;
use crate::files::create;
use view::Why;

/// What the demo is run with.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    rules: ConfigArguments,
    /// How many A100-40GB there are.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=64))]
    gpus: u16,
    /// Write the event log of the sharing run to this file; `carma replay-log` replays it.
    #[arg(long, value_name = "FILE")]
    event_log: Option<PathBuf>,
}

/// The lab of the demo.
struct Lab {
    catalogue: Catalogue,
    interference: InterferenceModel,
    trace: Trace,
    servers: Servers,
    knowledge: Knowledge,
}

impl Lab {
    fn new(gpus: u16) -> Result<Self> {
        let catalogue = Catalogue::shipped();
        let trace = Trace::parse("afternoon.csv", include_str!("afternoon.csv").as_bytes(), &catalogue, &ReadLimits::default())?;
        // A good estimator, which is wrong about one workload by far: that one runs out of memory and comes back.
        let estimate = |workload: &carma_sim::Workload| {
            let peak = workload.ranks.iter().map(|rank| rank.peak.0).max().unwrap_or_default();
            MiB(if workload.name.starts_with("llama3") { peak / 5 } else { peak + peak / 20 })
        };
        let estimates = catalogue.iter().map(|(id, workload)| (id, estimate(workload))).collect::<Estimates>();
        let knowledge = Knowledge { memory: Estimator::Table(estimates), ..Knowledge::default() };
        let servers = format!("{gpus}xA100-40GB").parse()?;
        Ok(Self { interference: InterferenceModel::shipped(), trace, servers, knowledge, catalogue })
    }

    /// Schedules the afternoon by these rules, and writes down what the scheduler hears and decides.
    fn run(&self, settings: &Settings, log: impl Write) -> Result<Run> {
        let models = (&self.catalogue, &self.interference);
        let simulation = Simulation::new(models, &self.trace, &self.servers, settings, &self.knowledge);
        Ok(Simulation { timeline: true, ..simulation }.run_logged(log)?)
    }

    fn workload(&self, job: usize) -> &str {
        self.trace.jobs[job].workload.map_or("", |workload| &self.catalogue.get(workload).name)
    }

    /// Why a job that waited did so, as the scheduler would have said right after it was submitted: the log is replayed up to there.
    fn why(&self, run: &Run, log: &[u8]) -> Result<Option<Why>> {
        let waited = |job: &JobRecord| job.submitted > Time::from_secs(300) && job.waiting().is_some_and(|seconds| seconds > 60.0);
        let Some(job) = run.jobs.iter().position(waited) else { return Ok(None) };
        let id = JobId(job as u64 + 1);
        let submission = format!("\"event\":\"job_submitted\",\"id\":{}", id.0);
        let text = std::str::from_utf8(log).context("the event log is text")?;
        let Some(at) = text.find(&submission) else { return Ok(None) };
        let end = text[at..].find('\n').map_or(text.len(), |line| at + line + 1);
        let (_, scheduler) = carma_core::replay(&log[..end])?;
        let second = run.jobs[job].submitted.get();
        Ok(Some(Why { second, workload: self.workload(job).to_owned(), explanation: scheduler.explain(id)?.to_string() }))
    }
}

/// Runs the trace twice and prints both schedules.
pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let sharing = arguments.rules.settings()?;
    let exclusive = Settings { policy: Some("exclusive".to_owned()), ..sharing.clone() };
    let lab = Lab::new(arguments.gpus)?;
    let mut log = Vec::new();
    let alone = lab.run(&exclusive, std::io::sink())?;
    let shared = lab.run(&sharing, &mut log)?;
    if let Some(file) = &arguments.event_log {
        let mut copy = create(file)?;
        copy.write_all(&log).and_then(|()| copy.flush()).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let Config { preset, mapping, .. } = sharing.check()?;
    let names = ["exclusive".to_owned(), format!("{mapping} ({} preset)", preset.name())];
    let why = lab.why(&shared, &log)?;
    view::print(&names, &[alone, shared], |job| lab.workload(job), why.as_ref(), output)
}
