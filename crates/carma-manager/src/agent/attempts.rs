//! The attempts of an agent, until the manager has acknowledged their ends.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use carma_core::{AttemptId, JobId, ServerId, Signal};

use super::log_tail::LogTail;
use crate::executor::{Adopted, Executor, Leftovers, LocalExecutor, Report, Requests};
use crate::host_gpus::LOCAL_SERVER;
use crate::link::{AttemptNote, FromAgent, LogPiece, LogStream, StartMessage, write_end};
use crate::request::JobRequest;
use crate::supervise::AttemptFolder;
use crate::untrusted::remove_tree;

/// The requests of the attempts, for the threads that start them.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownRequests(Arc<Mutex<HashMap<JobId, JobRequest>>>);

impl KnownRequests {
    /// For the executor.
    pub(super) fn look_up(&self) -> Requests {
        let known = self.clone();
        Box::new(move |job| Ok(known.lock().get(&job).cloned()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<JobId, JobRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt whose end is not acknowledged.
#[derive(Debug)]
struct AgentAttempt {
    logs: [(LogStream, LogTail); 2],
    /// The last report to the manager.
    note: Option<AttemptNote>,
    may_checkpoint: bool,
    ended: bool,
    /// How it ended, until that is written down or acknowledged.
    end: Option<Box<Leftovers>>,
}

/// All attempts of an agent.
#[derive(Debug)]
pub(super) struct AgentAttempts {
    folder: std::path::PathBuf,
    /// The folder of all jobs, which the manager sees too.
    jobs: std::path::PathBuf,
    requests: KnownRequests,
    known: BTreeMap<AttemptId, AgentAttempt>,
}

impl AgentAttempts {
    pub(super) fn new(folder: &Path, jobs: &Path, requests: KnownRequests) -> Self {
        Self { folder: folder.to_owned(), jobs: jobs.to_owned(), requests, known: BTreeMap::new() }
    }

    /// Starts an attempt. One that is known is reported again.
    pub(super) fn start(&mut self, message: StartMessage, executor: &LocalExecutor) {
        let StartMessage { order, request } = message;
        let attempt = order.attempt;
        let folder = AttemptFolder::of(&self.folder, attempt);
        let tail = |path| LogTail::new(path, order.log_limit);
        if let Some(known) = self.known.get_mut(&attempt) {
            // The manager may have lost the reports: it could not store them, or it restarted.
            known.note = None;
            return executor.report_again(attempt);
        }
        let started = AgentAttempt {
            logs: [(LogStream::Output, tail(folder.output())), (LogStream::Errors, tail(folder.errors()))],
            note: None,
            may_checkpoint: request.may_checkpoint,
            ended: false,
            end: None,
        };
        self.known.insert(attempt, started);
        self.requests.lock().insert(attempt.job, request);
        executor.start(Box::new(order));
    }

    /// The manager has stored its end: nothing of it is needed any more.
    pub(super) fn acknowledge(&mut self, attempt: AttemptId, executor: &LocalExecutor) {
        executor.acknowledge(attempt);
        if self.known.remove(&attempt).is_some() {
            self.requests.lock().remove(&attempt.job);
            let _ = remove_tree(AttemptFolder::of(&self.folder, attempt).path());
        }
    }

    pub(super) fn ended(&mut self, attempt: AttemptId) {
        self.known.get_mut(&attempt).into_iter().for_each(|known| known.ended = true);
    }

    /// Keeps the end of an attempt for the manager, in case it does not hear the report.
    pub(super) fn keep_end(&mut self, end: &Leftovers) {
        if let Some(known) = self.known.get_mut(&end.attempt) {
            known.end = Some(Box::new(end.clone()));
        }
    }

    /// Writes all ends down that the manager may not know.
    pub(super) fn write_ends(&mut self) {
        for end in self.known.values_mut().filter_map(|known| known.end.take()) {
            if let Err(error) = write_end(&self.jobs, &end) {
                tracing::warn!("cannot write the end of {} for the manager: {error}", end.attempt);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether one has not ended.
    pub(super) fn any_runs(&self) -> bool {
        self.known.values().any(|known| !known.ended)
    }

    /// A new manager, or the same again: everything that it may not know is reported again. Returns how long attempts have run.
    pub(super) fn report_again(&mut self, executor: &LocalExecutor) -> Vec<FromAgent> {
        for known in self.known.values_mut() {
            known.note = None;
            known.logs.iter_mut().for_each(|(_, log)| log.send_again());
        }
        let attempts: Vec<(AttemptId, ServerId)> = self.known.keys().map(|attempt| (*attempt, LOCAL_SERVER)).collect();
        let ran = |((attempt, _), adopted)| match adopted {
            Adopted::Running { ran: Some(ran) } => Some(FromAgent::Report(Report::Ran { attempt, ran })),
            _ => None,
        };
        let adopted = executor.adopt(&attempts);
        attempts.into_iter().zip(adopted).filter_map(ran).collect()
    }

    /// Asks those that can to checkpoint, and the others to end.
    pub(super) fn end_all(&self, executor: &LocalExecutor) {
        for (attempt, known) in &self.known {
            executor.signal(*attempt, if known.may_checkpoint { Signal::Checkpoint } else { Signal::Terminate });
        }
    }

    pub(super) fn kill_all(&self, executor: &LocalExecutor) {
        self.known.keys().for_each(|attempt| executor.signal(*attempt, Signal::Kill));
    }

    /// What is new in the logs of all attempts, or of one.
    pub(super) fn new_logs(&mut self, of: Option<AttemptId>, mut send: impl FnMut(FromAgent)) {
        for (attempt, known) in self.known.iter_mut().filter(|(attempt, _)| of.is_none_or(|of| of == **attempt)) {
            for (stream, log) in &mut known.logs {
                // One piece at a time, so that one attempt does not delay samples; all of it at its end.
                while let Some(added) = log.next() {
                    let piece =
                        LogPiece { attempt: *attempt, stream: *stream, offset: added.offset, replaces: added.replaces, bytes: added.bytes };
                    send(FromAgent::Log(piece));
                    if of.is_none() {
                        break;
                    }
                }
            }
        }
    }

    /// New progress and checkpoints.
    pub(super) fn new_notes(&mut self, executor: &LocalExecutor) -> Vec<FromAgent> {
        let mut notes = Vec::new();
        for (attempt, known) in &mut self.known {
            let note = AttemptNote { attempt: *attempt, progress: executor.progress(*attempt), checkpoint: executor.checkpoint(*attempt) };
            if known.note.replace(note) != Some(note) {
                notes.push(FromAgent::Note(note));
            }
        }
        notes
    }

    pub(super) fn beat(&mut self, number: u64) {
        self.known.values_mut().flat_map(|known| &mut known.logs).for_each(|(_, log)| log.beat(number));
    }

    pub(super) fn answered(&mut self, number: u64) {
        self.known.values_mut().flat_map(|known| &mut known.logs).for_each(|(_, log)| log.answered(number));
    }
}
