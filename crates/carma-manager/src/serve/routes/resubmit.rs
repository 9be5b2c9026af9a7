//! Submits jobs once more, as new jobs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::submit::check_priority;
use super::{JobPath, Refused};
use crate::api::{JobRequest, Problem, ProblemKind, Resubmission, Submitted};
use crate::request::{HIDDEN, JobCommand};
use crate::serve::Shared;
use crate::serve::answer::{Answer, JsonBody};
use crate::serve::caller::Caller;
use crate::serve::naming::JobName;
use crate::store::{OwnedJob, Reader};
use crate::submission::ValidJobs;

/// The most jobs of one resubmission: each has its environment.
const MAX_JOBS: usize = 10_000;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(resubmit))
}

/// Submits jobs once more, as new jobs with the same request. Only their own user may. The number of an array means all its jobs.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/resubmit",
    request_body = Resubmission,
    params(JobPath),
    responses((status = 200, body = Submitted), Refused)
)]
pub(super) async fn resubmit(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    name: JobName,
    sent: JsonBody<Resubmission>,
) -> Answer<Submitted> {
    let asks = caller.clone();
    let resubmission = sent.value;
    let read = move |reader: &Reader| requests(reader, &asks, &name, &resubmission);
    let (requests, notes) = shared.readers.read(caller.uid, read).await?;
    caller.must_run_as_itself(shared.settings.shared_account)?;
    requests.iter().try_for_each(|request| check_priority(request.schedule.priority, &caller))?;
    let jobs = ValidJobs::new(requests).map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
    shared.could_ever_run(&caller, &jobs).await?;
    let mut submitted = shared.handle.submit(caller.owner(), jobs, None).await?;
    submitted.notes.extend(notes);
    Ok(Json(submitted))
}

/// The requests of the new jobs, and notes for their user.
fn requests(
    reader: &Reader,
    caller: &Caller,
    name: &JobName,
    resubmission: &Resubmission,
) -> Result<(Vec<JobRequest>, Vec<String>), Problem> {
    let jobs = name.owned_jobs(reader, caller)?;
    if jobs.len() > MAX_JOBS {
        return Err(ProblemKind::TooLarge.because(format!("{} jobs are too many: resubmit at most {MAX_JOBS} at once", jobs.len())));
    }
    let (mut requests, mut lost) = (Vec::new(), Vec::new());
    for job in &jobs {
        if job.owner.0 != caller.uid {
            return Err(ProblemKind::Forbidden.because("only the user of a job may resubmit it"));
        }
        if resubmission.failed && !has_failed(reader, job)? {
            continue;
        }
        let request = reader.request(job.id)?.ok_or_else(|| ProblemKind::NotFound.because("the job is no longer stored"))?;
        requests.push(again(request, resubmission, &mut lost)?);
    }
    if requests.is_empty() {
        return Err(ProblemKind::Conflict.because("none of these jobs failed"));
    }
    lost.sort_unstable();
    lost.dedup();
    let note = format!("the manager keeps no secrets of finished jobs; the new job has no {}", lost.join(", "));
    Ok((requests, if lost.is_empty() { Vec::new() } else { vec![note] }))
}

fn has_failed(reader: &Reader, job: &OwnedJob) -> Result<bool, Problem> {
    let outcome = reader.summary(job.id)?.and_then(|job| job.outcome);
    Ok(outcome.is_some_and(|outcome| !outcome.succeeded()))
}

/// The same request for a new job, which keeps its index: a script chooses its work by that. Secrets of finished jobs are gone: those that the caller
/// does not give are left out.
fn again(mut request: JobRequest, given: &Resubmission, lost: &mut Vec<String>) -> Result<JobRequest, Problem> {
    if request.snapshot {
        return Err(ProblemKind::Conflict.because("its code snapshot was deleted after the job: submit it again from its folder"));
    }
    if request.interactive {
        return Err(ProblemKind::Conflict.because("it had a terminal: submit it again with --interactive"));
    }
    (request.schedule.hold, request.schedule.begin) = (false, None);
    request.schedule.after.clear();
    for (name, value) in request.environment.iter_mut().filter(|(_, value)| *value == HIDDEN) {
        match given.environment.get(name) {
            Some(given) => given.clone_into(value),
            None => lost.push(name.clone()),
        }
    }
    request.environment.retain(|_, value| value != HIDDEN);
    let (JobCommand::Program(words) | JobCommand::Script { arguments: words, .. }) = &request.command;
    if words.iter().any(|word| word.contains(HIDDEN)) {
        return Err(ProblemKind::Conflict.because("its command contained a secret, which the manager no longer has: submit it again"));
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::request::ArrayElement;

    #[test]
    fn a_new_job_is_like_the_old_one_without_its_past() {
        let mut request = JobRequest::new(JobCommand::Program(vec!["true".to_owned()]), "/");
        request.environment = ["A", "KEY", "TOKEN"].map(|name| (name.to_owned(), if name == "A" { "1" } else { HIDDEN }.to_owned())).into();
        (request.schedule.hold, request.schedule.begin) = (true, Some(7));
        request.array = Some(ArrayElement { index: 3, array: None, parameters: BTreeMap::new() });
        let given = Resubmission { environment: [("KEY".to_owned(), "k".to_owned())].into(), failed: false };
        let mut lost = Vec::new();
        let new = again(request.clone(), &given, &mut lost).unwrap();
        assert_eq!(new.environment, [("A".to_owned(), "1".to_owned()), ("KEY".to_owned(), "k".to_owned())].into());
        assert_eq!((lost, new.schedule.hold, new.schedule.begin), (vec!["TOKEN".to_owned()], false, None));
        assert_eq!(new.array.map(|element| element.index), Some(3), "scripts choose their work by it");
        request.snapshot = true;
        assert!(again(request, &given, &mut Vec::new()).unwrap_err().message.contains("submit it again from its folder"));
    }
}
