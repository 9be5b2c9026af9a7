//! Follows the attempts of this host: ordered, started, watched, ended. Every change is reported; only a certain end counts as one.

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use carma_core::{AttemptId, Seconds, Signal};

use super::leftovers::Leftovers;
use super::memory_limits::Unlimited;
use super::start::{LocalSettings, wait_for_shim};
use super::{Adopted, Report, StartOrder};
use crate::launch::NotLaunched;
use crate::pool::Pool;
use crate::supervise::{AttemptFolder, AttemptState, ExitWatch, FolderError, Owners, Supervised};

/// Delay before an attempt with an unclear state is checked again.
const RECHECK_DELAY: Duration = Duration::from_secs(1);
/// Delay before a failed start is retried.
const START_RETRY_DELAY: Duration = Duration::from_secs(5);

/// The result of a start, and where the attempt runs without its memory limits.
type Started = Result<Option<Unlimited>, NotLaunched>;

/// The attempts of this host without an acknowledged end.
pub(super) struct Tracker {
    pub(super) settings: LocalSettings,
    report: Box<dyn Fn(Report) + Send + Sync>,
    attempts: Mutex<HashMap<AttemptId, Attempt>>,
    /// The attempts of processes; unset after new attempts.
    owners: Mutex<Option<Owners>>,
    /// Set once, at the beginning: its threads need a reference to this.
    threads: OnceLock<Threads>,
}

/// The threads that start attempts and wait for them.
pub(super) struct Threads {
    pub(super) starts: Pool<Box<StartOrder>>,
    pub(super) exits: ExitWatch,
}

/// An attempt without an acknowledged end.
#[derive(Debug, Default)]
pub(super) struct Attempt {
    pub(super) stage: Stage,
    /// Signals to send as soon as it runs.
    pub(super) signals: Vec<Signal>,
    /// Its end will be noticed.
    watched: bool,
    /// How far it is, by what it prints.
    pub(super) printed: Option<f64>,
}

/// How far an attempt is.
#[derive(Debug, Default)]
pub(super) enum Stage {
    /// Known, and not ordered yet.
    #[default]
    Known,
    /// Ordered. A report follows.
    Starting,
    Running(Supervised),
    NotStarted(String),
}

impl Tracker {
    pub(super) fn new(settings: LocalSettings, report: Box<dyn Fn(Report) + Send + Sync>) -> Self {
        Self { settings, report, attempts: Mutex::default(), owners: Mutex::default(), threads: OnceLock::new() }
    }

    pub(super) fn set_threads(&self, threads: Threads) {
        let _ = self.threads.set(threads);
    }

    pub(super) fn attempts(&self) -> MutexGuard<'_, HashMap<AttemptId, Attempt>> {
        lock(&self.attempts)
    }

    pub(super) fn folder(&self, attempt: AttemptId) -> AttemptFolder {
        AttemptFolder::of(&self.settings.state, attempt)
    }

    /// Hands an order to a thread that starts attempts.
    pub(super) fn order(&self, order: Box<StartOrder>) {
        if let Some(threads) = self.threads.get() {
            threads.starts.add(order.owner.uid, order);
        }
    }

    /// The attempts that these processes belong to.
    pub(super) fn owners(&self, pids: &[u32]) -> HashMap<u32, AttemptId> {
        let mut known = lock(&self.owners);
        // A container has its name some time after its attempt was started.
        let owners = known.take_if(|owners| owners.is_complete());
        let owners = known.insert(owners.unwrap_or_else(|| self.find_owners()));
        pids.iter().filter_map(|pid| Some((*pid, owners.owner_of(*pid)?))).collect()
    }

    /// The control group of a running attempt.
    pub(super) fn group(&self, attempt: AttemptId) -> Option<PathBuf> {
        match &self.attempts().get(&attempt)?.stage {
            Stage::Running(supervised) => supervised.cgroup().map(|cgroup| cgroup.path().to_owned()),
            Stage::Known | Stage::Starting | Stage::NotStarted(_) => None,
        }
    }

    fn find_owners(&self) -> Owners {
        let attempts = self.attempts();
        Owners::of(attempts.iter().filter_map(|(attempt, known)| match &known.stage {
            Stage::Running(supervised) => Some((*attempt, supervised)),
            Stage::Known | Stage::Starting | Stage::NotStarted(_) => None,
        }))
    }

    pub(super) fn adopt(self: &Arc<Self>, attempt: AttemptId) -> Adopted {
        let reason = match self.attempts().entry(attempt).or_default().stage {
            Stage::Starting => return Adopted::Starting,
            Stage::NotStarted(ref reason) => Some(reason.clone()),
            Stage::Known | Stage::Running(_) => None,
        };
        if let Some(reason) = reason {
            (self.report)(Report::NotStarted { attempt, reason });
            return Adopted::Over(None);
        }
        let state = wait_for_shim(&self.folder(attempt));
        let adopted = match &state {
            Ok(AttemptState::NeverStarted) => return Adopted::NeverStarted,
            Ok(AttemptState::Running(supervised)) => Adopted::Running { ran: ran(supervised) },
            Ok(AttemptState::Ended(ended)) => Adopted::Over(Some(ended.past())),
            Ok(AttemptState::Lost) | Err(FolderError::Damaged { .. }) => Adopted::Over(None),
            Ok(AttemptState::Starting) | Err(_) => Adopted::Starting,
        };
        self.found(attempt, state);
        adopted
    }

    /// Starts an attempt by this, from a thread that may wait.
    pub(super) fn carry_out(self: &Arc<Self>, order: Box<StartOrder>, start: impl FnOnce(&StartOrder) -> Started) {
        let attempt = order.attempt;
        match start(&order) {
            Ok(unlimited) => {
                if let Some(Unlimited { devices, reason }) = unlimited {
                    (self.report)(Report::NotLimited { attempt, devices, reason });
                }
                self.found(attempt, wait_for_shim(&self.folder(attempt)));
            }
            Err(NotLaunched::Job(reason)) => self.not_started(attempt, reason),
            Err(NotLaunched::Host(reason)) => {
                (self.report)(Report::Delayed { attempt, reason });
                self.later(START_RETRY_DELAY, move |tracker| tracker.start_again(order));
            }
        }
    }

    fn start_again(self: &Arc<Self>, order: Box<StartOrder>) {
        let told_to_end = match self.attempts().get(&order.attempt) {
            None => return,
            Some(known) => !known.signals.is_empty(),
        };
        if told_to_end {
            self.not_started(order.attempt, "it was stopped before it could be launched".to_owned());
        } else {
            self.order(order);
        }
    }

    /// Reports the state of an attempt. Only a certain state ends it: an unreadable attempt may still run.
    pub(super) fn found(self: &Arc<Self>, attempt: AttemptId, state: Result<AttemptState, FolderError>) {
        let ended = match state {
            Ok(AttemptState::Running(supervised)) => return self.started(attempt, supervised),
            Ok(AttemptState::NeverStarted) => return self.not_started(attempt, "its shim ended before it began".to_owned()),
            Ok(AttemptState::Starting) => return self.unclear(attempt, "its shim did not identify itself"),
            Ok(AttemptState::Ended(ended)) => Some(ended),
            Ok(AttemptState::Lost) => None,
            Err(FolderError::Damaged { path, source }) => {
                // After a power cut: no earlier process runs any more.
                tracing::error!(job = attempt.job.0, attempt = attempt.number, "{} is damaged: {source}", path.display());
                None
            }
            Err(error) => return self.unclear(attempt, &error.to_string()),
        };
        let leftovers = Leftovers::gather(attempt, &self.folder(attempt), ended, &self.settings.launch_server);
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
    pub(super) fn not_watched(&self, attempt: AttemptId) -> bool {
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
        tracing::warn!(job = attempt.job.0, attempt = attempt.number, "the state of the attempt is unknown, checking again soon: {reason}");
        self.later(RECHECK_DELAY, move |tracker| tracker.found(attempt, wait_for_shim(&tracker.folder(attempt))));
    }

    /// Runs a closure after a delay, unless the executor is dropped by then.
    fn later(self: &Arc<Self>, after: Duration, act: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let tracker: Weak<Self> = Arc::downgrade(self);
        let run = move || {
            thread::sleep(after);
            if let Some(tracker) = tracker.upgrade() {
                act(&tracker);
            }
        };
        if let Err(error) = thread::Builder::new().name("retry".to_owned()).spawn(run) {
            tracing::error!("cannot start a thread: some attempts are not checked until the manager restarts: {error}");
        }
    }
}

impl Debug for Tracker {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tracker").field("settings", &self.settings).field("attempts", &self.attempts).finish_non_exhaustive()
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
