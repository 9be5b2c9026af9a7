//! The terminal of an interactive job: the connection becomes a stream of bytes to and from its supervisor.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use carma_core::AttemptId;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;

use super::{JobPath, Refused};
use crate::api::{Problem, ProblemKind};
use crate::serve::Shared;
use crate::serve::access::Caller;
use crate::serve::naming::JobName;
use crate::store::Phase;
use crate::supervise::AttemptFolder;
use crate::terminal;

/// What the connection is to become.
const PROTOCOL: &str = "carma-terminal";

/// Joins a running interactive job's terminal: its own, or anybody's for root. Ask with `Connection: upgrade` and `Upgrade: carma-terminal`.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/terminal",
    params(JobPath),
    responses((status = 101, description = "What follows are the terminal's bytes."), Refused)
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
        upgrade.ok_or_else(|| ProblemKind::Invalid.because(format!("ask with the headers Connection: upgrade and Upgrade: {PROTOCOL}")))?;
    if !matches!(job.phase, Phase::Starting | Phase::Running) {
        return Err(ProblemKind::Conflict.because(format!("{} is {}, and has a terminal only while it runs", job.id, job.phase)));
    }
    let id = job.id;
    let folder = AttemptFolder::of(&shared.places.state, AttemptId { job: id, number: job.attempts });
    let terminal = connect(folder).await.map_err(|error| ProblemKind::Conflict.because(format!("{id} cannot be joined: {error}")))?;
    tokio::spawn(relay(upgrade, terminal));
    let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS).header(CONNECTION, "upgrade").header(UPGRADE, PROTOCOL);
    answer.body(Body::empty()).map_err(|error| ProblemKind::Internal.because(error.to_string()))
}

async fn connect(folder: AttemptFolder) -> io::Result<UnixStream> {
    let stream = spawn_blocking(move || terminal::connect(&folder)).await.map_err(io::Error::other)??;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Until one of the two ends.
async fn relay(upgrade: OnUpgrade, mut terminal: UnixStream) {
    if let Ok(client) = upgrade.await {
        // Whoever is left sees the end for themselves.
        let _ = copy_bidirectional(&mut TokioIo::new(client), &mut terminal).await;
    }
}
