//! A trace's jobs as submissions.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use carma_core::{MiB, Seconds};
use carma_manager::api::Submission;
use carma_manager::request::{JobCommand, JobRequest};
use carma_manager::submission::{Caller, Source};
use carma_sim::{Catalogue, Estimator, Trace, TraceJob};

/// A job, and the time of its submission.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    /// After the first, in the trace's time.
    pub(crate) after: Seconds,
    /// The request.
    pub(crate) submit: Submission,
}

/// How jobs of a trace become training-like processes on emulated GPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Training<'a> {
    /// The trace's workloads.
    pub(crate) catalogue: &'a Catalogue,
    /// Files it was read from, besides the default ones.
    pub(crate) files: &'a [PathBuf],
    /// Source of the declared memory.
    pub(crate) estimator: &'a Estimator,
    /// The same seed, the same run times and start-ups.
    pub(crate) seed: u64,
}

impl Training<'_> {
    /// All jobs of a trace.
    pub(crate) fn plan(&self, trace: &Trace, caller: &Caller) -> Result<Vec<Planned>> {
        let program = env::current_exe().context("cannot find the path of this program")?;
        let program = program.to_str().context("the path of this program is not UTF-8")?;
        let first = trace.jobs.first().map_or(0.0, |job| job.submitted.get());
        let planned = |(seed, job): (u64, &TraceJob)| {
            let after = Seconds::new(job.submitted.get() - first)?;
            Ok(Planned { after, submit: self.request(program, job, seed, caller)?.into() })
        };
        (self.seed..).zip(&trace.jobs).map(planned).collect()
    }

    fn request(&self, program: &str, job: &TraceJob, seed: u64, caller: &Caller) -> Result<JobRequest> {
        let id = job.workload.with_context(|| format!("job {} of the trace names no workload", job.name))?;
        let workload = self.catalogue.get(id);
        let ranks = workload.gpus();
        ensure!(ranks == job.gpus, "job {} asks for {} GPUs, and {} runs on {ranks}", job.name, job.gpus, workload.name);
        let mut command: Vec<String> = [program, "emu", "train", "--workload", &workload.name].map(str::to_owned).to_vec();
        command.extend(["--seed".to_owned(), seed.to_string()]);
        command.extend(job.duration.iter().flat_map(|seconds| ["--seconds".to_owned(), seconds.get().to_string()]));
        for file in self.files {
            let file = std::path::absolute(file).with_context(|| format!("{} is not a file", file.display()))?;
            command.extend(["--catalogue".to_owned(), file.display().to_string()]);
        }
        let mut request = JobRequest::new(JobCommand::Program(command), &caller.directory);
        request.environment.clone_from(&caller.environment);
        request.name = Some(workload.name.clone());
        request.resources.gpus = job.gpus;
        request.resources.memory = match self.estimator {
            Estimator::None => None,
            Estimator::Oracle => workload.ranks.iter().map(|rank| rank.peak).max(),
            Estimator::Table(answers) | Estimator::Declared(answers) => answers.get(id).filter(|memory| *memory > MiB::ZERO),
        };
        Ok(request)
    }
}

/// The command of a task file, as it is.
pub(super) fn task_file(file: &Path, caller: &Caller) -> Result<Vec<Planned>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let source = Source::Text { name: &file.display().to_string(), text: &text, arguments: Vec::new() };
    let (submissions, notes) = source.submissions(&[], caller)?;
    for note in notes {
        eprintln!("carma: {note}");
    }
    Ok(submissions.into_iter().map(|submission| Planned { after: Seconds::ZERO, submit: submission.into_valid().into_sent() }).collect())
}
