//! What users want to be told of: everybody sees and changes their own alone.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::Refused;
use crate::api::{Notification, ProblemKind, Tried};
use crate::notifications::{check, switched_off};
use crate::serve::Shared;
use crate::serve::access::Caller;
use crate::serve::answer::{Answer, Sent};

/// What whoever asks wants to be told of.
#[utoipa::path(get, path = "/v1/notifications", operation_id = "notifications", responses((status = 200, body = Vec<Notification>), Refused))]
pub(super) async fn show(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Vec<Notification>> {
    shared.readers.read(move |reader| Ok(reader.notifications(caller.uid)?)).await.map(Json)
}

/// Sets all that whoever asks wants to be told of.
#[utoipa::path(
    put,
    path = "/v1/notifications",
    operation_id = "set_notifications",
    request_body = Vec<Notification>,
    responses((status = 200, body = Vec<Notification>), Refused)
)]
pub(super) async fn set(State(shared): State<Arc<Shared>>, caller: Caller, sent: Sent<Vec<Notification>>) -> Answer<Vec<Notification>> {
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

/// Tells whoever asks something made up, by all their ways, and says what became of it.
#[utoipa::path(post, path = "/v1/notifications/test", operation_id = "test_notifications", responses((status = 200, body = Vec<Tried>), Refused))]
pub(super) async fn test(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Vec<Tried>> {
    let _turn = shared.deliberations.take(caller.uid).await?;
    shared.handle.try_notifications(caller.owner()).await.map(Json)
}
