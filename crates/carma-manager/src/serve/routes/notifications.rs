//! Notifications. Users see and change only their own.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Refused;
use crate::api::{ChannelTest, Notification, ProblemKind};
use crate::notifications::{check, switched_off};
use crate::serve::Shared;
use crate::serve::answer::{Answer, JsonBody};
use crate::serve::caller::Caller;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(show, set)).routes(routes!(test))
}

/// The notifications of the user.
#[utoipa::path(get, path = "/v1/notifications", operation_id = "notifications", responses((status = 200, body = Vec<Notification>), Refused))]
pub(super) async fn show(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Vec<Notification>> {
    shared.readers.read(caller.uid, move |reader| Ok(reader.notifications(caller.uid)?)).await.map(Json)
}

/// Replaces all notifications of the user.
#[utoipa::path(
    put,
    path = "/v1/notifications",
    operation_id = "set_notifications",
    request_body = Vec<Notification>,
    responses((status = 200, body = Vec<Notification>), Refused)
)]
pub(super) async fn set(State(shared): State<Arc<Shared>>, caller: Caller, sent: JsonBody<Vec<Notification>>) -> Answer<Vec<Notification>> {
    let mut notifications = sent.value;
    if !notifications.is_empty() && !shared.settings.notifications.enabled {
        return Err(switched_off());
    }
    check(&notifications).map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
    for notification in &mut notifications {
        notification.on.sort_unstable();
        notification.on.dedup();
    }
    shared.handle.set_notifications(caller.uid, notifications.clone()).await?;
    Ok(Json(notifications))
}

/// Sends a test message by all channels of the user, and reports the result of each.
#[utoipa::path(post, path = "/v1/notifications/test", operation_id = "test_notifications", responses((status = 200, body = Vec<ChannelTest>), Refused))]
pub(super) async fn test(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Vec<ChannelTest>> {
    let _permit = shared.engine_queries.take(caller.uid).await?;
    shared.handle.try_notifications(caller.owner()).await.map(Json)
}
