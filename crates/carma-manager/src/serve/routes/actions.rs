//! Actions on jobs.

use std::sync::Arc;

use axum::extract::State;
use carma_core::{LimitChange, Seconds};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::submit::check_priority;
use super::{JobPath, Refused};
use crate::api::{ActionResult, JobAction, JobChange, Problem, ProblemKind};
use crate::configuration::LimitConfig;
use crate::serve::Shared;
use crate::serve::answer::{JsonBody, LongAnswer};
use crate::serve::caller::Caller;
use crate::serve::naming::JobName;
use crate::store::Reader;
use crate::submission::MAX_SPAN;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(change))
        .routes(routes!(cancel))
        .routes(routes!(hold))
        .routes(routes!(release))
        .routes(routes!(requeue))
}

macro_rules! act {
    ($(#[$doc:meta])* $name:ident, $path:literal, $act:expr) => {
        $(#[$doc])*
        #[utoipa::path(post, path = $path, params(JobPath), responses((status = 200, body = ActionResult), Refused))]
        pub(super) async fn $name(State(shared): State<Arc<Shared>>, caller: Caller, name: JobName) -> Result<LongAnswer, Problem> {
            shared.act(&caller, name, $act).await
        }
    };
}

act!(
    /// Cancels jobs.
    cancel, "/v1/jobs/{job}/cancel", JobAction::Cancel);
act!(
    /// Holds jobs.
    hold, "/v1/jobs/{job}/hold", JobAction::Hold);
act!(
    /// Releases jobs.
    release, "/v1/jobs/{job}/release", JobAction::Release);
act!(
    /// Stops jobs, after a checkpoint if they can write one, and queues them again.
    requeue, "/v1/jobs/{job}/requeue", JobAction::Requeue);

/// Changes the priority or the time limit of jobs.
#[utoipa::path(patch, path = "/v1/jobs/{job}", request_body = JobChange, params(JobPath), responses((status = 200, body = ActionResult), Refused))]
pub(super) async fn change(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    name: JobName,
    sent: JsonBody<JobChange>,
) -> Result<LongAnswer, Problem> {
    let change = sent.value;
    change.priority.map_or(Ok(()), |priority| check_priority(priority, &caller))?;
    check_limit(change.time_limit, &shared.settings.limits, &caller)?;
    if change == JobChange::default() {
        return Err(ProblemKind::Invalid.because("the request changes nothing: give priority or time_limit"));
    }
    shared.act(&caller, name, JobAction::Change(change)).await
}

impl Shared {
    async fn act(&self, caller: &Caller, name: JobName, action: JobAction) -> Result<LongAnswer, Problem> {
        let asks = caller.clone();
        let read = move |reader: &Reader| {
            let jobs = name.owned_jobs(reader, &asks)?;
            jobs.iter().try_for_each(|job| asks.must_own(job.owner.0, "do that"))?;
            Ok(jobs)
        };
        let jobs = self.readers.read(caller.uid, read).await?;
        let ids = jobs.iter().map(|job| job.id).collect();
        let mut acted = self.handle.of(caller.uid).act(ids, action, caller.name.clone()).await?;
        acted.arrays = jobs.into_iter().filter_map(|job| Some((job.id, job.array?))).collect();
        self.long_answer(caller.uid, acted).await
    }
}

/// A changed time limit is bounded like that of a new job.
fn check_limit(change: LimitChange, limits: &LimitConfig, caller: &Caller) -> Result<(), Problem> {
    let beyond = match change {
        LimitChange::Keep => false,
        LimitChange::Remove => true,
        LimitChange::Set(limit) if limit == Seconds::ZERO => {
            return Err(ProblemKind::Invalid.because("time_limit: must be more than 0 s"));
        }
        LimitChange::Set(limit) if limit > MAX_SPAN => {
            return Err(ProblemKind::Invalid.because("time_limit: is more than a hundred years"));
        }
        LimitChange::Set(limit) => limits.seconds_per_job.is_some_and(|most| limit > most),
    };
    match limits.seconds_per_job {
        Some(most) if beyond && !caller.is_operator() => {
            Err(ProblemKind::Limit.because(format!("time_limit: the limit here is {} seconds", most.get())))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::caller::Role;

    #[test]
    fn a_time_limit_cannot_be_changed_beyond_what_is_accepted() {
        let caller = |role| Caller { uid: 1, gid: 1, name: String::new(), role };
        let limits = LimitConfig { seconds_per_job: Some(Seconds::from_secs(60)), ..LimitConfig::default() };
        let changed = |change, role| check_limit(change, &limits, &caller(role)).map_err(|problem| problem.kind);
        let set = |seconds| LimitChange::Set(Seconds::from_secs(seconds));
        assert_eq!(changed(set(60), Role::Owner), Ok(()));
        assert_eq!(changed(set(61), Role::Owner), Err(ProblemKind::Limit));
        assert_eq!(changed(LimitChange::Remove, Role::Owner), Err(ProblemKind::Limit));
        assert_eq!(changed(LimitChange::Remove, Role::Operator), Ok(()));
        assert_eq!(changed(set(0), Role::Operator), Err(ProblemKind::Invalid));
        assert_eq!(changed(set(u64::MAX), Role::Operator), Err(ProblemKind::Invalid));
        assert!(check_limit(LimitChange::Remove, &LimitConfig::default(), &caller(Role::Owner)).is_ok());
    }
}
