//! Waits for the end of a job: the store is read after each update of the job, and now and then in case an update was missed.

use std::time::Duration;

use carma_core::JobId;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

use super::Shared;
use super::detail::gone;
use crate::api::{Problem, Update};
use crate::store::{JobSummary, UnixMillis};

/// So often a job is looked at in any case.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What is told from now on, as far as it is about one job.
pub(super) struct JobUpdates {
    job: JobId,
    updates: Receiver<(UnixMillis, Update)>,
}

impl JobUpdates {
    /// Waits for an update of the job, at most for this long.
    pub(super) async fn wait(&mut self, most: Duration) {
        let until = Instant::now() + most;
        loop {
            match timeout_at(until, self.updates.recv()).await {
                Ok(Ok((_, Update::Job { job, .. }))) if job == self.job => return,
                Ok(Ok(_)) => {}
                // Some were missed: it may have been among them.
                Err(_) | Ok(Err(RecvError::Lagged(_))) => return,
                Ok(Err(RecvError::Closed)) => return tokio::time::sleep_until(until).await,
            }
        }
    }
}

impl Shared {
    /// What is told of a job from now on.
    pub(super) fn job_updates(&self, job: JobId) -> JobUpdates {
        JobUpdates { job, updates: self.handle.updates() }
    }

    /// Waits until a job is as wanted, at most until then: how it stands.
    pub(super) async fn wait_until(&self, job: JobId, until: Instant, wanted: impl Fn(&JobSummary) -> bool) -> Result<JobSummary, Problem> {
        // Listening begins before the first look, so that nothing falls in between.
        let mut job_updates = self.job_updates(job);
        loop {
            let summary = self.readers.read(move |reader| reader.summary(job)?.ok_or_else(|| gone(job))).await?;
            let left = until.saturating_duration_since(Instant::now());
            if wanted(&summary) || left.is_zero() {
                return Ok(summary);
            }
            job_updates.wait(left.min(POLL_INTERVAL)).await;
        }
    }
}
