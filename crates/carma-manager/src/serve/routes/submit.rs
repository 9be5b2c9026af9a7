//! Submissions.

use std::fmt::Display;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue};
use carma_core::{JobId, Priority, UserId, WaitReason};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Refused;
use crate::api::{Forecast, Problem, ProblemKind, Submission, Submitted};
use crate::request::{After, JobRequest};
use crate::serve::Shared;
use crate::serve::answer::{Answer, JsonBody, LARGE};
use crate::serve::caller::Caller;
use crate::serve::concurrency_limit::{ConcurrencyLimit, Permit};
use crate::serve::naming::JobName;
use crate::store::Reader;
use crate::submission::ValidJobs;
use crate::submission_key::{HEADER, InvalidKey, SubmissionKey};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(submit)).routes(routes!(forecast))
}

/// The limits of one submission: all of it is in memory.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    jobs: usize,
    /// Size of all jobs together.
    bytes: usize,
}

const SUBMISSION: Bounds = Bounds { jobs: usize::MAX, bytes: 512 << 20 };
/// Of an array, only the first jobs are forecast.
const FORECAST: Bounds = Bounds { jobs: MADE_AT_ONCE, bytes: 64 << 20 };
/// Bytes per permit.
const PERMIT_BYTES: usize = 64 << 10;
/// Overhead of an argument or variable in memory.
const WORD: usize = 64;
/// The data of each job of an array in memory. Its request is made from the common template.
const MEMBER: usize = 1 << 10;
/// Requests of an array that may be in memory at once, for forecasts and estimates.
const MADE_AT_ONCE: usize = 16;
/// Maximum number of dependencies of one submission.
const MAX_AFTER: usize = 1_000_000;
/// From this number of jobs on, the user's limit is checked before the jobs are made.
const MANY: usize = 1000;

/// The limit for all submissions together.
pub(in crate::serve) fn submission_limit() -> ConcurrencyLimit {
    ConcurrencyLimit::new(SUBMISSION.bytes / PERMIT_BYTES, SUBMISSION.bytes / PERMIT_BYTES)
}

/// Submits a job, an array or a sweep: all or nothing. The answer is sent when the jobs are on the disk.
/// A repeated submission with the same `Idempotency-Key` gets the first answer and creates nothing. Keys belong to the user; the last 1,000 of
/// each are kept for 24 hours.
#[utoipa::path(
    post,
    path = "/v1/jobs",
    params(("Idempotency-Key" = Option<String>, Header, description = "A random text, at most 128 characters")),
    request_body = Submission,
    responses((status = 200, body = Submitted), Refused)
)]
pub(super) async fn submit(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    headers: HeaderMap,
    sent: JsonBody<Submission>,
) -> Answer<Submitted> {
    let key = key(&headers)?;
    // Before the checks: the jobs of the first submission count towards limits.
    if let Some(earlier) = shared.earlier(&caller, key.clone()).await? {
        return Ok(Json(earlier));
    }
    let (jobs, permit) = shared.validated(&caller, sent, SUBMISSION).await?;
    shared.could_ever_run(&caller, &jobs).await?;
    // The jobs stay in memory until they are stored, even if the client is gone.
    let (handle, owner) = (shared.handle.clone(), caller.owner());
    let accepted = tokio::spawn(async move {
        let _permit = permit;
        handle.submit(owner, jobs, key).await
    });
    let mut submitted = accepted.await??;
    submitted.notes.extend(shared.never_runs(&caller, submitted.jobs.first().copied()).await);
    Ok(Json(submitted))
}

/// Previews the placement of jobs without submitting them. Of an array, the first few jobs are previewed.
#[utoipa::path(post, path = "/v1/forecast", request_body = Submission, responses((status = 200, body = Vec<Forecast>), Refused))]
pub(super) async fn forecast(State(shared): State<Arc<Shared>>, caller: Caller, sent: JsonBody<Submission>) -> Answer<Vec<Forecast>> {
    let _permit = shared.engine_queries.take(caller.uid).await?;
    let (jobs, _) = shared.validated(&caller, sent, FORECAST).await?;
    shared.handle.forecast(caller.owner(), jobs).await.map(Json)
}

/// The key of a submission, if it has one.
fn key(headers: &HeaderMap) -> Result<Option<SubmissionKey>, Problem> {
    let parse = |value: &HeaderValue| value.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(|| invalid(InvalidKey));
    headers.get(HEADER).map(parse).transpose()
}

impl Shared {
    /// The answer to an earlier submission with this key.
    async fn earlier(&self, caller: &Caller, key: Option<SubmissionKey>) -> Result<Option<Submitted>, Problem> {
        let Some(key) = key else { return Ok(None) };
        let uid = caller.uid;
        self.readers.read(uid, move |reader| Ok(reader.submission(uid, &key)?.map(Submitted::from))).await
    }

    /// Refuses jobs that nothing here could ever run, unless they are to wait for hardware. The jobs of a submission are alike.
    pub(super) async fn could_ever_run(&self, caller: &Caller, jobs: &ValidJobs) -> Result<(), Problem> {
        let Some(first) = jobs.kinds().first().filter(|job| !job.schedule.wait_for_hardware) else { return Ok(()) };
        match self.handle.of(caller.uid).never_runs(caller.owner(), first.clone()).await? {
            Some(why) => Err(ProblemKind::Invalid.because(format!("{why}; add --wait-for-hardware to submit it nevertheless"))),
            None => Ok(()),
        }
    }

    /// Why a job can never run here, if so. Its user should know at once.
    async fn never_runs(&self, caller: &Caller, job: Option<JobId>) -> Option<String> {
        let why = self.handle.of(caller.uid).why(job?).await.ok()?;
        let never = matches!(why.reason, WaitReason::TooLarge { .. } | WaitReason::TooLargeForHosts { .. });
        never.then_some(why.summary)
    }

    /// Validates a submission, names the jobs it waits for by number, and expands it: at most `bounds.jobs` jobs, with a permit to hold them in memory.
    async fn validated(&self, caller: &Caller, sent: JsonBody<Submission>, bounds: Bounds) -> Result<(ValidJobs, Permit), Problem> {
        let JsonBody { value: submission, size, permit: _large } = sent;
        caller.must_run_as_itself(self.settings.shared_account)?;
        check_priority(submission.job.schedule.priority, caller)?;
        let mut valid = self.off_thread(caller.uid, size > LARGE, move || submission.validate().map_err(invalid)).await??;
        let jobs = valid.jobs().min(bounds.jobs);
        let template = &valid.as_sent().job;
        // Lists of indices and values are not part of each job.
        let own = if jobs == 1 { size } else { serde_json::to_vec(template).map_err(invalid)?.len() };
        let each = own + valid.growth() + WORD * pieces(template);
        let bytes = each.saturating_mul(jobs.min(MADE_AT_ONCE)).saturating_add(MEMBER * jobs);
        if bytes > bounds.bytes {
            let why = format!("{jobs} jobs of {each} bytes are too much for one request: submit fewer jobs, or a smaller environment");
            return Err(ProblemKind::TooLarge.because(why));
        }
        self.check_number(caller, jobs).await?;
        let permit = self.submissions.acquire_many(caller.uid, bytes.div_ceil(PERMIT_BYTES)).await?;
        // All jobs of a submission wait for the same jobs.
        if !valid.as_sent().job.schedule.after.is_empty() {
            let (after, user, caller) = (valid.as_sent().job.schedule.after.clone(), caller.uid, caller.clone());
            let after = self.readers.read(user, move |reader| numbered(after, reader, &caller)).await?;
            if after.len().saturating_mul(jobs) > MAX_AFTER {
                return Err(ProblemKind::TooLarge.because("after: too many jobs depend on too many others"));
            }
            valid.set_after(after);
        }
        self.off_thread(caller.uid, bytes > LARGE, move || (valid.into_jobs(jobs), permit)).await
    }

    /// Checks the user's limit of jobs early. The engine checks it again; this avoids making many jobs that it would refuse.
    async fn check_number(&self, caller: &Caller, jobs: usize) -> Result<(), Problem> {
        let Some(most) = self.settings.limits.jobs_per_user.filter(|_| jobs >= MANY) else { return Ok(()) };
        let user = UserId(caller.uid);
        let has = self.readers.read(caller.uid, move |reader| Ok(reader.unfinished_of(user)?)).await?;
        if has.saturating_add(jobs as u64) <= most {
            return Ok(());
        }
        Err(ProblemKind::Limit.because(format!("{} has {has} unfinished jobs; the limit is {most}", caller.name)))
    }
}

fn invalid(error: impl Display) -> Problem {
    ProblemKind::Invalid.because(error.to_string())
}

/// Number of arguments and variables of a request.
fn pieces(request: &JobRequest) -> usize {
    request.command.arguments().len() + 2 * request.environment.len()
}

/// Users may lower their priority; only operators may raise it.
pub(super) fn check_priority(priority: Priority, caller: &Caller) -> Result<(), Problem> {
    if priority > Priority(0) {
        caller.must_be_operator("give a priority above 0; the default is 0, and lower priorities run later")
    } else {
        Ok(())
    }
}

/// The dependencies, each by its number.
fn numbered(after: Vec<After>, reader: &Reader, caller: &Caller) -> Result<Vec<After>, Problem> {
    let wrong = |problem: Problem| match problem.kind {
        ProblemKind::NotFound => ProblemKind::Invalid.because(format!("after: {problem}")),
        _ => problem,
    };
    let mut all = Vec::new();
    for After { job, condition } in after {
        let jobs = job.parse::<JobName>().and_then(|name| name.owned_jobs(reader, caller)).map_err(wrong)?;
        all.extend(jobs.into_iter().map(|found| After { job: found.id.0.to_string(), condition }));
        if all.len() > MAX_AFTER {
            return Err(ProblemKind::TooLarge.because("after: too many dependencies"));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::caller::Role;

    #[test]
    fn only_operators_raise_priorities() {
        let caller = |role| Caller { uid: 1, gid: 1, name: String::new(), role };
        for priority in [i32::MIN, -1, 0] {
            assert!(check_priority(Priority(priority), &caller(Role::Owner)).is_ok());
        }
        assert_eq!(check_priority(Priority(1), &caller(Role::Owner)).unwrap_err().kind, ProblemKind::Forbidden);
        assert!(check_priority(Priority(1), &caller(Role::Operator)).is_ok());
    }
}
