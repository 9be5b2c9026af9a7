//! The executor of this host: shims run the attempts, and threads wait for them.

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use std::{io, thread};

use carma_core::{AttemptId, JobId, Seconds, Signal};

use super::attempt_files;
use super::leftovers::Leftovers;
pub(crate) use super::start::LocalSettings;
use super::start::{start, wait_for_shim};
use super::{Adopted, CheckpointTimes, Executor, Report, StartOrder};
use crate::launch::NotLaunched;
use crate::pool::Pool;
use crate::store::{Store, StoreError};
use crate::supervise::{AttemptFolder, AttemptState, ExitWatch, FolderError, Owners, Supervised};

/// Attempts that are started at the same time. Most of a start is waiting.
const THREADS: usize = 4;
/// Delay before an attempt with an unclear state is checked again.
const RECHECK_DELAY: Duration = Duration::from_secs(1);
/// Delay before a failed start is retried.
const START_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Why an executor cannot work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExecutorError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The executor of this host. Its threads end when it is dropped and all orders are started.
#[derive(Debug)]
pub(crate) struct LocalExecutor(Arc<Shared>);

struct Shared {
    settings: LocalSettings,
    report: Box<dyn Fn(Report) + Send + Sync>,
    attempts: Mutex<HashMap<AttemptId, Attempt>>,
    /// The attempts of processes; unset after new attempts.
    owners: Mutex<Option<Owners>>,
    /// Set once, at the beginning: its threads need a reference to this.
    threads: OnceLock<Threads>,
}

struct Threads {
    starts: Pool<Box<StartOrder>>,
    exits: ExitWatch,
}

/// An attempt without an acknowledged end.
#[derive(Debug, Default)]
struct Attempt {
    stage: Stage,
    /// Signals to send as soon as it runs.
    signals: Vec<Signal>,
    /// Its end will be noticed.
    watched: bool,
}

#[derive(Debug, Default)]
enum Stage {
    /// Known, and not ordered yet.
    #[default]
    Known,
    /// Ordered. A report follows.
    Starting,
    Running(Supervised),
    NotStarted(String),
}

impl LocalExecutor {
    /// Starts the threads; `report` is called by all of them.
    pub(crate) fn new(
        settings: LocalSettings,
        store: &Store,
        report: impl Fn(Report) + Send + Sync + 'static,
    ) -> Result<Self, ExecutorError> {
        let_users_traverse(&settings.state)?;
        let shared = Arc::new(Shared {
            settings,
            report: Box::new(report),
            attempts: Mutex::default(),
            owners: Mutex::default(),
            threads: OnceLock::new(),
        });
        let watching = Arc::downgrade(&shared);
        let exits = ExitWatch::new(move |attempt, state| {
            if let Some(shared) = watching.upgrade() {
                shared.not_watched(attempt);
                shared.found(attempt, state);
            }
        })?;
        let starts = Pool::start("launches", THREADS, || {
            let (reader, shared) = (store.reader()?, Arc::downgrade(&shared));
            Ok::<_, ExecutorError>(move |order: Box<StartOrder>| {
                let Some(shared) = shared.upgrade() else { return false };
                shared.carry_out(order, |order| start(order, &reader, &shared.settings));
                true
            })
        })?;
        let _ = shared.threads.set(Threads { starts, exits });
        Ok(Self(shared))
    }
}

impl Executor for LocalExecutor {
    fn start(&self, order: Box<StartOrder>) {
        let mut attempts = self.0.attempts();
        let attempt = attempts.entry(order.attempt).or_default();
        if matches!(attempt.stage, Stage::Known) {
            attempt.stage = Stage::Starting;
            drop(attempts);
            self.0.add(order);
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

    fn adopt(&self, attempts: &[AttemptId]) -> Vec<Adopted> {
        self.0.attempts().retain(|attempt, _| attempts.contains(attempt));
        attempts.iter().map(|attempt| self.0.adopt(*attempt)).collect()
    }

    fn acknowledge(&self, attempt: AttemptId) {
        self.0.attempts().remove(&attempt);
    }

    fn progress(&self, attempt: AttemptId) -> Option<f64> {
        attempt_files::progress(&self.0.folder(attempt))
    }

    fn checkpoint(&self, attempt: AttemptId) -> CheckpointTimes {
        attempt_files::checkpoint_times(&self.0.folder(attempt))
    }

    fn owners(&self, pids: &[u32]) -> HashMap<u32, AttemptId> {
        let mut known = lock(&self.0.owners);
        // A container has its name some time after its attempt was started.
        let owners = known.take_if(|owners| owners.is_complete());
        let owners = known.insert(owners.unwrap_or_else(|| self.0.find_owners()));
        pids.iter().filter_map(|pid| Some((*pid, owners.owner_of(*pid)?))).collect()
    }

    fn highest_job(&self) -> Option<JobId> {
        attempt_files::highest_job(&self.0.settings.attempts())
    }

    fn remove_unknown(&self, is_known: &dyn Fn(JobId) -> bool) {
        attempt_files::remove_unknown(&self.0.settings.attempts(), is_known);
    }
}

impl Shared {
    fn attempts(&self) -> MutexGuard<'_, HashMap<AttemptId, Attempt>> {
        lock(&self.attempts)
    }

    fn folder(&self, attempt: AttemptId) -> AttemptFolder {
        AttemptFolder::of(&self.settings.state, attempt)
    }

    fn add(&self, order: Box<StartOrder>) {
        if let Some(threads) = self.threads.get() {
            threads.starts.add(order);
        }
    }

    fn find_owners(&self) -> Owners {
        let attempts = self.attempts();
        Owners::of(attempts.iter().filter_map(|(attempt, known)| match &known.stage {
            Stage::Running(supervised) => Some((*attempt, supervised)),
            Stage::Known | Stage::Starting | Stage::NotStarted(_) => None,
        }))
    }

    fn adopt(self: &Arc<Self>, attempt: AttemptId) -> Adopted {
        let reason = match self.attempts().entry(attempt).or_default().stage {
            Stage::Starting => return Adopted::Starting,
            Stage::NotStarted(ref reason) => Some(reason.clone()),
            Stage::Known | Stage::Running(_) => None,
        };
        if let Some(reason) = reason {
            (self.report)(Report::NotStarted { attempt, reason });
            return Adopted::Over;
        }
        let state = wait_for_shim(&self.folder(attempt));
        let adopted = match &state {
            Ok(AttemptState::NeverStarted) => return Adopted::NeverStarted,
            Ok(AttemptState::Running(supervised)) => Adopted::Running { ran: ran(supervised) },
            Ok(AttemptState::Ended(_) | AttemptState::Lost) | Err(FolderError::Damaged { .. }) => Adopted::Over,
            Ok(AttemptState::Starting) | Err(_) => Adopted::Starting,
        };
        self.found(attempt, state);
        adopted
    }

    /// Starts an attempt by this, from a thread that may wait.
    fn carry_out(self: &Arc<Self>, order: Box<StartOrder>, start: impl FnOnce(&StartOrder) -> Result<(), NotLaunched>) {
        let attempt = order.attempt;
        match start(&order) {
            Ok(()) => self.found(attempt, wait_for_shim(&self.folder(attempt))),
            Err(NotLaunched::Job(reason)) => self.not_started(attempt, reason),
            Err(NotLaunched::Host(reason)) => {
                (self.report)(Report::Delayed { attempt, reason });
                self.later(START_RETRY_DELAY, move |shared| shared.start_again(order));
            }
        }
    }

    fn start_again(self: &Arc<Self>, order: Box<StartOrder>) {
        let told_to_end = match self.attempts().get(&order.attempt) {
            None => return,
            Some(known) => !known.signals.is_empty(),
        };
        if told_to_end {
            self.not_started(order.attempt, "it was told to end before it could be launched".to_owned());
        } else {
            self.add(order);
        }
    }

    /// Reports the state of an attempt. Only a certain state ends it: an unreadable attempt may still run.
    fn found(self: &Arc<Self>, attempt: AttemptId, state: Result<AttemptState, FolderError>) {
        let ended = match state {
            Ok(AttemptState::Running(supervised)) => return self.started(attempt, supervised),
            Ok(AttemptState::NeverStarted) => return self.not_started(attempt, "its shim ended before it began".to_owned()),
            Ok(AttemptState::Starting) => return self.unclear(attempt, "its shim does not say who it is"),
            Ok(AttemptState::Ended(ended)) => Some(ended),
            Ok(AttemptState::Lost) => None,
            Err(FolderError::Damaged { path, source }) => {
                // After a power cut: no earlier process runs any more.
                tracing::error!(job = attempt.job.0, attempt = attempt.number, "{} is damaged: {source}", path.display());
                None
            }
            Err(error) => return self.unclear(attempt, &error.to_string()),
        };
        let leftovers = Leftovers::gather(attempt, &self.folder(attempt), ended, &self.settings.program);
        (self.report)(Report::Ended(Box::new(leftovers)));
    }

    fn started(self: &Arc<Self>, attempt: AttemptId, supervised: Supervised) {
        let was_watched = {
            let mut attempts = self.attempts();
            let Some(known) = attempts.get_mut(&attempt) else {
                // No attempt runs unwatched.
                return drop(supervised.signal(Signal::Kill));
            };
            for signal in std::mem::take(&mut known.signals) {
                let _ = supervised.signal(signal);
            }
            known.stage = Stage::Running(supervised.clone());
            std::mem::replace(&mut known.watched, true)
        };
        *lock(&self.owners) = None;
        // Before its end can be.
        (self.report)(Report::Started(attempt));
        let Some(threads) = self.threads.get().filter(|_| !was_watched) else { return };
        if let Err(error) = threads.exits.add(attempt, supervised) {
            self.unclear(attempt, &format!("it cannot be watched: {error}"));
        }
    }

    /// Marks an attempt as not watched. False if it is unknown.
    fn not_watched(&self, attempt: AttemptId) -> bool {
        self.attempts().get_mut(&attempt).map(|known| known.watched = false).is_some()
    }

    fn not_started(&self, attempt: AttemptId, reason: String) {
        if let Some(known) = self.attempts().get_mut(&attempt) {
            known.stage = Stage::NotStarted(reason.clone());
        }
        (self.report)(Report::NotStarted { attempt, reason });
    }

    /// Checks an unreadable attempt again later; until then it counts as running.
    fn unclear(self: &Arc<Self>, attempt: AttemptId, reason: &str) {
        if !self.not_watched(attempt) {
            return;
        }
        tracing::warn!(job = attempt.job.0, attempt = attempt.number, "the state of the attempt is unclear, checking again soon: {reason}");
        self.later(RECHECK_DELAY, move |shared| shared.found(attempt, wait_for_shim(&shared.folder(attempt))));
    }

    /// Runs a closure after a delay, unless the executor is dropped by then.
    fn later(self: &Arc<Self>, after: Duration, act: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let shared: Weak<Self> = Arc::downgrade(self);
        let run = move || {
            thread::sleep(after);
            if let Some(shared) = shared.upgrade() {
                act(&shared);
            }
        };
        if let Err(error) = thread::Builder::new().name("retry".to_owned()).spawn(run) {
            tracing::error!("cannot start a thread: some attempts are not checked until the manager restarts: {error}");
        }
    }
}

impl Debug for Shared {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("settings", &self.settings).field("attempts", &self.attempts).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runtime of an attempt. Neither a restart of the manager nor a jump of the wall clock changes it.
fn ran(supervised: &Supervised) -> Option<Seconds> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let since_boot = now.tv_sec as f64 + now.tv_nsec as f64 / 1e9;
    Seconds::new((since_boot - supervised.started_at()?).max(0.0)).ok()
}

/// If root runs jobs of other users, they need access to their scripts and progress files. Other files stay unreadable.
fn let_users_traverse(state: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mode = fs::metadata(state)?.permissions().mode();
    fs::set_permissions(state, Permissions::from_mode(mode | 0o011))
}
