//! What would have been.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Refused;
use crate::api::{WhatIf, WhatIfQuery};
use crate::serve::Shared;
use crate::serve::answer::{Answer, UrlQuery};
use crate::serve::caller::Caller;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(what_if))
}

/// Simulates the jobs of a period under other settings. It may take a minute; the answer is cached.
#[utoipa::path(get, path = "/v1/what-if", params(WhatIfQuery), responses((status = 200, body = WhatIf), Refused))]
pub(super) async fn what_if(State(shared): State<Arc<Shared>>, caller: Caller, UrlQuery(query): UrlQuery<WhatIfQuery>) -> Answer<WhatIf> {
    // All that is told are sums over everybody's jobs, which anybody may see.
    let _permit = shared.simulations.take(caller.uid).await?;
    shared.what_ifs.answer(query).await.map(Json)
}
