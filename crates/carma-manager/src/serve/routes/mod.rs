//! What can be asked for. The `OpenAPI` document is made from the same routes, so that it cannot say anything else.

mod acts;
mod gpus;
mod jobs;
mod lists;
mod manager;
mod metrics;
mod notifications;
mod submit;
mod terminal;
mod what_if;

pub(super) use metrics::{Told, alone as metrics_alone};
pub(super) use submit::submission_turns;

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Shared;
use super::answer::{no_such_path, wrong_method};
use crate::api::{EnergyKind, HistoryOrder, LogStream, Problem, ProblemKind};

/// What every answer may also be.
#[derive(utoipa::IntoResponses)]
#[response(status = "default", description = "Why not: nothing was changed.")]
#[expect(dead_code, reason = "it stands for its schema alone")]
struct Refused(#[to_schema] Problem);

#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "it stands for its schema alone")]
struct JobPath {
    /// `12`, `12_3` (index 3 of array 12), `last` or `@name`; for what is done to jobs, the number of an array means all of its jobs.
    job: String,
}

#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "it stands for its schema alone")]
struct GpuPath {
    /// `s0/gpu3` (with / as %2F), `gpu3` or `3`.
    gpu: String,
}

#[derive(OpenApi)]
#[openapi(
    components(schemas(EnergyKind, HistoryOrder, LogStream, ProblemKind)),
    info(
        title = "CARMA",
        description = "Submit jobs to a server with GPUs, and see what becomes of them. Over the Unix socket callers are known by who they are; over TCP by a token \
                   (`Authorization: Bearer TOKEN`). Errors are always a `Problem`.",
        contact(),
        license(name = "MIT OR Apache-2.0")
    )
)]
struct Document;

/// All routes, and the document that describes them.
pub(super) fn described() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(submit::submit))
        .routes(routes!(submit::forecast))
        .routes(routes!(jobs::show, acts::change))
        .routes(routes!(jobs::why))
        .routes(routes!(jobs::wait))
        .routes(routes!(jobs::logs))
        .routes(routes!(terminal::join))
        .routes(routes!(acts::cancel))
        .routes(routes!(acts::hold))
        .routes(routes!(acts::release))
        .routes(routes!(acts::requeue))
        .routes(routes!(lists::queue))
        .routes(routes!(lists::history))
        .routes(routes!(lists::export))
        .routes(routes!(lists::energy))
        .routes(routes!(lists::shares))
        .routes(routes!(lists::events))
        .routes(routes!(gpus::gpus))
        .routes(routes!(gpus::samples))
        .routes(routes!(gpus::timeline))
        .routes(routes!(gpus::recent))
        .routes(routes!(gpus::drain))
        .routes(routes!(gpus::resume))
        .routes(routes!(notifications::show, notifications::set))
        .routes(routes!(notifications::test))
        .routes(routes!(what_if::what_if))
        .routes(routes!(manager::status))
        .routes(routes!(manager::me))
        .routes(routes!(manager::configuration))
        .routes(routes!(manager::reload))
        .routes(routes!(manager::shutdown))
        .routes(routes!(metrics::metrics))
}

/// Everything that is served.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let (router, document) = described().split_for_parts();
    let document = document.to_json().unwrap_or_default();
    router
        .route("/v1/openapi.json", get(async move || ([(CONTENT_TYPE, "application/json")], document)))
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(shared)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_document_has_every_route_and_reads_back() {
        let text = described().into_openapi().to_pretty_json().unwrap();
        let document: utoipa::openapi::OpenApi = serde_json::from_str(&text).unwrap();
        let value = serde_json::to_value(&document).unwrap();
        let paths = value["paths"].as_object().unwrap();
        let operations = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().iter().filter(|(_, operation)| operation.get("operationId").is_some());
            methods.map(move |(method, operation)| format!("{method:5} {path:30} {}", operation["operationId"].as_str().unwrap()))
        });
        insta::assert_snapshot!("operations", operations.collect::<Vec<_>>().join("\n"));
        // What is referred to is there.
        let named: BTreeSet<&str> =
            text.match_indices("#/components/schemas/").map(|(at, _)| text[at + 21..].split('"').next().unwrap()).collect();
        let missing: Vec<_> = named.iter().filter(|name| value["components"]["schemas"].get(name).is_none()).collect();
        assert!(missing.is_empty() && named.contains("JobRequest"), "missing: {missing:?}");
    }
}
