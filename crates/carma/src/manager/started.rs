//! Waiting for the start of a job.

use anyhow::Result;
use carma_core::JobId;
use carma_manager::api::{JobDetail, Update};
use carma_manager::client::{Client, Event};

/// Waits until this attempt of a job was launched, or the job is over; calls `on_wait` once if it has to wait.
pub(crate) fn until_started(client: &mut Client, job: JobId, attempt: u32, on_wait: impl FnOnce(&mut Client)) -> Result<JobDetail> {
    let name = job.0.to_string();
    let mut on_wait = Some(on_wait);
    loop {
        // Subscribe before the first query, so that no event is missed.
        let mut listener = client.another()?;
        let mut events = listener.events(None)?;
        loop {
            let detail = client.job(&name)?;
            if detail.outcome().is_some() || detail.attempts.iter().any(|done| done.attempt.number >= attempt) {
                return Ok(detail);
            }
            on_wait.take().into_iter().for_each(|on_wait| on_wait(client));
            // A listener that was too slow is disconnected, and subscribes again.
            if !events.by_ref().map_while(Result::ok).any(|event| concerns(&event, job)) {
                break;
            }
        }
    }
}

fn concerns(event: &Event, job: JobId) -> bool {
    matches!(event.update(), Some(Update::Job { job: changed, .. }) if changed == job)
}
