//! The figures of runs, measured or simulated: both counted in the same way.

use carma_core::Seconds;
use carma_core::{mean, percentile};
use carma_manager::api::WhatIfRun;
use carma_manager::store::Joules;
use carma_sim::JobRecord;

/// The results of jobs; unfinished jobs count only for attempts.
pub(super) fn what_if_run(policy: &str, jobs: &[JobRecord], joules: Option<f64>) -> WhatIfRun {
    let first = jobs.iter().map(|job| job.submitted).min().unwrap_or_default();
    let last = jobs.iter().filter_map(|job| job.ended).max().unwrap_or(first);
    let ended = || jobs.iter().filter(|job| job.ended.is_some());
    let wait = |job: &JobRecord| Some((job.attempts.last()?.launched - job.submitted).get());
    let mut completions: Vec<f64> = ended().filter_map(JobRecord::completion).collect();
    completions.sort_unstable_by(f64::total_cmp);
    WhatIfRun {
        policy: policy.to_owned(),
        makespan: seconds((last - first).get()),
        wait: seconds(mean(&ended().filter_map(wait).collect::<Vec<_>>())),
        completion: seconds(mean(&completions)),
        completion_p95: seconds(percentile(&completions, 0.95)),
        energy: joules.map(Joules),
        out_of_memory: jobs.iter().map(JobRecord::out_of_memory).sum::<usize>() as f64,
    }
}

/// The mean of several runs of the same.
pub(super) fn mean_run(policy: &str, runs: &[WhatIfRun]) -> WhatIfRun {
    let of = |pick: fn(&WhatIfRun) -> f64| mean(&runs.iter().map(pick).collect::<Vec<_>>());
    let energies: Option<Vec<f64>> = runs.iter().map(|run| run.energy.map(|energy| energy.0)).collect();
    WhatIfRun {
        policy: policy.to_owned(),
        makespan: seconds(of(|run| run.makespan.get())),
        wait: seconds(of(|run| run.wait.get())),
        completion: seconds(of(|run| run.completion.get())),
        completion_p95: seconds(of(|run| run.completion_p95.get())),
        energy: energies.map(|energies| Joules(mean(&energies))),
        out_of_memory: of(|run| run.out_of_memory),
    }
}

fn seconds(value: f64) -> Seconds {
    Seconds::new(value).unwrap_or_default()
}
