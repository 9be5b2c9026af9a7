//! Simulations of past jobs under other policies.

use std::sync::Arc;

use axum::Json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Refused;
use crate::api::{WhatIf, WhatIfQuery};
use crate::serve::Shared;
use crate::serve::answer::{Answer, QueryRequest};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(what_if))
}

/// Simulates the jobs of a period under other settings. It may take a minute; the answer is cached.
#[utoipa::path(get, path = "/v1/what-if", params(WhatIfQuery), responses((status = 200, body = WhatIf), Refused))]
pub(super) async fn what_if(QueryRequest { shared, caller, query }: QueryRequest<WhatIfQuery>) -> Answer<WhatIf> {
    // The answer has only sums over all jobs, which all users may see.
    let _permit = shared.simulations.take(caller.uid).await?;
    shared.what_ifs.answer(query).await.map(Json)
}
