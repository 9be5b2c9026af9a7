//! Lists of jobs, sums of energy, and events.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use carma_core::JobId;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Refused;
use crate::api::{
    ArrayQuery, ArraySummary, EnergyQuery, EnergyReport, EventQuery, HistoryOrder, HistoryQuery, JobDetail, JobSummary, MAX_ROWS, Problem,
    Queue, QueueQuery, ShareRow, TimedUpdate, UserQuery, UserSummary,
};
use crate::configuration::EnergyConfig;
use crate::engine::Unfinished;
use crate::serve::Shared;
use crate::serve::answer::{Answer, LongAnswer, QueryRequest};
use crate::serve::caller::Caller;
use crate::serve::detail::detail;
use crate::serve::privacy::Redact;
use crate::serve::users::{group_name, user_name};
use crate::store::{JobFilter, JobHistory, Reader, Span};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(queue))
        .routes(routes!(history))
        .routes(routes!(export))
        .routes(routes!(arrays))
        .routes(routes!(users))
        .routes(routes!(energy))
        .routes(routes!(shares))
        .routes(routes!(events))
}

/// Default number of jobs in a page.
const DEFAULT_PAGE: u32 = 100;
/// Jobs of an export that are in memory at once.
const EXPORTED_AT_ONCE: u32 = 16;
/// Interval of keep-alive messages.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Unfinished jobs, at most 1,000 in one answer.
#[utoipa::path(get, path = "/v1/queue", params(QueueQuery), responses((status = 200, body = Queue), Refused))]
pub(super) async fn queue(QueryRequest { shared, caller, query }: QueryRequest<QueueQuery>) -> Result<LongAnswer, Problem> {
    let _permit = shared.queue_queries.take(caller.uid).await?;
    let queue = shared.handle.of(caller.uid).queue(query).await?;
    shared.long_answer(caller.uid, queue).await
}

/// The fair share of users. Empty without fair share.
#[utoipa::path(get, path = "/v1/shares", responses((status = 200, body = Vec<ShareRow>), Refused))]
pub(super) async fn shares(State(shared): State<Arc<Shared>>, caller: Caller) -> Answer<Vec<ShareRow>> {
    shared.shares(&caller).await.map(Json)
}

/// Jobs, the latest first, at most 1,000 in one answer. The next page is `before` the last job.
#[utoipa::path(get, path = "/v1/history", params(HistoryQuery), responses((status = 200, body = Vec<JobSummary>), Refused))]
pub(super) async fn history(QueryRequest { shared, caller, query }: QueryRequest<HistoryQuery>) -> Result<LongAnswer, Problem> {
    let (filter, before, order) = (filter(&query), query.before, query.order);
    let (user, most) = (caller.uid, query.limit.unwrap_or(DEFAULT_PAGE).min(MAX_ROWS));
    let read = move |reader: &Reader| match order {
        HistoryOrder::Number => reader.history(&filter, before, most),
        HistoryOrder::Ended => reader.recently_finished(&filter, before, most),
    };
    let visible = move |job: JobSummary| {
        let view = caller.view(job.user.0);
        job.visible_to(view)
    };
    let page = move |reader: &Reader| LongAnswer::new(&read(reader)?.into_iter().map(visible).collect::<Vec<_>>());
    shared.readers.read(user, page).await
}

fn filter(query: &HistoryQuery) -> JobFilter {
    JobFilter {
        user: query.user,
        phase: query.state,
        outcome: query.outcome,
        name: query.name.clone(),
        text: query.text.clone(),
        array: query.array,
        submitted: Span { since: query.since, until: query.until },
    }
}

/// The states of the jobs of some arrays, at most 100.
#[utoipa::path(get, path = "/v1/arrays", params(ArrayQuery), responses((status = 200, body = Vec<ArraySummary>), Refused))]
pub(super) async fn arrays(QueryRequest { shared, caller, query }: QueryRequest<ArrayQuery>) -> Answer<Vec<ArraySummary>> {
    shared.readers.read(caller.uid, move |reader| Ok(reader.arrays(&query.ids.0)?)).await.map(Json)
}

/// Users with their jobs, time on GPUs and energy in a period.
#[utoipa::path(get, path = "/v1/users", params(UserQuery), responses((status = 200, body = Vec<UserSummary>), Refused))]
pub(super) async fn users(QueryRequest { shared, caller, query }: QueryRequest<UserQuery>) -> Answer<Vec<UserSummary>> {
    let (span, now) = (Span { since: query.since, until: query.until }, shared.handle.now());
    shared.readers.read(caller.uid, move |reader| Ok(reader.users(query.user, span, now)?)).await.map(Json)
}

/// Everything about jobs, the latest first, one job per line; all jobs unless there is a limit. Jobs of other users do not show what they run.
#[utoipa::path(
    get,
    path = "/v1/export",
    params(HistoryQuery),
    responses((status = 200, body = JobDetail, content_type = "application/x-ndjson"), Refused)
)]
pub(super) async fn export(QueryRequest { shared, caller, query }: QueryRequest<HistoryQuery>) -> Result<Response, Problem> {
    let first = shared.export_page(&caller, &query, query.before, query.limit.unwrap_or(u32::MAX)).await?;
    let (lines, stream) = mpsc::channel(1);
    tokio::spawn(async move {
        // A client that disconnects ends it. If the store fails, the client gets an incomplete answer.
        if let Err(Some(problem)) = shared.send_export(&caller, &query, first, &lines).await {
            let _ = lines.send(Err(io::Error::other(problem))).await;
        }
    });
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(ReceiverStream::new(stream))).into_response())
}

/// A few jobs of an export, and the last number that was read.
struct ExportPage {
    lines: Vec<Bytes>,
    last: Option<JobId>,
}

impl Shared {
    /// The fair share of users, with their names.
    pub(super) async fn shares(&self, caller: &Caller) -> Result<Vec<ShareRow>, Problem> {
        let mut shares = self.handle.of(caller.uid).shares().await?;
        // A lookup may go over the network.
        let named = move || {
            for share in &mut shares {
                share.user = user_name(share.uid).unwrap_or_else(|| share.uid.to_string());
                share.group = group_name(share.gid).unwrap_or_else(|| share.gid.to_string());
            }
            shares
        };
        self.blocking.run(caller.uid, named).await
    }

    /// The next few jobs of an export, one per line.
    async fn export_page(&self, caller: &Caller, query: &HistoryQuery, before: Option<JobId>, most: u32) -> Result<ExportPage, Problem> {
        let (filter, user, caller) = (filter(query), caller.uid, caller.clone());
        let line = move |job: JobHistory| {
            let view = caller.view(job.job.owner.uid);
            let mut line = serde_json::to_vec(&detail(job, Unfinished::default()).visible_to(view)).unwrap_or_default();
            line.push(b'\n');
            Bytes::from(line)
        };
        self.readers
            .read(user, move |reader| {
                let page = reader.history(&filter, before, most.min(EXPORTED_AT_ONCE))?;
                let jobs = page.iter().filter_map(|job| reader.job(job.id).transpose()).collect::<Result<Vec<_>, _>>()?;
                Ok(ExportPage { lines: jobs.into_iter().map(line).collect(), last: page.last().map(|job| job.id) })
            })
            .await
    }

    async fn send_export(
        &self,
        caller: &Caller,
        query: &HistoryQuery,
        first: ExportPage,
        lines: &mpsc::Sender<io::Result<Bytes>>,
    ) -> Result<(), Option<Problem>> {
        let mut page = first;
        let mut left = query.limit.unwrap_or(u32::MAX);
        while let Some(before) = page.last {
            left = left.saturating_sub(page.lines.len() as u32);
            for line in page.lines {
                lines.send(Ok(line)).await.map_err(|_| None)?;
            }
            if left == 0 {
                break;
            }
            page = self.export_page(caller, query, Some(before), left).await?;
        }
        Ok(())
    }
}

/// Sums of energy, with price and carbon intensity.
#[utoipa::path(get, path = "/v1/energy", params(EnergyQuery), responses((status = 200, body = EnergyReport), Refused))]
pub(super) async fn energy(QueryRequest { shared, caller, query }: QueryRequest<EnergyQuery>) -> Answer<EnergyReport> {
    let ended = Span { since: query.since, until: query.until };
    let sums = shared.readers.read(caller.uid, move |reader| Ok(reader.energy(query.by, query.ahead, query.user, ended)?)).await?;
    let EnergyConfig { price, currency, carbon } = shared.settings.energy.clone();
    Ok(Json(EnergyReport { sums, price, currency, carbon }))
}

/// Server-sent events. `job`, `gpus` and `machine` are live updates. With `after`, `kept` events are stored events with their number as id. A client that
/// does not read in time is disconnected.
#[utoipa::path(
    get,
    path = "/v1/events",
    params(EventQuery),
    responses((status = 200, body = TimedUpdate, content_type = "text/event-stream"), Refused)
)]
pub(super) async fn events(
    headers: HeaderMap,
    QueryRequest { shared, caller, query }: QueryRequest<EventQuery>,
) -> Result<Response, Problem> {
    // Browsers send this when they reconnect.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let stream = shared.events(caller, last.or(query.after)).await?;
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response())
}
