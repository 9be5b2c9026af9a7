//! What users want to be told of: everybody sees and changes their own alone.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Refused;
use crate::api::{Notification, ProblemKind, Tried};
use crate::notifications::{check, switched_off};
use crate::serve::Shared;
use crate::serve::access::Caller;
use crate::serve::answer::{Answer, JsonBody};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(show, set)).routes(routes!(test))
}

/// The notifications of the user.
#[utoipa::path(get, path = "/v1/notifications", operation_id = "notifications", responses((status = 200, body = Vec<Notification>), Refused))]
pub(super) async fn show(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Vec<Notification>> {
    shared.readers.read(move |reader| Ok(reader.notifications(caller.uid)?)).await.map(Json)
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
    let mut wishes = sent.value;
    if !wishes.is_empty() && !shared.settings.notifications.enabled {
        return Err(switched_off());
    }
    check(&wishes).map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
    for wish in &mut wishes {
        wish.on.sort_unstable();
        wish.on.dedup();
    }
    shared.handle.set_notifications(caller.uid, wishes.clone()).await?;
    Ok(Json(wishes))
}

/// Sends a test message by all channels of the user, and reports the result of each.
#[utoipa::path(post, path = "/v1/notifications/test", operation_id = "test_notifications", responses((status = 200, body = Vec<Tried>), Refused))]
pub(super) async fn test(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Vec<Tried>> {
    let _permit = shared.deliberations.take(caller.uid).await?;
    shared.handle.try_notifications(caller.owner()).await.map(Json)
}
