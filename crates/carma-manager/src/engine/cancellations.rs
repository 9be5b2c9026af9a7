//! Cancellations of running jobs that are not on the disk yet. A user can stop a job also while nothing can be written: its signal is sent, and
//! the cancellation is recorded later.

use std::collections::BTreeMap;

use carma_core::JobId;

use crate::api::{ActionFailure, ActionResult};

/// Running jobs that are cancelled, with the user who cancelled them, until they end.
#[derive(Debug, Default)]
pub(crate) struct Cancellations(BTreeMap<JobId, String>);

impl Cancellations {
    /// Adds one. False if the job was cancelled before.
    pub(crate) fn add(&mut self, job: JobId, by: &str) -> bool {
        self.0.insert(job, by.to_owned()).is_none()
    }

    pub(crate) fn contains(&self, job: JobId) -> bool {
        self.0.contains_key(&job)
    }

    /// A job is over.
    pub(crate) fn remove(&mut self, job: JobId) {
        self.0.remove(&job);
    }

    /// All of them. They stay until their jobs are over: recording them may fail again.
    pub(crate) fn all(&self) -> BTreeMap<JobId, String> {
        self.0.clone()
    }

    /// The answer to an action that could not be written.
    pub(crate) fn not_recorded(acted: ActionResult, is_signalled: impl Fn(JobId) -> bool, reason: &str) -> ActionResult {
        let failure = |job| ActionFailure { job, reason: failure_text(is_signalled(job), reason) };
        let not_done = acted.done.into_iter().map(failure).chain(acted.not_done).collect();
        ActionResult { not_done, ..ActionResult::default() }
    }
}

fn failure_text(is_signalled: bool, reason: &str) -> String {
    if is_signalled {
        format!("it was signalled, but the cancellation is not stored yet: {reason}; cancel it again to kill it")
    } else {
        format!("nothing was changed: {reason}")
    }
}
