//! All routes. The `OpenAPI` document is generated from them.

mod actions;
mod cluster;
mod gpus;
mod jobs;
mod lists;
mod manager;
mod metrics;
mod notifications;
mod other_events;
mod resubmit;
mod submit;
mod terminal;
mod users;
mod what_if;

pub(super) use metrics::{MetricsCache, alone as metrics_alone};
pub(super) use submit::submission_limit;

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use self::other_events::OtherEvents;
use super::Shared;
use super::answer::{no_such_path, wrong_method};
use crate::api::{EnergyKind, HistoryOrder, LogStream, OutcomeFilter, Problem, ProblemKind};

/// The error answer of every route.
#[derive(utoipa::IntoResponses)]
#[response(status = "default", description = "An error. Nothing was changed.")]
#[expect(dead_code, reason = "it stands for its schema alone")]
struct Refused(#[to_schema] Problem);

#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "it stands for its schema alone")]
struct JobPath {
    /// `12`, `12_3` (index 3 of array 12), `last` or `@name`. In actions, the number of an array means all its jobs.
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
    components(schemas(EnergyKind, HistoryOrder, LogStream, OutcomeFilter, ProblemKind)),
    modifiers(&OtherEvents),
    info(
        title = "CARMA",
        description = "Submit jobs to a server with GPUs, and follow them. Callers are identified by the Unix socket, or over TCP by a token \
                   (`Authorization: Bearer TOKEN`). Errors are always a `Problem`.",
        contact(),
        license(name = "MIT OR Apache-2.0")
    )
)]
struct Document;

/// All routes, and the document that describes them.
pub(super) fn api_router() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(submit::routes())
        .merge(resubmit::routes())
        .merge(jobs::routes())
        .merge(terminal::routes())
        .merge(actions::routes())
        .merge(lists::routes())
        .merge(users::routes())
        .merge(gpus::routes())
        .merge(cluster::routes())
        .merge(notifications::routes())
        .merge(what_if::routes())
        .merge(manager::routes())
        .merge(metrics::routes())
}

/// The router with all routes.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let (router, document) = api_router().split_for_parts();
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
    fn the_document_has_every_route_and_every_schema_it_refers_to() {
        let text = api_router().into_openapi().to_pretty_json().unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let paths = value["paths"].as_object().unwrap();
        let operations = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().iter().filter(|(_, operation)| operation.get("operationId").is_some());
            methods.map(move |(method, operation)| format!("{method:5} {path:30} {}", operation["operationId"].as_str().unwrap()))
        });
        insta::assert_snapshot!("operations", operations.collect::<Vec<_>>().join("\n"));
        // All references have a target.
        let named: BTreeSet<&str> =
            text.match_indices("#/components/schemas/").map(|(at, _)| text[at + 21..].split('"').next().unwrap()).collect();
        let missing: Vec<_> = named.iter().filter(|name| value["components"]["schemas"].get(name).is_none()).collect();
        assert!(missing.is_empty() && named.contains("JobRequest"), "missing: {missing:?}");
    }

    /// The types of the web page and of other clients come from this file.
    #[test]
    fn the_document_in_the_repository_is_that_of_the_program() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/openapi.json");
        let document = api_router().into_openapi().to_pretty_json().unwrap() + "\n";
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            std::fs::write(file, &document).unwrap();
        }
        let renew = "set INSTA_UPDATE=always to renew it, then run `npm run types` in web/";
        assert!(std::fs::read_to_string(file).unwrap_or_default() == document, "web/openapi.json differs from the program: {renew}");
    }

    #[test]
    fn the_document_says_what_every_object_holds() {
        fn look(value: &serde_json::Value, path: &str, found: &mut Vec<String>) {
            let holds = |key: &str| value.get(key).is_some();
            // An event may say nothing but its kind.
            let empty_event = path.starts_with("/components/schemas/JobEvent/");
            if value["type"] == "object" && !empty_event && !["properties", "additionalProperties", "oneOf", "allOf"].into_iter().any(holds)
            {
                found.push(path.to_owned());
            }
            for (key, inner) in value.as_object().into_iter().flatten() {
                look(inner, &format!("{path}/{key}"), found);
            }
            for (place, inner) in value.as_array().into_iter().flatten().enumerate() {
                look(inner, &format!("{path}/{place}"), found);
            }
        }
        let mut found = Vec::new();
        look(&serde_json::to_value(api_router().into_openapi()).unwrap(), "", &mut found);
        assert_eq!(found, [] as [String; 0]);
    }
}
