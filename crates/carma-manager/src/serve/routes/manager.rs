//! The manager itself: how it is, its configuration, its end.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use carma_core::Settings;
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::Refused;
use crate::api::{ConfigurationDetail, Me, ProblemKind, Reloaded, Shutdown, Status};
use crate::configuration::{Configuration, ManagerSettings, NetworkSettings};
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

/// Reads the configuration again. Its rules count at once; what else differs needs a new start, and is named.
#[utoipa::path(post, path = "/v1/configuration/reload", responses((status = 200, body = Reloaded), Refused))]
pub(super) async fn reload(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Reloaded> {
    caller.must_be_operator("have the configuration read again")?;
    let file = shared.places.configuration.clone();
    let read =
        spawn_blocking(move || Configuration::read(&file)).await.map_err(|error| ProblemKind::Internal.because(error.to_string()))?;
    let Configuration { rules, manager } = read.map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
    shared.handle.configure(rules).await?;
    Ok(Json(Reloaded { needs_restart: differences(&shared.settings, &manager) }))
}

/// Ends the manager; jobs that run go on.
#[utoipa::path(post, path = "/v1/shutdown", request_body = Shutdown, responses((status = 200), Refused))]
pub(super) async fn shutdown(State(shared): State<Arc<Shared>>, caller: Caller, sent: Sent<Shutdown>) -> Answer<()> {
    caller.must_be_operator("end the manager")?;
    shared.handle.shutdown(sent.value).await.map(Json)
}

/// The keys whose values differ.
fn differences(before: &ManagerSettings, after: &ManagerSettings) -> Vec<String> {
    fn compare(name: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => {
                for (key, value) in before {
                    compare(&format!("{name}.{key}"), value, after.get(key).unwrap_or(&Value::Null), found);
                }
            }
            _ if before != after => found.push(name.to_owned()),
            _ => {}
        }
    }
    let value = |settings| serde_json::to_value(settings).unwrap_or_default();
    let mut found = Vec::new();
    compare("manager", &value(before), &value(after), &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_are_named_by_their_keys() {
        let before = ManagerSettings::default();
        let mut after = before.clone();
        assert!(differences(&before, &after).is_empty());
        after.operators = "wheel".to_owned();
        after.energy.price = Some(0.3);
        after.gpus.ignore = vec!["3".to_owned()];
        assert_eq!(differences(&before, &after), ["manager.energy.price", "manager.gpus.ignore", "manager.operators"]);
    }
}
