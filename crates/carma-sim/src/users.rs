//! Users of a trace: their ids for the scheduler, and results per user.

use std::collections::BTreeMap;

use carma_core::UserId;
use serde::Serialize;

use crate::simulation::{JobRecord, Run};
use crate::trace::{Trace, TraceJob};
use carma_core::{mean, percentile};

impl Trace {
    /// The user of each job: numbered from 1 in order of appearance; jobs without a user have user 0.
    pub fn users<'a>(&'a self) -> Vec<UserId> {
        let mut numbers: BTreeMap<&str, UserId> = BTreeMap::new();
        let number = |job: &'a TraceJob| {
            let Some(owner) = &job.owner else { return UserId(0) };
            let next = UserId(numbers.len() as u32 + 1);
            *numbers.entry(owner.as_str()).or_insert(next)
        };
        self.jobs.iter().map(number).collect()
    }
}

/// Results of one user's jobs. Times in seconds, over jobs that succeeded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UserSummary {
    /// The user; empty for jobs without one.
    pub user: String,
    /// Jobs that succeeded.
    pub jobs: usize,
    /// Mean time spent waiting.
    pub mean_wait: f64,
    /// Mean time from submission to end.
    pub mean_jct: f64,
    /// Its 95th percentile.
    pub p95_jct: f64,
    /// Mean slowdown: run time over time alone.
    pub mean_slowdown: f64,
}

impl Run {
    /// Results per user of the trace.
    pub fn by_user(&self, trace: &Trace) -> Vec<UserSummary> {
        let mut jobs: BTreeMap<&str, Vec<&JobRecord>> = BTreeMap::new();
        for (record, job) in self.jobs.iter().zip(&trace.jobs).filter(|(record, _)| record.slowdown().is_some()) {
            jobs.entry(job.owner.as_deref().unwrap_or_default()).or_default().push(record);
        }
        let summary = |(user, records): (&str, Vec<&JobRecord>)| {
            let gather = |of: fn(&JobRecord) -> Option<f64>| records.iter().filter_map(|record| of(record)).collect::<Vec<f64>>();
            let mut completions = gather(JobRecord::completion);
            completions.sort_unstable_by(f64::total_cmp);
            UserSummary {
                user: user.to_owned(),
                jobs: records.len(),
                mean_wait: mean(&gather(JobRecord::waiting)),
                mean_jct: mean(&completions),
                p95_jct: percentile(&completions, 0.95),
                mean_slowdown: mean(&gather(JobRecord::slowdown)),
            }
        };
        jobs.into_iter().map(summary).collect()
    }
}
