//! Parsing of requests. Every error is a [`Problem`].

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinError;
use tokio::time::timeout;

use super::Shared;
use super::caller::Caller;
use super::concurrency_limit::{ConcurrencyLimit, Permit};
use crate::api::{Problem, ProblemKind};

/// A JSON answer, or the error.
pub(super) type Answer<T> = Result<Json<T>, Problem>;

/// The largest accepted body.
pub(super) const MAX_BODY: usize = 32 << 20;
/// A client that has sent more than this waits for a permit to send the rest, so that many at once do not fill the memory.
pub(super) const LARGE: usize = 256 << 10;
/// Timeout for a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self)).into_response()
    }
}

/// The query of a request.
#[derive(Debug)]
pub(super) struct UrlQuery<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for UrlQuery<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::from_request_parts(parts, state).await;
        let refused = |rejection: QueryRejection| {
            let name = form_value(parts.uri.query().unwrap_or_default(), "user").filter(|user| user.parse::<u32>().is_err());
            let words = name.map(|name| format!("user={name}: give the number of the user (uid), as `id -u NAME` prints it"));
            ProblemKind::Invalid.because(words.unwrap_or_else(|| rejection.body_text()))
        };
        query.map(|Query(query)| Self(query)).map_err(refused)
    }
}

/// The value of a key in a query.
fn form_value<'q>(query: &'q str, key: &str) -> Option<&'q str> {
    query.split('&').find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key).map(|(_, value)| value))
}

/// A request with a query, as most routes take it.
#[derive(Debug)]
pub(super) struct QueryRequest<T> {
    pub(super) shared: Arc<Shared>,
    pub(super) caller: Caller,
    pub(super) query: T,
}

impl<T: DeserializeOwned> FromRequestParts<Arc<Shared>> for QueryRequest<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, shared).await?;
        let UrlQuery(query) = UrlQuery::from_request_parts(parts, shared).await?;
        Ok(Self { shared: Arc::clone(shared), caller, query })
    }
}

impl From<JoinError> for Problem {
    fn from(error: JoinError) -> Self {
        ProblemKind::Internal.because(error.to_string())
    }
}

impl Shared {
    /// Runs long work of a user on another thread, so that other requests do not wait.
    pub(super) async fn off_thread<T: Send + 'static>(
        &self,
        user: u32,
        long: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        if long { self.blocking.run(user, work).await } else { Ok(work()) }
    }

    /// A long answer to a user, written in their turn: others do not wait for it.
    pub(super) async fn long_answer(&self, user: u32, answer: impl Serialize + Send + 'static) -> Result<LongAnswer, Problem> {
        self.blocking.run(user, move || LongAnswer::new(&answer)).await?
    }
}

/// A JSON answer that is written already.
#[derive(Debug)]
pub(super) struct LongAnswer(Vec<u8>);

impl LongAnswer {
    pub(super) fn new(answer: &impl Serialize) -> Result<Self, Problem> {
        serde_json::to_vec(answer).map(Self).map_err(|error| ProblemKind::Internal.because(error.to_string()))
    }
}

impl IntoResponse for LongAnswer {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

/// The body of a request, its size, and the permit of a large one.
#[derive(Debug)]
pub(super) struct JsonBody<T> {
    pub(super) value: T,
    pub(super) size: usize,
    pub(super) permit: Option<Permit>,
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<Shared>> for JsonBody<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Problem> {
        if announced(request.headers()).is_some_and(|size| size > MAX_BODY) {
            return Err(too_large());
        }
        let uid = request.extensions().get().map_or(u32::MAX, |caller: &Caller| caller.uid);
        let received = timeout(BODY_TIMEOUT, receive(request.into_body(), &shared.large_bodies, uid)).await;
        let (body, permit) = received.map_err(|_| ProblemKind::Invalid.because("the request body did not arrive within a minute"))??;
        let size = body.len();
        let value = shared.off_thread(uid, permit.is_some(), move || parse(&body)).await??;
        Ok(Self { value, size, permit })
    }
}

fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads a whole body. Only received bytes count: a client that announces much and sends little blocks no other.
async fn receive(body: Body, limit: &ConcurrencyLimit, uid: u32) -> Result<(Vec<u8>, Option<Permit>), Problem> {
    let mut body = Limited::new(body, MAX_BODY);
    let (mut received, mut permit) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
            Some(_) => too_large(),
            None => ProblemKind::Invalid.because(format!("the request body did not arrive: {error}")),
        })?;
        received.extend_from_slice(&frame.into_data().unwrap_or_default());
        if permit.is_none() && received.len() > LARGE {
            permit = Some(limit.take(uid).await?);
        }
    }
    Ok((received, permit))
}

fn too_large() -> Problem {
    ProblemKind::TooLarge.because(format!("a request may have at most {} MiB", MAX_BODY >> 20))
}

/// Parses JSON. An empty body is an empty object.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let body = if body.is_empty() { b"{}" } else { body };
    Json::from_bytes(body).map(|Json(value)| value).map_err(|rejection| ProblemKind::Invalid.because(rejection.body_text()))
}

/// The answer for an unknown path.
pub(super) async fn no_such_path(request: Request) -> Problem {
    ProblemKind::NotFound.because(format!("{} does not exist: see /v1/openapi.json", request.uri().path()))
}

/// The answer for a method that a path does not have.
pub(super) async fn wrong_method(request: Request) -> Problem {
    ProblemKind::WrongMethod.because(format!("{} is not supported for {}: see /v1/openapi.json", request.method(), request.uri().path()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Shutdown, Submission};

    #[tokio::test]
    async fn only_what_has_arrived_takes_a_turn() {
        let limit = ConcurrencyLimit::new(1, 1);
        let (small, large) = (Body::from(vec![b' '; LARGE]), Body::from(vec![b' '; LARGE + 1]));
        assert!(receive(small, &limit, 1).await.unwrap().1.is_none());
        let (body, permit) = receive(large, &limit, 1).await.unwrap();
        assert!(body.len() == LARGE + 1 && permit.is_some());
        // While that permit is taken, a small body is still received.
        assert!(receive(Body::from("{}"), &limit, 1).await.is_ok());
        assert_eq!(
            receive(Body::from(vec![0; MAX_BODY + 1]), &ConcurrencyLimit::new(1, 1), 1).await.unwrap_err().kind,
            ProblemKind::TooLarge
        );
    }

    #[test]
    fn mistakes_in_a_body_are_reported_with_their_place() {
        let wrong = |body: &str| parse::<Submission>(body.as_bytes()).unwrap_err();
        let problem = wrong("{\"job\": {\"command\": {\"program\": [1]}}}");
        assert_eq!(problem.kind, ProblemKind::Invalid);
        assert!(problem.message.contains("job.command.program[0]") && problem.message.contains("line 1"), "{problem}");
        assert!(wrong("{\"job\"").message.contains("line 1 column 6"), "{}", wrong("{\"job\""));
        assert!(wrong("{} x").message.contains("job"), "{}", wrong("{} x"));
        assert_eq!(parse::<Shutdown>(b"").unwrap(), Shutdown::default());
    }
}
