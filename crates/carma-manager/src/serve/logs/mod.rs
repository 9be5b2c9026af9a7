//! Logs of attempts, whole or followed.

mod cursor;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use carma_core::{AttemptId, JobId};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use super::Shared;
use crate::api::{LogQuery, LogStream, Problem, ProblemKind};
use crate::store::{JobSummary, Phase};
use crate::supervise::AttemptFolder;
use cursor::LogCursor;

/// How often a followed log is read.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(100);
/// A day. A client that follows a job for longer asks again.
const MAX_WAIT: Duration = Duration::from_secs(86_400);
/// Pieces that are read ahead of the client.
const AHEAD: usize = 4;

/// The pieces of a log. An end without an error is the end of the log.
type Pieces = mpsc::Sender<io::Result<Bytes>>;

impl Shared {
    /// The requested log as a body.
    pub(super) async fn log(self: Arc<Self>, job: &JobSummary, query: LogQuery) -> Result<Body, Problem> {
        let (pieces, stream) = mpsc::channel(AHEAD);
        let number = query.attempt.unwrap_or(job.attempts);
        match () {
            () if query.attempt.is_some_and(|attempt| attempt == 0 || attempt > job.attempts) => {
                let had = format!("{} has had {} attempts, and no attempt {number}", job.id, job.attempts);
                return Err(ProblemKind::NotFound.because(had));
            }
            () if number == 0 && (!query.follow || job.phase == Phase::Done) => {
                return Err(ProblemKind::Conflict.because(format!("{} has not been started, and has no log", job.id)));
            }
            () if number == 0 => drop(tokio::spawn(self.follow_once_started(job.id, query, pieces))),
            () => {
                let log = self.open(AttemptId { job: job.id, number }, query).await?;
                let end = if query.follow { None } else { Some(log.end) };
                tokio::spawn(async move {
                    match end {
                        Some(end) => drop(log.send_rest(&pieces, end).await),
                        None => self.follow(log, pieces).await,
                    }
                });
            }
        }
        Ok(Body::from_stream(ReceiverStream::new(stream)))
    }

    async fn open(&self, attempt: AttemptId, query: LogQuery) -> Result<Log, Problem> {
        let folder = AttemptFolder::of(&self.places.state, attempt);
        let unreadable = |error: String| ProblemKind::Internal.because(format!("the log of {attempt} cannot be read: {error}"));
        let opened = spawn_blocking(move || {
            let limit = folder.order().map_err(io::Error::other)?.map(|order| order.log_limit);
            let path = if query.stream == LogStream::Stdout { folder.output() } else { folder.errors() };
            let mut cursor = LogCursor::new(path, limit);
            query.lines.map_or(Ok(()), |lines| cursor.seek_last_lines(lines))?;
            let end = cursor.end()?;
            io::Result::Ok(Log { attempt, folder, cursor, end })
        });
        opened.await.map_err(|error| unreadable(error.to_string()))?.map_err(|error| unreadable(error.to_string()))
    }

    async fn follow_once_started(self: Arc<Self>, job: JobId, query: LogQuery, pieces: Pieces) {
        let started = self.wait_until(job, Instant::now() + MAX_WAIT, |job| job.attempts > 0 || job.phase == Phase::Done);
        let started = tokio::select! {
            started = started => started,
            () = pieces.closed() => return,
        };
        match started {
            Ok(started) if started.attempts > 0 => match self.open(AttemptId { job, number: 1 }, query).await {
                Ok(log) => self.follow(log, pieces).await,
                Err(problem) => drop(pieces.send(Err(io::Error::other(problem))).await),
            },
            // It ended without a start: its log is empty.
            Ok(_) => {}
            Err(problem) => drop(pieces.send(Err(io::Error::other(problem))).await),
        }
    }

    /// Sends the log as it grows, until the attempt is over.
    async fn follow(self: Arc<Self>, mut log: Log, pieces: Pieces) {
        let mut job_updates = self.job_updates(log.attempt.job);
        let mut last_check = None;
        loop {
            // Checked before the read, so that the read has everything up to the end.
            let ended = self.has_ended(&log, &mut last_check).await;
            log = match log.send_rest(&pieces, u64::MAX).await {
                Some(log) => log,
                None => return,
            };
            if ended {
                return;
            }
            tokio::select! {
                () = pieces.closed() => return,
                () = job_updates.wait(FOLLOW_INTERVAL) => {}
            }
        }
    }

    /// Whether an attempt is over: by the record of its supervisor, or by the store for a lost one.
    async fn has_ended(&self, log: &Log, last_check: &mut Option<Instant>) -> bool {
        let (attempt, folder) = (log.attempt, log.folder.clone());
        if spawn_blocking(move || matches!(folder.ended(), Ok(Some(_)))).await.unwrap_or(false) {
            return true;
        }
        if last_check.is_some_and(|last_check| last_check.elapsed() < Duration::from_secs(1)) {
            return false;
        }
        *last_check = Some(Instant::now());
        let job = self.readers.read(move |reader| Ok(reader.summary(attempt.job)?)).await;
        // It is over if a later attempt exists, or if the job does not run.
        let runs = |job: &JobSummary| job.attempts == attempt.number && matches!(job.phase, Phase::Starting | Phase::Running);
        job.is_ok_and(|job| !job.as_ref().is_some_and(runs))
    }
}

/// An open log.
struct Log {
    attempt: AttemptId,
    folder: AttemptFolder,
    cursor: LogCursor,
    /// Its length when it was opened.
    end: u64,
}

impl Log {
    /// Sends the log up to a position. Returns nothing when the client is gone.
    async fn send_rest(mut self, pieces: &Pieces, until: u64) -> Option<Self> {
        while self.cursor.at() < until {
            let read = spawn_blocking(move || (self.cursor.read(), self)).await;
            let (piece, log) = read.ok()?;
            self = log;
            match piece {
                Ok(piece) if piece.is_empty() => break,
                Ok(piece) => pieces.send(Ok(piece.into())).await.ok()?,
                Err(error) => {
                    let _ = pieces.send(Err(error)).await;
                    return None;
                }
            }
        }
        Some(self)
    }
}
