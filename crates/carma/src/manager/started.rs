//! Waiting for the start of a job.

use anyhow::Result;
use carma_core::JobId;
use carma_manager::api::{JobDetail, Update};
use carma_manager::client::{Client, Event};

/// Waits until this attempt of a job was launched, or the job is over; calls `told` once if it has to wait.
pub(crate) fn until_started(client: &mut Client, job: JobId, attempt: u32, told: impl FnOnce(&mut Client)) -> Result<JobDetail> {
    let name = job.0.to_string();
    let mut told = Some(told);
    loop {
        // Subscribe before the first query, so that no event is missed.
        let mut listener = client.another()?;
        let mut events = listener.events(None)?;
        loop {
            let detail = client.job(&name)?;
            if detail.outcome().is_some() || detail.attempts.iter().any(|done| done.attempt.number >= attempt) {
                return Ok(detail);
            }
            told.take().into_iter().for_each(|told| told(client));
            // A listener that was too slow is disconnected, and subscribes again.
            if !events.by_ref().map_while(Result::ok).any(|event| concerns(&event, job)) {
                break;
            }
        }
    }
}

fn concerns(event: &Event, job: JobId) -> bool {
    matches!(event.update(), Some(Update::Job { job: told, .. }) if told == job)
}
