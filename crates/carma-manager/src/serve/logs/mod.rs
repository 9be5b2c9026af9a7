//! Logs of attempts, whole or followed.

mod cursor;
mod merged;
mod reader;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use carma_core::{AttemptId, JobId};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use super::Shared;
use super::caller::Caller;
use crate::api::{LogQuery, Problem, ProblemKind};
use crate::store::{JobSummary, Phase};
use crate::supervise::AttemptFolder;
use reader::LogReader;

/// How often a followed log is read: first, and when nothing has come for a while. The end of the job is noticed at once.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(100);
const MAX_FOLLOW_INTERVAL: Duration = Duration::from_millis(800);
/// How often the store is asked whether the attempt was lost.
const LOST_INTERVAL: Duration = Duration::from_secs(1);
/// A day. A client that follows a job for longer asks again.
const MAX_WAIT: Duration = Duration::from_secs(86_400);
/// Pieces that are read ahead of the client.
const READ_AHEAD: usize = 4;

/// The pieces of a log. An end without an error is the end of the log.
type Pieces = mpsc::Sender<io::Result<Bytes>>;

impl Shared {
    /// The requested log as a body.
    pub(super) async fn log(self: Arc<Self>, caller: &Caller, job: &JobSummary, query: LogQuery) -> Result<Body, Problem> {
        let (pieces, stream) = mpsc::channel(READ_AHEAD);
        let number = query.attempt.unwrap_or(job.attempts);
        match () {
            () if query.attempt.is_some_and(|attempt| attempt == 0 || attempt > job.attempts) => {
                let had = format!("{} has had {} attempts, and no attempt {number}", job.label(), job.attempts);
                return Err(ProblemKind::NotFound.because(had));
            }
            () if number == 0 && (!query.follow || job.phase == Phase::Done) => {
                return Err(ProblemKind::Conflict.because(format!("{} has not been started, and has no log", job.label())));
            }
            () if number == 0 => {
                let (permit, caller, job) = (self.streams.take(caller.uid).await?, caller.clone(), job.id);
                tokio::spawn(async move {
                    let _permit = permit;
                    self.follow_once_started(&caller, job, query, pieces).await;
                });
            }
            () => {
                let permit = self.streams.take(caller.uid).await?;
                let log = self.open(caller, AttemptId { job: job.id, number }, query).await?;
                let end = if query.follow { None } else { Some(log.end) };
                tokio::spawn(async move {
                    let _permit = permit;
                    match end {
                        Some(end) => self.send_rest(log, &pieces, end).await,
                        None => self.follow(log, pieces).await,
                    }
                });
            }
        }
        Ok(Body::from_stream(ReceiverStream::new(stream)))
    }

    async fn open(&self, caller: &Caller, attempt: AttemptId, query: LogQuery) -> Result<Log, Problem> {
        let user = caller.uid;
        let folder = AttemptFolder::of(&self.places.state, attempt);
        let unreadable = |error: String| ProblemKind::Internal.because(format!("the log of {attempt} cannot be read: {error}"));
        let opened = self.blocking.run(user, move || {
            let limit = folder.order().map_err(io::Error::other)?.map(|order| order.log_limit);
            let mut reader = LogReader::new(&folder, query.stream, limit);
            query.lines.map_or(Ok(()), |lines| reader.seek_last_lines(lines))?;
            let end = reader.end()?;
            io::Result::Ok(Log { attempt, user, folder, reader, end })
        });
        opened.await?.map_err(|error| unreadable(error.to_string()))
    }

    async fn follow_once_started(self: Arc<Self>, caller: &Caller, job: JobId, query: LogQuery, pieces: Pieces) {
        let started = self.wait_until(caller, job, Instant::now() + MAX_WAIT, |job| job.attempts > 0 || job.phase == Phase::Done);
        let started = tokio::select! {
            started = started => started,
            () = pieces.closed() => return,
        };
        match started {
            Ok(started) if started.attempts > 0 => match self.open(caller, AttemptId { job, number: 1 }, query).await {
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
        let (mut interval, mut last_check) = (FOLLOW_INTERVAL, None);
        loop {
            // Read after the check, so that the read has everything up to the end.
            let Ok((next, mut ended, read)) = self.blocking.run(log.user, move || log.read_more()).await else { return };
            log = next;
            match read {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => {
                    interval = FOLLOW_INTERVAL;
                    match pieces.send(Ok(piece.into())).await {
                        Ok(()) => continue,
                        Err(_) => return,
                    }
                }
                Err(error) => return drop(pieces.send(Err(error)).await),
            }
            ended = ended || self.is_lost(&log, &mut last_check).await;
            if ended {
                return self.send_rest(log, &pieces, u64::MAX).await;
            }
            tokio::select! {
                () = pieces.closed() => return,
                () = job_updates.wait(interval) => {}
            }
            interval = (interval * 2).min(MAX_FOLLOW_INTERVAL);
        }
    }

    /// Whether an attempt without a record of its end is over by the store.
    async fn is_lost(&self, log: &Log, last_check: &mut Option<Instant>) -> bool {
        if last_check.is_some_and(|last_check| last_check.elapsed() < LOST_INTERVAL) {
            return false;
        }
        *last_check = Some(Instant::now());
        let attempt = log.attempt;
        let job = self.readers.read(log.user, move |reader| Ok(reader.summary(attempt.job)?)).await;
        // It is over if a later attempt exists, or if the job does not run.
        let runs = |job: &JobSummary| job.attempts == attempt.number && matches!(job.phase, Phase::Starting | Phase::Running);
        job.is_ok_and(|job| !job.as_ref().is_some_and(runs))
    }

    /// Sends a log up to a position.
    async fn send_rest(&self, mut log: Log, pieces: &Pieces, until: u64) {
        while log.reader.at() < until {
            let Ok((next, _, read)) = self.blocking.run(log.user, move || log.read_more()).await else { return };
            log = next;
            let failed = read.is_err();
            if matches!(&read, Ok(piece) if piece.is_empty()) || pieces.send(read.map(Into::into)).await.is_err() || failed {
                return;
            }
        }
    }
}

/// An open log.
struct Log {
    attempt: AttemptId,
    /// Who reads it.
    user: u32,
    folder: AttemptFolder,
    reader: LogReader,
    /// Its length when it was opened.
    end: u64,
}

impl Log {
    /// Whether the attempt has ended by the record of its supervisor, and the next piece. On a thread that may block.
    fn read_more(mut self) -> (Self, bool, io::Result<Vec<u8>>) {
        let ended = matches!(self.folder.ended(), Ok(Some(_)));
        let piece = self.reader.read();
        (self, ended, piece)
    }
}
