//! GPUs: state, history, drain and resume.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{GpuPath, Refused};
use crate::api::{DrainResult, GpuDetail, GpuTimeline, Problem, RecentQuery, RecentSamples, SampleQuery};
use crate::engine::SampleFilter;
use crate::serve::Shared;
use crate::serve::answer::{Answer, LongAnswer, UrlQuery};
use crate::serve::caller::Caller;
use crate::serve::naming::GpuName;
use crate::store::{MinuteMean, UnixMillis, UnixMinute};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(gpus))
        .routes(routes!(samples))
        .routes(routes!(timeline))
        .routes(routes!(recent))
        .routes(routes!(drain))
        .routes(routes!(resume))
}

/// Default number of minutes.
const DEFAULT_MINUTES: u64 = 60;

/// All GPUs, and the jobs on them.
#[utoipa::path(get, path = "/v1/gpus", responses((status = 200, body = Vec<GpuDetail>), Refused))]
pub(super) async fn gpus(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Vec<GpuDetail>> {
    shared.handle.of(caller.uid).gpus().await.map(Json)
}

/// The means of a GPU per minute.
#[utoipa::path(
    get,
    path = "/v1/gpus/{gpu}/samples",
    params(GpuPath, SampleQuery),
    responses((status = 200, body = Vec<MinuteMean>), Refused)
)]
pub(super) async fn samples(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    GpuName(device): GpuName,
    UrlQuery(query): UrlQuery<SampleQuery>,
) -> Answer<Vec<MinuteMean>> {
    let end = query.until.unwrap_or_else(|| shared.handle.now()).minute();
    // The minute that is not over yet is left out only where an end is given.
    let end = if query.until.is_some() { end } else { UnixMinute(end.0 + 1) };
    let start = query.since.map_or(UnixMinute(end.0.saturating_sub(DEFAULT_MINUTES)), UnixMillis::minute);
    shared.minutes(&caller, device, start..end).await.map(Json)
}

/// The utilisation of a GPU over time, and the attempts on it.
#[utoipa::path(
    get,
    path = "/v1/gpus/{gpu}/timeline",
    params(GpuPath, SampleQuery),
    responses((status = 200, body = GpuTimeline), Refused)
)]
pub(super) async fn timeline(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    GpuName(device): GpuName,
    UrlQuery(query): UrlQuery<SampleQuery>,
) -> Answer<GpuTimeline> {
    shared.timeline(&caller, device, query).await.map(Json)
}

/// The samples of the last minutes.
#[utoipa::path(get, path = "/v1/recent", params(RecentQuery), responses((status = 200, body = Vec<RecentSamples>), Refused))]
pub(super) async fn recent(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    UrlQuery(RecentQuery { since, gpu, points }): UrlQuery<RecentQuery>,
) -> Result<LongAnswer, Problem> {
    let device = gpu.map(|gpu| gpu.parse::<GpuName>()).transpose()?.map(|GpuName(device)| device);
    let handle = shared.handle.clone();
    shared.blocking.run(caller.uid, move || LongAnswer::new(&handle.recent(SampleFilter { since, device, points }))).await?
}

/// Drains a GPU: it gets no new jobs.
#[utoipa::path(post, path = "/v1/gpus/{gpu}/drain", params(GpuPath), responses((status = 200, body = DrainResult), Refused))]
pub(super) async fn drain(State(shared): State<Arc<Shared>>, caller: Caller, gpu: GpuName) -> Answer<DrainResult> {
    shared.set_drained(&caller, gpu, true).await
}

/// Resumes a drained GPU.
#[utoipa::path(post, path = "/v1/gpus/{gpu}/resume", params(GpuPath), responses((status = 200, body = DrainResult), Refused))]
pub(super) async fn resume(State(shared): State<Arc<Shared>>, caller: Caller, gpu: GpuName) -> Answer<DrainResult> {
    shared.set_drained(&caller, gpu, false).await
}

impl Shared {
    async fn set_drained(&self, caller: &Caller, GpuName(device): GpuName, drained: bool) -> Answer<DrainResult> {
        caller.must_be_operator("drain or resume GPUs")?;
        self.handle.of(caller.uid).drain(device, drained, caller.name.clone()).await.map(Json)
    }
}
