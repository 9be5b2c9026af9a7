//! The terminal of an interactive job: the connection becomes a stream of bytes to and from its supervisor.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use carma_core::AttemptId;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy, split};
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{JobPath, Refused};
use crate::api::{Problem, ProblemKind};
use crate::serve::Shared;
use crate::serve::caller::Caller;
use crate::serve::connection_limit::SharedSlot;
use crate::serve::naming::JobName;
use crate::store::Phase;
use crate::supervise::{AttemptFolder, connect_terminal};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(join))
}

/// The protocol of the upgraded connection.
const PROTOCOL: &str = "carma-terminal";
/// Timeout for closing a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Attaches to the terminal of a running interactive job. Only the job's user and root may. Send `Connection: upgrade` and `Upgrade: carma-terminal`.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/terminal",
    params(JobPath),
    responses((status = 101, description = "The bytes of the terminal follow."), Refused)
)]
pub(super) async fn join(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    name: JobName,
    mut request: Request,
) -> Result<Response, Problem> {
    let job = shared.find(name, &caller).await?;
    caller.must_be(job.user.0, "use its terminal")?;
    let asked = |headers: &HeaderMap| headers.get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(PROTOCOL.as_bytes()));
    let upgrade = request.extensions_mut().remove::<OnUpgrade>().filter(|_| asked(request.headers()));
    let upgrade =
        upgrade.ok_or_else(|| ProblemKind::Invalid.because(format!("send the headers Connection: upgrade and Upgrade: {PROTOCOL}")))?;
    if !matches!(job.phase, Phase::Starting | Phase::Running) {
        return Err(ProblemKind::Conflict.because(format!("{} is {}, and has a terminal only while it runs", job.label(), job.phase)));
    }
    let id = job.id;
    let attempt = AttemptId { job: id, number: job.attempts };
    let terminal = connect(&shared, attempt)
        .await
        .map_err(|error| ProblemKind::Conflict.because(format!("the terminal of {id} cannot be opened: {error}")))?;
    tokio::spawn(relay(upgrade, terminal, request.extensions_mut().remove()));
    let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS).header(CONNECTION, "upgrade").header(UPGRADE, PROTOCOL);
    answer.body(Body::empty()).map_err(|error| ProblemKind::Internal.because(error.to_string()))
}

async fn connect(shared: &Shared, attempt: AttemptId) -> io::Result<UnixStream> {
    let stream = if let Some(stream) = shared.handle.remote_terminal(attempt) {
        stream?
    } else {
        let folder = AttemptFolder::of(&shared.places.state, attempt);
        spawn_blocking(move || connect_terminal(&folder)).await.map_err(io::Error::other)??
    };
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Keeps the slot of the connection that it was.
async fn relay(upgrade: OnUpgrade, terminal: UnixStream, _slot: Option<SharedSlot>) {
    if let Ok(client) = upgrade.await {
        copy_both_ways(TokioIo::new(client), terminal).await;
    }
}

/// Copies bytes in both directions until one side ends.
async fn copy_both_ways(client: impl AsyncRead + AsyncWrite, terminal: impl AsyncRead + AsyncWrite) {
    let (mut typed, mut screen) = split(client);
    let (mut printed, mut keyboard) = split(terminal);
    tokio::select! {
        _ = copy(&mut typed, &mut keyboard) => {}
        _ = copy(&mut printed, &mut screen) => {
            let _ = timeout(CLOSE_TIMEOUT, screen.shutdown()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, duplex};

    use super::*;

    #[tokio::test]
    async fn the_relay_ends_when_either_side_ends() {
        let (mut user, client) = duplex(64);
        let (mut shim, terminal) = duplex(64);
        shim.write_all(b"bye").await.unwrap();
        shim.shutdown().await.unwrap();
        copy_both_ways(client, terminal).await;
        let mut seen = String::new();
        user.read_to_string(&mut seen).await.unwrap();
        assert_eq!(seen, "bye");

        let (mut user, client) = duplex(64);
        let (mut shim, terminal) = duplex(64);
        user.write_all(b"exit").await.unwrap();
        user.shutdown().await.unwrap();
        copy_both_ways(client, terminal).await;
        let mut received = String::new();
        shim.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, "exit");
    }
}
