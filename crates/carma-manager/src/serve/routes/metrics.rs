//! Metrics for Prometheus: over the API, and on their own port.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Refused;
use crate::api::Problem;
use crate::metrics::{self, Process, Sources};
use crate::serve::Shared;
use crate::serve::answer::{no_such_path, wrong_method};
use crate::serve::caller::Caller;
use crate::turns::OWN;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// A request within this time gets the cached page, so that many requests cost no more than one.
const CACHE_TIME: Duration = Duration::from_millis(200);

/// The last page, and its time.
pub(in crate::serve) type MetricsCache = tokio::sync::Mutex<Option<(Instant, Bytes)>>;

/// Metrics in Prometheus's text format.
#[utoipa::path(get, path = "/metrics", responses((status = 200, body = String, content_type = "text/plain"), Refused))]
pub(super) async fn metrics(State(shared): State<Arc<Shared>>, _: Caller) -> Result<impl IntoResponse, Problem> {
    shared.metrics().await
}

/// The routes without authentication: only metrics.
pub(in crate::serve) fn alone(shared: Arc<Shared>) -> Router {
    let metrics = async |State(shared): State<Arc<Shared>>| shared.metrics().await;
    Router::new().route("/metrics", get(metrics)).fallback(no_such_path).method_not_allowed_fallback(wrong_method).with_state(shared)
}

impl Shared {
    async fn metrics(&self) -> Result<impl IntoResponse + use<>, Problem> {
        let mut cache = self.metrics_cache.lock().await;
        let page = match &*cache {
            Some((at, page)) if at.elapsed() < CACHE_TIME => page.clone(),
            _ => cache.insert((Instant::now(), self.metrics_page().await?)).1.clone(),
        };
        Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], page))
    }

    async fn metrics_page(&self) -> Result<Bytes, Problem> {
        let facts = self.handle.facts().await?;
        let (store, settings) = (Arc::clone(self.readers.store()), self.settings.metrics.clone());
        let make = move |reader: &crate::store::Reader| {
            let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
            let sources = Sources { facts, tallies: reader.tallies()?, store_size: store.size(), process: Process::own(), host };
            Ok(metrics::page(&sources, &settings).into())
        };
        self.readers.read(OWN, make).await
    }
}
