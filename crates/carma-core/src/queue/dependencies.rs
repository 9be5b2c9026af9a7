//! Which jobs wait for which others.

use std::collections::BTreeMap;

use crate::JobId;
use crate::job::{Condition, Dependency, Job, Outcome};

/// The jobs that wait for each job.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Dependents {
    of: BTreeMap<JobId, Vec<JobId>>,
}

/// What another job's end means for a job that waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DependencyResult {
    /// Nothing it waited for is left.
    Ready,
    /// It waits for others still.
    Waiting,
    /// It can never run.
    Never,
}

impl Dependents {
    pub(crate) fn add(&mut self, job: JobId, on: &[Dependency]) {
        for dependency in on {
            self.of.entry(dependency.job).or_default().push(job);
        }
    }

    /// Takes out all that waited for a job that has ended.
    pub(crate) fn take(&mut self, ended: JobId) -> Vec<JobId> {
        self.of.remove(&ended).unwrap_or_default()
    }

    /// Whether another job waits for this one.
    pub(crate) fn has(&self, job: JobId) -> bool {
        self.of.contains_key(&job)
    }
}

impl Dependency {
    /// Whether this end is the one that was waited for.
    pub(crate) fn is_met_by(&self, outcome: &Outcome) -> bool {
        self.condition == Condition::Any || outcome.succeeded()
    }
}

impl Job {
    /// Notes that a job it waits for has ended.
    pub(crate) fn settle(&mut self, ended: JobId, outcome: &Outcome) -> DependencyResult {
        if self.unmet.iter().any(|dependency| dependency.job == ended && !dependency.is_met_by(outcome)) {
            return DependencyResult::Never;
        }
        self.unmet.retain(|dependency| dependency.job != ended);
        if self.unmet.is_empty() { DependencyResult::Ready } else { DependencyResult::Waiting }
    }
}
