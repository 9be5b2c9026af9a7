//! The manager itself: status, configuration, shutdown.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use carma_core::{ConfigErrors, Settings};
use tokio::time::timeout;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Refused;
use crate::api::{ConfigurationDetail, Me, PolicyList, ProblemKind, Reloaded, Shutdown, Status};
use crate::configuration::{AccountNames, NetworkConfig, sources};
use crate::serve::Shared;
use crate::serve::answer::{Answer, JsonBody};
use crate::serve::caller::Caller;

/// How often a client that waits for the status is informed whether the engine is stuck.
const CHECK_PERIOD: Duration = Duration::from_millis(500);

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(status))
        .routes(routes!(me))
        .routes(routes!(policies))
        .routes(routes!(configuration))
        .routes(routes!(reload))
        .routes(routes!(shutdown))
}

/// The status of the manager.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, body = Status), Refused))]
pub(super) async fn status(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Status> {
    let handle = shared.handle.of(caller.uid);
    let mut status = pin!(handle.status());
    loop {
        if let Ok(answer) = timeout(CHECK_PERIOD, &mut status).await {
            return answer.map(|mut status| {
                status.problems.extend(shared.handle.restart_needed());
                Json(status)
            });
        }
        // A stuck engine answers nothing.
        if let Some(stuck) = shared.handle.stuck() {
            return Err(ProblemKind::Unavailable.because(format!("{stuck}: no decisions are made meanwhile; jobs continue")));
        }
    }
}

/// The user who sends the request.
#[utoipa::path(get, path = "/v1/me", responses((status = 200, body = Me), Refused))]
pub(super) async fn me(caller: Caller) -> Json<Me> {
    Json(Me { uid: caller.uid, operator: caller.is_operator(), name: caller.name })
}

/// Policies and presets that a configuration may name.
#[utoipa::path(get, path = "/v1/policies", responses((status = 200, body = PolicyList), Refused))]
pub(super) async fn policies(_: Caller) -> Json<PolicyList> {
    Json(PolicyList::all())
}

/// The configuration in force.
#[utoipa::path(get, path = "/v1/configuration", responses((status = 200, body = ConfigurationDetail), Refused))]
pub(super) async fn configuration(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<ConfigurationDetail> {
    let (written, given) = shared.handle.of(caller.uid).settings().await?;
    let broken = |error: ConfigErrors| ProblemKind::Internal.because(error.to_string());
    let rules = Settings::from(&written.check().map_err(broken)?);
    let sources = sources(&given, &written).map_err(broken)?;
    let mut manager = shared.settings.clone();
    if !caller.is_operator() {
        manager.network = NetworkConfig { listen: manager.network.listen, ..NetworkConfig::default() };
    }
    // A lookup may go over the network.
    let numbers = rules.clone();
    let names = shared.blocking.run(caller.uid, move || AccountNames::of(&numbers)).await?;
    Ok(Json(ConfigurationDetail { file: shared.places.configuration.clone(), rules, written, manager: (&manager).into(), sources, names }))
}

/// Reloads the configuration. Settings of decisions take effect at once. Changed settings of the manager itself need a restart; the answer lists them.
#[utoipa::path(post, path = "/v1/configuration/reload", responses((status = 200, body = Reloaded), Refused))]
pub(super) async fn reload(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Reloaded> {
    caller.must_be_operator("reload the configuration")?;
    crate::reload(&shared.handle, shared.places.configuration.clone(), &shared.settings).await.map(Json)
}

/// Stops the manager. Running jobs continue.
#[utoipa::path(post, path = "/v1/shutdown", request_body = Shutdown, responses((status = 200), Refused))]
pub(super) async fn shutdown(State(shared): State<Arc<Shared>>, caller: Caller, sent: JsonBody<Shutdown>) -> Answer<()> {
    caller.must_be_operator("stop the manager")?;
    shared.handle.of(caller.uid).shutdown(sent.value).await.map(Json)
}
