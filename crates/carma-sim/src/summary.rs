//! Summary of a run.

use carma_core::{Time, mean, percentile};
use serde::Serialize;

use crate::simulation::{GpuTotals, Run};

/// Metrics to compare runs by. Times are in seconds, over jobs that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct RunSummary {
    /// From the first submission to the last end.
    pub makespan: f64,
    /// Mean time spent waiting.
    pub mean_wait: f64,
    /// Mean time spent running, failed attempts included.
    pub mean_execution: f64,
    /// Mean time from submission to end.
    pub mean_jct: f64,
    /// Its median.
    pub p50_jct: f64,
    /// Its 95th percentile.
    pub p95_jct: f64,
    /// Mean slowdown: run time over time alone.
    pub mean_slowdown: f64,
    /// Largest slowdown.
    pub worst_slowdown: f64,
    /// Attempts that ran out of GPU memory.
    pub oom_attempts: usize,
    /// Of these, attempts that had kept to their reservation.
    pub oom_victims: usize,
    /// Attempts beyond each job's first.
    pub retries: usize,
    /// Jobs that succeeded.
    pub succeeded: usize,
    /// Jobs that did not succeed.
    pub failed: usize,
    /// Failed jobs that never started: no GPU has room, or they wait forever.
    pub never_started: usize,
    /// Mean SMACT over all GPUs and the whole makespan.
    pub smact: f64,
    /// Mean SMOCC.
    pub smocc: f64,
    /// Mean DRAMA.
    pub drama: f64,
    /// Mean memory in use on a GPU, in MiB.
    pub memory_mib: f64,
    /// Share of time in which a GPU has at least one process.
    pub active: f64,
    /// Energy of all GPUs over the makespan, in joules.
    pub energy: f64,
    /// Energy times makespan.
    pub energy_delay: f64,
}

impl Run {
    /// Summarizes the run.
    pub fn summary(&self) -> RunSummary {
        let first = self.jobs.iter().map(|job| job.submitted).min().unwrap_or(Time::ZERO);
        let makespan = (self.ended - first).get();
        let succeeded: Vec<_> = self.jobs.iter().filter(|job| job.slowdown().is_some()).collect();
        let mut completions: Vec<f64> = succeeded.iter().filter_map(|job| job.completion()).collect();
        completions.sort_unstable_by(f64::total_cmp);
        let waits: Vec<f64> = succeeded.iter().filter_map(|job| job.waiting()).collect();
        let executions: Vec<f64> = succeeded.iter().map(|job| job.execution()).collect();
        let slowdowns: Vec<f64> = succeeded.iter().filter_map(|job| job.slowdown()).collect();
        let total = |of: fn(&GpuTotals) -> f64| self.gpus.iter().map(|gpu| of(&gpu.totals)).sum::<f64>();
        let gpu_seconds = (makespan * self.gpus.len() as f64).max(f64::MIN_POSITIVE);
        let energy = total(|gpu| gpu.joules);
        RunSummary {
            makespan,
            mean_wait: mean(&waits),
            mean_execution: mean(&executions),
            mean_jct: mean(&completions),
            p50_jct: percentile(&completions, 0.50),
            p95_jct: percentile(&completions, 0.95),
            mean_slowdown: mean(&slowdowns),
            worst_slowdown: slowdowns.iter().copied().fold(0.0, f64::max),
            oom_victims: self.jobs.iter().flat_map(|job| &job.attempts).filter(|attempt| attempt.victim).count(),
            oom_attempts: self.jobs.iter().map(crate::JobRecord::out_of_memory).sum(),
            retries: self.jobs.iter().map(|job| job.attempts.len().saturating_sub(1)).sum(),
            succeeded: succeeded.len(),
            failed: self.jobs.len() - succeeded.len(),
            never_started: self.jobs.iter().filter(|job| job.attempts.is_empty()).count(),
            smact: total(|gpu| gpu.smact) / gpu_seconds,
            smocc: total(|gpu| gpu.smocc) / gpu_seconds,
            drama: total(|gpu| gpu.drama) / gpu_seconds,
            memory_mib: total(|gpu| gpu.memory) / gpu_seconds,
            active: total(|gpu| gpu.active) / gpu_seconds,
            energy,
            energy_delay: energy * makespan,
        }
    }
}
