//! The few numbers that compare runs, measured or simulated.

use carma_core::{Outcome, Seconds, Time};
use carma_core::{mean, percentile};
use carma_manager::api::{AttemptDetail, JobDetail};
use carma_manager::store::UnixMillis;
use carma_sim::{AttemptRecord, JobRecord, RunSummary};
use serde::Serialize;

use super::follow::Replayed;

/// The figures of a run. Times are in seconds, over jobs that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Figures {
    /// From the first submission to the last end.
    pub(crate) makespan: f64,
    /// Mean time spent waiting.
    pub(crate) mean_wait: f64,
    /// Mean time spent running, failed attempts included.
    pub(crate) mean_execution: f64,
    /// Mean time from submission to end.
    pub(crate) mean_jct: f64,
    /// Its 95th percentile.
    pub(crate) p95_jct: f64,
    /// Of all GPUs over the makespan, in joules.
    pub(crate) energy: Option<f64>,
    /// Attempts that ran out of GPU memory.
    pub(crate) oom_attempts: f64,
    /// Jobs that did not succeed.
    pub(crate) failed: f64,
}

impl From<&RunSummary> for Figures {
    fn from(summary: &RunSummary) -> Self {
        Self {
            makespan: summary.makespan,
            mean_wait: summary.mean_wait,
            mean_execution: summary.mean_execution,
            mean_jct: summary.mean_jct,
            p95_jct: summary.p95_jct,
            energy: Some(summary.energy),
            oom_attempts: summary.oom_attempts as f64,
            failed: summary.failed as f64,
        }
    }
}

impl From<&Replayed> for Figures {
    fn from(Replayed { jobs, joules }: &Replayed) -> Self {
        let records: Vec<JobRecord> = jobs.iter().map(record).collect();
        let first = records.iter().map(|job| job.submitted).min().unwrap_or_default();
        let last = records.iter().filter_map(|job| job.ended).max().unwrap_or_default();
        let succeeded: Vec<&JobRecord> = records.iter().filter(|job| job.outcome.as_ref().is_some_and(Outcome::succeeded)).collect();
        let mut completions: Vec<f64> = succeeded.iter().filter_map(|job| job.completion()).collect();
        completions.sort_unstable_by(f64::total_cmp);
        Self {
            makespan: (last - first).get(),
            mean_wait: mean(&succeeded.iter().filter_map(|job| job.waiting()).collect::<Vec<_>>()),
            mean_execution: mean(&succeeded.iter().map(|job| job.execution()).collect::<Vec<_>>()),
            mean_jct: mean(&completions),
            p95_jct: percentile(&completions, 0.95),
            energy: *joules,
            oom_attempts: records.iter().map(JobRecord::out_of_memory).sum::<usize>() as f64,
            failed: (records.len() - succeeded.len()) as f64,
        }
    }
}

impl Figures {
    /// The mean of several runs of the same.
    pub(crate) fn mean(runs: &[Self]) -> Self {
        Self::folded(runs, |values| mean(&values.collect::<Vec<_>>()))
    }

    /// Each figure of several runs made into one.
    pub(crate) fn folded(runs: &[Self], fold: impl Fn(&mut dyn Iterator<Item = f64>) -> f64) -> Self {
        let of = |pick: fn(&Self) -> f64| fold(&mut runs.iter().map(pick));
        let energies: Option<Vec<f64>> = runs.iter().map(|run| run.energy).collect();
        Self {
            makespan: of(|run| run.makespan),
            mean_wait: of(|run| run.mean_wait),
            mean_execution: of(|run| run.mean_execution),
            mean_jct: of(|run| run.mean_jct),
            p95_jct: of(|run| run.p95_jct),
            energy: energies.map(|energies| fold(&mut energies.into_iter())),
            oom_attempts: of(|run| run.oom_attempts),
            failed: of(|run| run.failed),
        }
    }
}

/// A job as the simulator would have recorded it. Its time alone and its GPUs are not used.
pub(crate) fn record(job: &JobDetail) -> JobRecord {
    let attempt = |attempt: &AttemptDetail| AttemptRecord {
        launched: time(attempt.launched),
        ended: attempt.ended.map(time),
        gpus: Vec::new(),
        verdict: attempt.verdict.clone(),
        victim: false,
    };
    JobRecord {
        submitted: time(job.submitted),
        alone: 0.0,
        attempts: job.attempts.iter().map(attempt).collect(),
        ended: job.ended.map(time),
        outcome: job.outcome().cloned(),
        waits_for: None,
    }
}

fn time(moment: UnixMillis) -> Time {
    Time::ZERO + Seconds::new(moment.0 as f64 / 1000.0).unwrap_or_default()
}
