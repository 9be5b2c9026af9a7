//! The executor of this host: shims run the attempts, and threads wait for them.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carma_core::{AttemptId, JobId, ServerId, Signal};

use super::attempt_files;
use super::start::{LocalSettings, start};
use super::tracker::{Stage, Threads, Tracker};
use super::{Adopted, CheckpointTimes, Executor, Report, StartOrder, printed};
use crate::heartbeat::{Heartbeats, Part};
use crate::launch::NotLaunched;
use crate::pool::Pool;
use crate::request::JobRequest;
use crate::store::StoreError;
use crate::supervise::{ExitWatch, FolderError, remove_abandoned};
use crate::turns::Limits;
use crate::watch::OutputMark;

/// Attempts that are started at the same time. Most of a start is waiting.
const THREADS: usize = 4;
/// Why an executor cannot work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExecutorError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Looks up the request of a job.
pub(crate) type Requests = Box<dyn Fn(JobId) -> Result<Option<JobRequest>, String> + Send>;

/// The executor of this host. Its threads end when it is dropped and all orders are started.
#[derive(Debug)]
pub(crate) struct LocalExecutor(Arc<Tracker>);

impl LocalExecutor {
    /// Starts the threads; `report` is called by all of them.
    pub(crate) fn new(
        settings: LocalSettings,
        mut requests: impl FnMut() -> Result<Requests, ExecutorError>,
        heartbeats: &Heartbeats,
        report: impl Fn(Report) + Send + Sync + 'static,
    ) -> Result<Self, ExecutorError> {
        let_users_traverse(&settings.state)?;
        let tracker = Arc::new(Tracker::new(settings, Box::new(report)));
        let watching = Arc::downgrade(&tracker);
        let exits = ExitWatch::new(heartbeats.start(Part::Exits), move |attempt, state| {
            if let Some(tracker) = watching.upgrade() {
                tracker.not_watched(attempt);
                tracker.found(attempt, state);
            }
        })?;
        let starts = Pool::start("launches", Limits::at_most(THREADS), || {
            let (request_of, tracker) = (requests()?, Arc::downgrade(&tracker));
            Ok::<_, ExecutorError>(move |order: Box<StartOrder>| {
                let Some(tracker) = tracker.upgrade() else { return false };
                tracker.carry_out(order, |order| {
                    let job = order.attempt.job;
                    let request = request_of(job).map_err(NotLaunched::Host)?;
                    let request = request.ok_or_else(|| NotLaunched::Job(format!("the request of {job} is no longer known")))?;
                    start(order, request, &tracker.settings)
                });
                true
            })
        })?;
        tracker.set_threads(Threads { starts, exits });
        printed::follow(&tracker)?;
        Ok(Self(tracker))
    }
}

impl LocalExecutor {
    /// Reports the state of an attempt again.
    pub(crate) fn report_again(&self, attempt: AttemptId) {
        self.0.adopt(attempt);
    }
}

impl Executor for LocalExecutor {
    fn start(&self, order: Box<StartOrder>) {
        let mut attempts = self.0.attempts();
        let attempt = attempts.entry(order.attempt).or_default();
        if matches!(attempt.stage, Stage::Known) {
            attempt.stage = Stage::Starting;
            drop(attempts);
            self.0.order(order);
        }
    }

    fn signal(&self, attempt: AttemptId, signal: Signal) {
        let mut attempts = self.0.attempts();
        let Some(known) = attempts.get_mut(&attempt) else { return };
        match &known.stage {
            Stage::Running(supervised) => {
                let sent = supervised.signal(signal);
                let _ = sent
                    .inspect_err(|error| tracing::warn!(job = attempt.job.0, attempt = attempt.number, "cannot send {signal:?}: {error}"));
            }
            Stage::Known | Stage::Starting => known.signals.push(signal),
            Stage::NotStarted(_) => {}
        }
    }

    fn adopt(&self, attempts: &[(AttemptId, ServerId)]) -> Vec<Adopted> {
        self.0.attempts().retain(|attempt, _| attempts.iter().any(|(other, _)| other == attempt));
        let adopted = attempts.iter().map(|(attempt, _)| self.0.adopt(*attempt)).collect();
        remove_abandoned(|attempt| attempts.iter().any(|(other, _)| *other == attempt));
        adopted
    }

    fn acknowledge(&self, attempt: AttemptId) {
        self.0.attempts().remove(&attempt);
    }

    fn progress(&self, attempt: AttemptId) -> Option<f64> {
        // The progress that it reports itself has priority.
        attempt_files::progress(&self.0.folder(attempt)).or_else(|| self.0.attempts().get(&attempt)?.printed)
    }

    fn output(&self, attempt: AttemptId) -> OutputMark {
        attempt_files::output(&self.0.folder(attempt))
    }

    fn checkpoint(&self, attempt: AttemptId) -> Option<CheckpointTimes> {
        attempt_files::checkpoint_times(&self.0.folder(attempt))
    }

    fn owners(&self, pids: &[u32]) -> HashMap<u32, AttemptId> {
        self.0.owners(pids)
    }

    fn group(&self, attempt: AttemptId) -> Option<PathBuf> {
        self.0.group(attempt)
    }

    fn highest_job(&self) -> Option<JobId> {
        attempt_files::highest_job(&self.0.settings.attempts())
    }

    fn hide_secrets(&self, job: JobId) -> Result<(), FolderError> {
        attempt_files::hide_secrets(&self.0.settings.attempts().join(job.0.to_string()))
    }

    fn remove_logs(&self, attempt: AttemptId) {
        attempt_files::remove_logs(&self.0.folder(attempt));
    }

    fn remove_unknown(&self, is_known: &dyn Fn(JobId) -> bool) {
        attempt_files::remove_unknown(&self.0.settings.attempts(), &self.0.settings.program, is_known);
    }
}

/// If root runs jobs of other users, they need access to their scripts and progress files. Other files stay unreadable.
fn let_users_traverse(state: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mode = fs::metadata(state)?.permissions().mode();
    fs::set_permissions(state, Permissions::from_mode(mode | 0o011))
}
