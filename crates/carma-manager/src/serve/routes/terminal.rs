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
use tokio::io::copy_bidirectional;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use super::Refused;
use crate::api::{Problem, ProblemKind};
use crate::serve::Shared;
use crate::serve::access::Caller;
use crate::serve::naming::JobName;
use crate::store::Phase;
use crate::supervise::AttemptFolder;

/// What the connection is to become.
const PROTOCOL: &str = "carma-terminal";
/// A supervisor that has just been started may take so long to listen.
const PATIENCE: Duration = Duration::from_secs(5);

/// Joins a running interactive job's terminal. Ask with `Connection: upgrade` and `Upgrade: carma-terminal`.
#[utoipa::path(get, path = "/v1/jobs/{job}/terminal", params(("job" = String, Path, description = "12, 12_3, last or @name")), responses((status = 101, description = "What follows are the terminal's bytes."), Refused))]
pub(super) async fn terminal(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    name: JobName,
    mut request: Request,
) -> Result<Response, Problem> {
    let job = shared.find(name, &caller).await?;
    caller.must_own(job.user.0, "use its terminal")?;
    let asked = |headers: &HeaderMap| headers.get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(PROTOCOL.as_bytes()));
    let upgrade = request.extensions_mut().remove::<OnUpgrade>().filter(|_| asked(request.headers()));
    let upgrade =
        upgrade.ok_or_else(|| ProblemKind::Invalid.because(format!("ask with the headers Connection: upgrade and Upgrade: {PROTOCOL}")))?;
    if !matches!(job.phase, Phase::Starting | Phase::Running) {
        return Err(ProblemKind::Conflict.because(format!("{} is {}, and has a terminal only while it runs", job.id, job.phase)));
    }
    let id = job.id;
    let interactive = shared.readers.read(move |reader| Ok(reader.request(id)?.is_some_and(|request| request.interactive))).await?;
    if !interactive {
        return Err(ProblemKind::Conflict.because(format!("{id} has no terminal: it was submitted without --interactive")));
    }
    let folder = AttemptFolder::of(&shared.places.state, AttemptId { job: id, number: job.attempts });
    let terminal =
        connect(&folder).await.map_err(|error| ProblemKind::Unavailable.because(format!("{id} does not offer its terminal: {error}")))?;
    tokio::spawn(relay(upgrade, terminal));
    let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS).header(CONNECTION, "upgrade").header(UPGRADE, PROTOCOL);
    answer.body(Body::empty()).map_err(|error| ProblemKind::Internal.because(error.to_string()))
}

async fn connect(folder: &AttemptFolder) -> io::Result<UnixStream> {
    let (path, until) = (folder.path().join("terminal"), Instant::now() + PATIENCE);
    loop {
        match UnixStream::connect(&path).await {
            Err(_) if Instant::now() < until => sleep(Duration::from_millis(50)).await,
            result => return result,
        }
    }
}

/// Until one of the two ends.
async fn relay(upgrade: OnUpgrade, mut terminal: UnixStream) {
    if let Ok(client) = upgrade.await {
        // Whoever is left sees the end for themselves.
        let _ = copy_bidirectional(&mut TokioIo::new(client), &mut terminal).await;
    }
}
