//! A run in a few numbers.

use carma_core::Time;
use serde::Serialize;

use crate::simulation::{GpuTotals, Run};

/// What people compare runs by. Times in seconds, over jobs that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
    /// Mean of run time over time alone.
    pub mean_slowdown: f64,
    /// The largest.
    pub worst_slowdown: f64,
    /// Attempts that ran out of GPU memory.
    pub oom_attempts: usize,
    /// Attempts beyond each job's first.
    pub retries: usize,
    /// Jobs that succeeded.
    pub succeeded: usize,
    /// Jobs that ended otherwise, or never could.
    pub failed: usize,
    /// Of those, jobs that never started: they fit nowhere, or wait for what never comes.
    pub never_started: usize,
    /// Mean SMACT over all GPUs and the whole makespan.
    pub smact: f64,
    /// Mean SMOCC.
    pub smocc: f64,
    /// Mean DRAMA.
    pub drama: f64,
    /// Mean memory in use on a GPU, in MiB.
    pub memory_mib: f64,
    /// Share of time a GPU had a process on it.
    pub active: f64,
    /// Energy of all GPUs over the makespan, in joules.
    pub energy: f64,
    /// Energy times makespan.
    pub energy_delay: f64,
}

/// The arithmetic mean; zero of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// A percentile of sorted values, interpolated between neighbours; zero of nothing.
///
/// ```
/// assert_eq!(carma_sim::percentile(&[1.0, 2.0, 4.0], 0.75), 3.0);
/// ```
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let below = place.floor() as usize;
    sorted[below] + (sorted[(below + 1).min(last)] - sorted[below]) * place.fract()
}

impl Run {
    /// The run in a few numbers.
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
