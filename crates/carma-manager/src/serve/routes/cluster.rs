//! Servers of agents, and pools of pilots.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Refused;
use crate::api::{NewPool, PoolChange, PoolDetail, PoolTest, Problem, ProblemKind, ServerDetail};
use crate::cluster::PoolName;
use crate::serve::Shared;
use crate::serve::answer::{Answer, JsonBody};
use crate::serve::caller::Caller;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(servers)).routes(routes!(pools, add_pool)).routes(routes!(change_pool)).routes(routes!(test_pool))
}

#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "it stands for its schema alone")]
struct PoolPath {
    /// The name of the pool.
    pool: String,
}

/// The servers of agents.
#[utoipa::path(get, path = "/v1/servers", responses((status = 200, body = Vec<ServerDetail>), Refused))]
pub(super) async fn servers(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Vec<ServerDetail>> {
    shared.handle.of(caller.uid).servers().await.map(Json)
}

/// The pools, and their pilots.
#[utoipa::path(get, path = "/v1/pools", responses((status = 200, body = Vec<PoolDetail>), Refused))]
pub(super) async fn pools(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Vec<PoolDetail>> {
    shared.handle.of(caller.uid).pools().await.map(Json)
}

/// Adds a pool.
#[utoipa::path(post, path = "/v1/pools", request_body = NewPool, responses((status = 200), Refused))]
pub(super) async fn add_pool(State(shared): State<Arc<Shared>>, caller: Caller, sent: JsonBody<NewPool>) -> Answer<()> {
    caller.must_be_operator("add a pool")?;
    shared.handle.of(caller.uid).add_pool(sent.value, caller.name.clone()).await.map(Json)
}

/// Pauses, resumes or removes a pool.
#[utoipa::path(post, path = "/v1/pools/{pool}", params(PoolPath), request_body = PoolChange, responses((status = 200), Refused))]
pub(super) async fn change_pool(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(pool): Path<String>,
    sent: JsonBody<PoolChange>,
) -> Answer<()> {
    caller.must_be_operator("change a pool")?;
    shared.handle.of(caller.uid).change_pool(name(&pool)?, sent.value, caller.name.clone()).await.map(Json)
}

/// Asks the batch system whether it would accept a pilot of a pool. Requests nothing.
#[utoipa::path(post, path = "/v1/pools/{pool}/test", params(PoolPath), responses((status = 200, body = PoolTest), Refused))]
pub(super) async fn test_pool(State(shared): State<Arc<Shared>>, caller: Caller, Path(pool): Path<String>) -> Answer<PoolTest> {
    caller.must_be_operator("test a pool")?;
    shared.handle.of(caller.uid).test_pool(name(&pool)?).await.map(Json)
}

fn name(text: &str) -> Result<PoolName, Problem> {
    text.parse().map_err(|_| ProblemKind::NotFound.because(format!("unknown pool {text:?}")))
}
