//! One job: its state, why it waits, its end, its logs.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use carma_core::WaitReason;
use tokio::time::Instant;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{JobPath, Refused};
use crate::api::{AttemptUtilisation, JobDetail, LogQuery, Problem, ProblemKind, WaitQuery, Why};
use crate::serve::Shared;
use crate::serve::answer::{Answer, LongAnswer, UrlQuery};
use crate::serve::caller::Caller;
use crate::serve::naming::JobName;
use crate::serve::privacy::Redact;
use crate::store::{JobSummary, Phase};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(show)).routes(routes!(why)).routes(routes!(wait)).routes(routes!(logs)).routes(routes!(utilisation))
}

/// Default and maximum wait for a job, in seconds.
const DEFAULT_WAIT: u32 = 30;
const MAX_WAIT: u32 = 3600;

impl Shared {
    /// The job of this name.
    pub(in crate::serve) async fn find(&self, name: JobName, caller: &Caller) -> Result<JobSummary, Problem> {
        let (user, caller) = (caller.uid, caller.clone());
        self.readers.read(user, move |reader| name.job(reader, &caller)).await
    }
}

/// Everything about a job. Other users do not see what it runs.
#[utoipa::path(get, path = "/v1/jobs/{job}", params(JobPath), responses((status = 200, body = JobDetail), Refused))]
pub(super) async fn show(State(shared): State<Arc<Shared>>, caller: Caller, name: JobName) -> Result<LongAnswer, Problem> {
    let job = shared.find(name, &caller).await?;
    let detail = shared.job_detail(job.id, &caller).await?;
    shared.long_answer(caller.uid, detail).await
}

/// Why a job waits.
#[utoipa::path(get, path = "/v1/jobs/{job}/why", params(JobPath), responses((status = 200, body = Why), Refused))]
pub(super) async fn why(State(shared): State<Arc<Shared>>, caller: Caller, name: JobName) -> Answer<Why> {
    let job = shared.find(name, &caller).await?;
    let _permit = shared.engine_queries.take(caller.uid).await?;
    let why = match shared.handle.of(caller.uid).why(job.id).await {
        // The engine does not know finished jobs.
        Err(problem) if problem.kind == ProblemKind::NotFound => {
            let JobDetail { id, state, .. } = shared.job_detail(job.id, &caller).await?;
            let summary = format!("{}: {state}", job.label());
            Why {
                job: id,
                state,
                reason: WaitReason::NotWaiting,
                text: summary.clone(),
                summary,
                starts: None,
                devices: Vec::new(),
                hosts: Vec::new(),
                pools: Vec::new(),
            }
        }
        answer => answer?,
    };
    Ok(Json(why.visible_to(caller.view(job.user.0))))
}

/// How busy a job's attempts kept their GPUs over time: its part of each GPU's utilisation.
#[utoipa::path(get, path = "/v1/jobs/{job}/utilisation", params(JobPath), responses((status = 200, body = Vec<AttemptUtilisation>), Refused))]
pub(super) async fn utilisation(State(shared): State<Arc<Shared>>, caller: Caller, name: JobName) -> Answer<Vec<AttemptUtilisation>> {
    let job = shared.find(name, &caller).await?.id;
    // The running attempt first: if it ends meanwhile, the store has it.
    let running = shared.handle.of(caller.uid).unfinished(job).await.unwrap_or_default().over_time;
    let mut all = shared.readers.read(caller.uid, move |reader| Ok(reader.utilisation_of(job)?)).await?;
    let new = |one: &AttemptUtilisation| !all.iter().any(|kept| (kept.attempt, kept.device) == (one.attempt, one.device));
    let running: Vec<AttemptUtilisation> = running.into_iter().filter(new).collect();
    all.extend(running);
    Ok(Json(all))
}

/// Waits for the end of a job, up to a time limit. Returns its state then.
#[utoipa::path(get, path = "/v1/jobs/{job}/wait", params(JobPath, WaitQuery), responses((status = 200, body = JobDetail), Refused))]
pub(super) async fn wait(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    name: JobName,
    UrlQuery(query): UrlQuery<WaitQuery>,
) -> Answer<JobDetail> {
    let job = shared.find(name, &caller).await?;
    let seconds = query.seconds.unwrap_or(DEFAULT_WAIT).min(MAX_WAIT);
    let until = Instant::now() + Duration::from_secs(seconds.into());
    let job = shared.wait_until(&caller, job.id, until, |job| job.phase == Phase::Done).await?;
    shared.job_detail(job.id, &caller).await.map(Json)
}

/// The log of a job. If it is followed before the job starts, the answer begins with the start.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/logs",
    params(JobPath, LogQuery),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), Refused)
)]
pub(super) async fn logs(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    name: JobName,
    UrlQuery(query): UrlQuery<LogQuery>,
) -> Result<Response, Problem> {
    let job = shared.find(name, &caller).await?;
    caller.must_own(job.user.0, "read its logs")?;
    let body = shared.log(&caller, &job, query).await?;
    Ok(([(CONTENT_TYPE, "application/octet-stream")], body).into_response())
}
