//! How requests are taken apart and answers put together: whatever is wrong is told as a [`Problem`].

use std::sync::LazyLock;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::api::{Problem, ProblemKind};

/// An answer in JSON, or why there is none.
pub(super) type Answer<T> = Result<Json<T>, Problem>;

/// The largest body that is taken.
pub(super) const LARGEST_BODY: usize = 32 << 20;
/// Larger bodies than this wait for their turn, so that many at once do not fill the memory.
const LARGE: usize = 256 << 10;
const LARGE_AT_ONCE: usize = 8;
/// A body must arrive within this.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

static TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(LARGE_AT_ONCE));

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self)).into_response()
    }
}

/// What a request says after the `?`.
#[derive(Debug)]
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::from_request_parts(parts, state).await;
        query.map(|Query(query)| Self(query)).map_err(|rejection| ProblemKind::Invalid.because(rejection.body_text()))
    }
}

/// The body of a request, and how large it was.
#[derive(Debug)]
pub(super) struct Sent<T> {
    pub(super) value: T,
    pub(super) size: usize,
}

impl<T: DeserializeOwned + Send + 'static, S: Sync> FromRequest<S> for Sent<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let announced = announced(request.headers());
        if announced.is_some_and(|size| size > LARGEST_BODY) {
            return Err(too_large());
        }
        let turn = if announced.is_none_or(|size| size > LARGE) { TURNS.acquire().await.ok() } else { None };
        let body = timeout(BODY_TIMEOUT, collect(request.into_body())).await;
        let body = body.map_err(|_| ProblemKind::Invalid.because("the body did not arrive within a minute"))??;
        let size = body.len();
        // A large one takes a while, which others need not wait for.
        let value = if turn.is_some() {
            spawn_blocking(move || parse(&body)).await.map_err(|error| ProblemKind::Internal.because(error.to_string()))?
        } else {
            parse(&body)
        }?;
        Ok(Self { value, size })
    }
}

fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn collect(body: Body) -> Result<Bytes, Problem> {
    let collected = Limited::new(body, LARGEST_BODY).collect().await.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => too_large(),
        None => ProblemKind::Invalid.because(format!("the body did not arrive: {error}")),
    })?;
    Ok(collected.to_bytes())
}

fn too_large() -> Problem {
    ProblemKind::TooLarge.because(format!("a request has {} MiB at most", LARGEST_BODY >> 20))
}

/// Reads JSON; nothing at all stands for an object that says nothing.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let body = if body.is_empty() { b"{}" } else { body };
    Json::from_bytes(body).map(|Json(value)| value).map_err(|rejection| ProblemKind::Invalid.because(rejection.body_text()))
}

/// What is told of a path that leads nowhere.
pub(super) async fn no_such_path(request: Request) -> Problem {
    ProblemKind::NotFound.because(format!("there is no {}: see /v1/openapi.json", request.uri().path()))
}

/// What is told of a method that a path does not have.
pub(super) async fn wrong_method(request: Request) -> Problem {
    ProblemKind::WrongMethod.because(format!("{} is not for {}: see /v1/openapi.json", request.method(), request.uri().path()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Shutdown, Submit};

    #[test]
    fn what_is_wrong_with_a_body_is_told_with_its_place() {
        let wrong = |body: &str| parse::<Submit>(body.as_bytes()).unwrap_err();
        let problem = wrong("{\"job\": {\"command\": {\"program\": [1]}}}");
        assert_eq!(problem.kind, ProblemKind::Invalid);
        assert!(problem.message.contains("job.command.program[0]") && problem.message.contains("line 1"), "{problem}");
        assert!(wrong("{\"job\"").message.contains("line 1 column 6"), "{}", wrong("{\"job\""));
        assert!(wrong("{} x").message.contains("job"), "{}", wrong("{} x"));
        assert_eq!(parse::<Shutdown>(b"").unwrap(), Shutdown::default());
    }
}
