//! The manager itself: how it is, its configuration, its end.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use carma_core::Settings;

use super::Refused;
use crate::api::{ConfigurationDetail, Me, ProblemKind, Reloaded, Shutdown, Status};
use crate::configuration::NetworkSettings;
use crate::serve::Shared;
use crate::serve::access::Caller;
use crate::serve::answer::{Answer, Sent};

/// How the manager is.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, body = Status), Refused))]
pub(super) async fn status(State(shared): State<Arc<Shared>>, _: Caller) -> Answer<Status> {
    shared.handle.status().await.map(Json)
}

/// Who asks, as the manager knows them.
#[utoipa::path(get, path = "/v1/me", responses((status = 200, body = Me), Refused))]
pub(super) async fn me(caller: Caller) -> Json<Me> {
    Json(Me { uid: caller.uid, operator: caller.is_operator(), name: caller.name })
}

/// The configuration in force.
#[utoipa::path(get, path = "/v1/configuration", responses((status = 200, body = ConfigurationDetail), Refused))]
pub(super) async fn configuration(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<ConfigurationDetail> {
    let written = shared.handle.settings().await?;
    let rules = Settings::from(&written.check().map_err(|error| ProblemKind::Internal.because(error.to_string()))?);
    let mut manager = shared.settings.clone();
    if !caller.is_operator() {
        manager.network = NetworkSettings { listen: manager.network.listen, ..NetworkSettings::default() };
    }
    Ok(Json(ConfigurationDetail { file: shared.places.configuration.clone(), rules, written, manager }))
}

/// Reads the configuration again. Its rules count at once; settings of the manager that differ need a restart and are named.
#[utoipa::path(post, path = "/v1/configuration/reload", responses((status = 200, body = Reloaded), Refused))]
pub(super) async fn reload(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Reloaded> {
    caller.must_be_operator("have the configuration read again")?;
    crate::reload(&shared.handle, shared.places.configuration.clone(), &shared.settings).await.map(Json)
}

/// Ends the manager; jobs that run go on.
#[utoipa::path(post, path = "/v1/shutdown", request_body = Shutdown, responses((status = 200), Refused))]
pub(super) async fn shutdown(State(shared): State<Arc<Shared>>, caller: Caller, sent: Sent<Shutdown>) -> Answer<()> {
    caller.must_be_operator("end the manager")?;
    shared.handle.shutdown(sent.value).await.map(Json)
}
