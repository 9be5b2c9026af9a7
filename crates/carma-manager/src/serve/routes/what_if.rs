//! What would have been.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::Refused;
use crate::api::{WhatIf, WhatIfQuery};
use crate::serve::Shared;
use crate::serve::access::Caller;
use crate::serve::answer::{Answer, Asked};

/// What would have become of the jobs of a time by other rules, simulated. It may take a minute; the same question is answered at once for another.
#[utoipa::path(get, path = "/v1/what-if", params(WhatIfQuery), responses((status = 200, body = WhatIf), Refused))]
pub(super) async fn what_if(State(shared): State<Arc<Shared>>, caller: Caller, Asked(query): Asked<WhatIfQuery>) -> Answer<WhatIf> {
    // All that is told are sums over everybody's jobs, which anybody may see.
    let _turn = shared.simulations.take(caller.uid).await?;
    shared.what_ifs.answer(query).await.map(Json)
}
