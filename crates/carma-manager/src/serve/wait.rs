//! Waits for the end of a job: the store is read after each update of the job, and now and then in case an update was missed.

use std::time::Duration;

use carma_core::JobId;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

use super::Shared;
use super::caller::Caller;
use super::detail::gone;
use crate::api::{Problem, Update};
use crate::store::{JobSummary, UnixMillis};

/// The store is read at least this often.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Updates of one job.
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
                // Missed updates may include this job.
                Err(_) | Ok(Err(RecvError::Lagged(_))) => return,
                Ok(Err(RecvError::Closed)) => return tokio::time::sleep_until(until).await,
            }
        }
    }
}

impl Shared {
    /// Updates of a job from now on.
    pub(super) fn job_updates(&self, job: JobId) -> JobUpdates {
        JobUpdates { job, updates: self.handle.updates() }
    }

    /// Waits for a caller until the condition holds, or until the time is up. Returns the job.
    pub(super) async fn wait_until(
        &self,
        caller: &Caller,
        job: JobId,
        until: Instant,
        wanted: impl Fn(&JobSummary) -> bool,
    ) -> Result<JobSummary, Problem> {
        // Subscribed before the first read, so that no update is missed.
        let mut job_updates = self.job_updates(job);
        loop {
            let summary = self.readers.read(caller.uid, move |reader| reader.summary(job)?.ok_or_else(|| gone(job))).await?;
            let left = until.saturating_duration_since(Instant::now());
            if wanted(&summary) || left.is_zero() {
                return Ok(summary);
            }
            job_updates.wait(left.min(POLL_INTERVAL)).await;
        }
    }
}
