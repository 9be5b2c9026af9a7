//! Taking jobs.

use std::fmt::Display;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use carma_core::{JobId, Priority, UserId, WaitReason};

use super::Refused;
use crate::api::{Forecast, Problem, ProblemKind, Submit, Submitted};
use crate::engine::AcceptedJobs;
use crate::request::{After, JobRequest};
use crate::serve::Shared;
use crate::serve::access::Caller;
use crate::serve::answer::{Answer, LARGE, Sent, aside};
use crate::serve::naming::JobName;
use crate::serve::turns::{Turn, Turns};
use crate::store::Reader;
use crate::submission::{Submission, check};

/// The most that is taken at once: all of it is in memory.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    jobs: usize,
    /// The jobs together.
    bytes: usize,
}

const SUBMISSION: Bounds = Bounds { jobs: usize::MAX, bytes: 512 << 20 };
/// As many are forecast; others of an array are alike.
const FORECAST: Bounds = Bounds { jobs: 16, bytes: 64 << 20 };
/// A turn is for so many bytes.
const TURN: usize = 64 << 10;
/// Words and variables take about so much beside their letters.
const WORD: usize = 64;
/// Jobs to wait for, of all jobs of one submission together.
const MOST_AFTER: usize = 1_000_000;
/// Of so many jobs or more it is looked first whether their user may have them.
const MANY: usize = 1000;

/// Turns for all submissions together.
pub(in crate::serve) fn submission_turns() -> Turns {
    Turns::new(SUBMISSION.bytes / TURN, SUBMISSION.bytes / TURN)
}

/// Submits a job, an array or a sweep: all of it or nothing. Answered when it is written down.
#[utoipa::path(post, path = "/v1/jobs", request_body = Submit, responses((status = 200, body = Submitted), Refused))]
pub(super) async fn submit(State(shared): State<Arc<Shared>>, caller: Caller, sent: Sent<Submit>) -> Answer<Submitted> {
    let (requests, turn) = shared.requests(&caller, sent, SUBMISSION).await?;
    // They are in memory until they are written down, whether or not anybody still waits for that.
    let handle = shared.handle.clone();
    let accepted = tokio::spawn(async move {
        let _turn = turn;
        handle.submit(caller.owner(), requests).await
    });
    let AcceptedJobs { jobs, mut notes } = accepted.await??;
    notes.extend(shared.never_runs(jobs.first().copied()).await);
    Ok(Json(Submitted { jobs, notes }))
}

/// What would become of jobs that are submitted now; of an array, of the first few.
#[utoipa::path(post, path = "/v1/forecast", request_body = Submit, responses((status = 200, body = Vec<Forecast>), Refused))]
pub(super) async fn forecast(State(shared): State<Arc<Shared>>, caller: Caller, sent: Sent<Submit>) -> Answer<Vec<Forecast>> {
    let _turn = shared.deliberations.take(caller.uid).await?;
    let (requests, _) = shared.requests(&caller, sent, FORECAST).await?;
    shared.handle.forecast(caller.owner(), requests).await.map(Json)
}

impl Shared {
    /// What keeps a job from ever running here as things are, where something does: its user had better know now.
    async fn never_runs(&self, job: Option<JobId>) -> Option<String> {
        let why = self.handle.why(job?).await.ok()?;
        let never = matches!(why.reason, WaitReason::TooLarge { .. } | WaitReason::TooLargeForHosts { .. });
        never.then(|| why.text.lines().next().unwrap_or_default().to_owned())
    }

    /// The first requests of a submission, each checked, and the jobs they come after named by number; with a turn to have them in memory.
    async fn requests(&self, caller: &Caller, sent: Sent<Submit>, bounds: Bounds) -> Result<(Vec<JobRequest>, Turn), Problem> {
        let Sent { value: submit, size, turn: _large } = sent;
        check_wishes(&submit.job, caller)?;
        let submission = aside(size > LARGE, move || Submission::try_from(submit).map_err(invalid)).await??;
        let (jobs, growth) = (submission.jobs().min(bounds.jobs), submission.growth());
        // Whatever differs between the jobs, whom they come after does not.
        let (mut template, array, parameters) = submission.into_parts();
        // What lists indices and values is no part of each job.
        let own = if jobs == 1 { size } else { serde_json::to_vec(&template).map_err(invalid)?.len() };
        let each = own + growth + WORD * pieces(&template);
        let bytes = jobs.saturating_mul(each);
        if bytes > bounds.bytes {
            let why = format!("{jobs} jobs of {each} bytes are too much at once: submit fewer, or with a smaller environment");
            return Err(ProblemKind::TooLarge.because(why));
        }
        self.check_number(caller, jobs).await?;
        let turn = self.submissions.take_several(caller.uid, bytes.div_ceil(TURN)).await?;
        if !template.schedule.after.is_empty() {
            let (after, caller) = (template.schedule.after, caller.clone());
            template.schedule.after = self.readers.read(move |reader| numbered(after, reader, &caller)).await?;
            if template.schedule.after.len().saturating_mul(jobs) > MOST_AFTER {
                return Err(ProblemKind::TooLarge.because("after: these are too many jobs that wait for too many others"));
            }
        }
        let expand = move || {
            let submission = Submission::new(template, array, parameters).map_err(invalid)?;
            let requests: Vec<JobRequest> = submission.requests().take(jobs).collect();
            requests.iter().try_for_each(check).map_err(invalid)?;
            Ok((requests, turn))
        };
        aside(bytes > LARGE, expand).await?
    }

    /// Whether a user may have so many more jobs. The engine has the last word; this saves making a hundred thousand that it would refuse.
    async fn check_number(&self, caller: &Caller, jobs: usize) -> Result<(), Problem> {
        let most = self.settings.limits.jobs_per_user;
        if most == 0 || jobs < MANY {
            return Ok(());
        }
        let user = UserId(caller.uid);
        let has = self.readers.read(move |reader| Ok(reader.unfinished_of(user)?)).await?;
        if has.saturating_add(jobs as u64) <= most {
            return Ok(());
        }
        Err(ProblemKind::Limit.because(format!("{} has {has} jobs that are not over, and may have {most}", caller.name)))
    }
}

fn invalid(error: impl Display) -> Problem {
    ProblemKind::Invalid.because(error.to_string())
}

/// What a request has of words and variables.
fn pieces(request: &JobRequest) -> usize {
    request.command.words().len() + 2 * request.environment.len()
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
