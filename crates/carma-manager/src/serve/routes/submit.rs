//! Taking jobs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use carma_core::Priority;

use super::Refused;
use crate::api::{Forecast, Problem, ProblemKind, Submit, Submitted};
use crate::request::{After, JobRequest};
use crate::serve::Shared;
use crate::serve::access::Caller;
use crate::serve::answer::{Answer, Sent};
use crate::serve::naming::JobName;
use crate::store::Reader;
use crate::submission::{Submission, check};

/// The jobs of one submission together, in bytes: all of them are in memory at once.
const LARGEST_SUBMISSION: usize = 512 << 20;
/// Jobs to wait for, of all jobs of one submission together.
const MOST_AFTER: usize = 1_000_000;
/// So many jobs of an array are forecast.
const MOST_FORECAST: usize = 100;

/// Submits a job, an array or a sweep: all of it or nothing. Answered when it is written down.
#[utoipa::path(post, path = "/v1/jobs", request_body = Submit, responses((status = 200, body = Submitted), Refused))]
pub(super) async fn submit(State(shared): State<Arc<Shared>>, caller: Caller, sent: Sent<Submit>) -> Answer<Submitted> {
    let requests = shared.requests(&caller, sent, usize::MAX).await?;
    let jobs = shared.handle.submit(caller.owner(), requests).await?;
    Ok(Json(Submitted { jobs, notes: Vec::new() }))
}

/// What would become of jobs that are submitted now; of an array, of the first hundred.
#[utoipa::path(post, path = "/v1/forecast", request_body = Submit, responses((status = 200, body = Vec<Forecast>), Refused))]
pub(super) async fn forecast(State(shared): State<Arc<Shared>>, caller: Caller, sent: Sent<Submit>) -> Answer<Vec<Forecast>> {
    let requests = shared.requests(&caller, sent, MOST_FORECAST).await?;
    shared.handle.forecast(caller.owner(), requests).await.map(Json)
}

impl Shared {
    /// The first requests of a submission, each checked, and the jobs they come after named by number.
    async fn requests(&self, caller: &Caller, sent: Sent<Submit>, most: usize) -> Result<Vec<JobRequest>, Problem> {
        let Sent { value: submit, size } = sent;
        check_wishes(&submit.job, caller)?;
        let mut submission = Submission::try_from(submit).map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
        let jobs = submission.jobs().min(most);
        if jobs.saturating_mul(size) > LARGEST_SUBMISSION {
            let why = format!("{jobs} jobs of {size} bytes are too much at once: submit fewer, or with a smaller environment");
            return Err(ProblemKind::TooLarge.because(why));
        }
        // Whatever differs between the jobs, whom they come after does not.
        let (mut template, array, parameters) = submission.into_parts();
        if !template.schedule.after.is_empty() {
            let (after, caller) = (template.schedule.after, caller.clone());
            template.schedule.after = self.readers.read(move |reader| numbered(after, reader, &caller)).await?;
            if template.schedule.after.len().saturating_mul(jobs) > MOST_AFTER {
                return Err(ProblemKind::TooLarge.because("after: these are too many jobs that wait for too many others"));
            }
        }
        submission = Submission::new(template, array, parameters).map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
        let requests: Vec<JobRequest> = submission.requests().take(most).collect();
        requests.iter().try_for_each(check).map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
        Ok(requests)
    }
}

/// Refuses what is not for this user to ask for.
fn check_wishes(request: &JobRequest, caller: &Caller) -> Result<(), Problem> {
    check_priority(request.schedule.priority, caller)?;
    match request.array {
        Some(_) => {
            Err(ProblemKind::Invalid.because("job.array: the manager gives jobs their places; give array or parameters beside the job"))
        }
        None => Ok(()),
    }
}

/// Users may let others go first; to go first is for operators to give.
pub(super) fn check_priority(priority: Priority, caller: &Caller) -> Result<(), Problem> {
    if priority > Priority(0) {
        caller.must_be_operator("give a priority above 0; 0 is the usual one, and lower ones let others go first")
    } else {
        Ok(())
    }
}

/// The jobs to wait for, each by its number.
fn numbered(after: Vec<After>, reader: &Reader, caller: &Caller) -> Result<Vec<After>, Problem> {
    let wrong = |problem: Problem| match problem.kind {
        ProblemKind::NotFound => ProblemKind::Invalid.because(format!("after: {problem}")),
        _ => problem,
    };
    let mut all = Vec::new();
    for After { job, condition } in after {
        let jobs = job.parse::<JobName>().and_then(|name| name.jobs(reader, caller)).map_err(wrong)?;
        all.extend(jobs.into_iter().map(|found| After { job: found.id.0.to_string(), condition }));
        if all.len() > MOST_AFTER {
            return Err(ProblemKind::TooLarge.because("after: these are too many jobs to wait for"));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::access::Role;

    #[test]
    fn to_go_first_is_for_operators_to_give() {
        let caller = |role| Caller { uid: 1, gid: 1, name: String::new(), role };
        for priority in [i32::MIN, -1, 0] {
            assert!(check_priority(Priority(priority), &caller(Role::Owner)).is_ok());
        }
        assert_eq!(check_priority(Priority(1), &caller(Role::Owner)).unwrap_err().kind, ProblemKind::Forbidden);
        assert!(check_priority(Priority(1), &caller(Role::Operator)).is_ok());
    }
}
