//! One user: jobs, GPU time, energy and fair share.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use carma_core::{Seconds, UserId};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Refused;
use crate::api::{ProblemKind, UsageQuery, UserUsage};
use crate::rows::{JobCounts, UserSummary};
use crate::serve::Shared;
use crate::serve::answer::{Answer, UrlQuery};
use crate::serve::caller::Caller;
use crate::serve::naming::PathPart;
use crate::serve::users::{uid_of, user_name};
use crate::store::Span;
use crate::units::Joules;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(user))
}

#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "it stands for its schema alone")]
struct UserPath {
    /// The user's name or number.
    user: String,
}

/// A user's jobs, GPU time, energy and fair share.
#[utoipa::path(get, path = "/v1/users/{user}", params(UserPath, UsageQuery), responses((status = 200, body = UserUsage), Refused))]
pub(super) async fn user(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    PathPart(user): PathPart,
    UrlQuery(query): UrlQuery<UsageQuery>,
) -> Answer<UserUsage> {
    // A lookup may go over the network.
    let known = shared.blocking.run(caller.uid, move || {
        let uid = user.parse().ok().or_else(|| uid_of(&user));
        uid.map(|uid| (uid, user_name(uid).unwrap_or_else(|| uid.to_string()))).ok_or(user)
    });
    let unknown = |name: String| ProblemKind::NotFound.because(format!("this host has no user {name:?}"));
    let (uid, name) = known.await?.map_err(unknown)?;
    let (user, now) = (UserId(uid), shared.handle.now());
    let period = Span { since: query.since, until: query.until };
    let found = shared.readers.read(caller.uid, move |reader| Ok(reader.users(Some(user), period, now)?)).await?.pop();
    let none = UserSummary { user, name, jobs: JobCounts::default(), gpu_time: Seconds::ZERO, energy: Joules::default() };
    let mut rows = shared.shares(&caller).await?;
    rows.retain(|row| row.uid == uid);
    let quota = shared.handle.of(caller.uid).quota(user).await?;
    Ok(Json(UserUsage { summary: found.unwrap_or(none), shares: rows, quota }))
}
