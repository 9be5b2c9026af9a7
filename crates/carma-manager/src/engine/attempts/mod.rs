//! Active attempts: reports of the executor, and verdicts.

mod checkpoints;
mod order;
mod signs;
mod verdict;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use carma_core::{AttemptId, Event, Fraction, JobId, ServerId, Signal};

use self::checkpoints::CheckpointWatch;
use self::signs::ProgressSigns;
use super::decide::Decisions;
use crate::executor::{Adopted, Executor, StartOrder};
use crate::store::{StoredAttempt, UnixMillis};

pub(crate) use self::order::start_order;
pub(crate) use self::verdict::{judge, not_started};

/// What the core does not know about an active attempt.
#[derive(Debug)]
pub(crate) struct ActiveAttempt {
    /// When its launch was decided.
    pub(crate) launched: UnixMillis,
    pub(crate) server: ServerId,
    /// It runs under supervision.
    pub(crate) started: bool,
    /// All its processes that were observed on GPUs.
    pids: BTreeSet<u32>,
    checkpoints: Option<CheckpointWatch>,
    signs: ProgressSigns,
    /// Why the host could not start it yet.
    delayed: Option<String>,
}

/// The active attempts, and the executor that runs them.
pub(crate) struct Attempts {
    active: HashMap<AttemptId, ActiveAttempt>,
    executor: Arc<dyn Executor>,
}

impl Attempts {
    pub(crate) fn new(executor: Arc<dyn Executor>) -> Self {
        Self { active: HashMap::new(), executor }
    }

    pub(crate) fn executor(&self) -> &Arc<dyn Executor> {
        &self.executor
    }

    /// Takes over the attempts that are running according to the store.
    pub(crate) fn adopt(&mut self, running: &[StoredAttempt]) -> Vec<(AttemptId, Adopted)> {
        self.active.clear();
        for stored in running {
            self.add(stored.attempt, stored.placement.server, stored.launched);
        }
        let attempts: Vec<(AttemptId, ServerId)> = running.iter().map(|stored| (stored.attempt, stored.placement.server)).collect();
        let adopted = self.executor.adopt(&attempts);
        attempts.into_iter().map(|(attempt, _)| attempt).zip(adopted).collect()
    }

    /// An attempt is to be launched.
    pub(crate) fn add(&mut self, attempt: AttemptId, server: ServerId, launched: UnixMillis) {
        let (pids, signs) = (BTreeSet::new(), ProgressSigns::default());
        let active = ActiveAttempt { launched, server, started: false, pids, checkpoints: None, signs, delayed: None };
        self.active.insert(attempt, active);
    }

    /// An attempt is over. Unset if it already was.
    pub(crate) fn remove(&mut self, attempt: AttemptId) -> Option<ActiveAttempt> {
        self.active.remove(&attempt)
    }

    pub(crate) fn get(&self, attempt: AttemptId) -> Option<&ActiveAttempt> {
        self.active.get(&attempt)
    }

    pub(crate) fn contains(&self, attempt: AttemptId) -> bool {
        self.active.contains_key(&attempt)
    }

    /// The attempt of a job.
    pub(crate) fn of_job(&self, job: JobId) -> Option<AttemptId> {
        self.active.keys().find(|attempt| attempt.job == job).copied()
    }

    /// The control group of an attempt that runs under supervision on this host.
    pub(crate) fn group(&self, attempt: AttemptId) -> Option<PathBuf> {
        self.active.get(&attempt).filter(|active| active.started).and_then(|_| self.executor.group(attempt))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// Attempts that the host could not start yet, with the reason.
    pub(crate) fn delayed(&self) -> impl Iterator<Item = (AttemptId, &str)> {
        let waiting = self.active.iter().filter(|(_, active)| !active.started);
        waiting.filter_map(|(attempt, active)| Some((*attempt, active.delayed.as_deref()?)))
    }

    pub(crate) fn start(&self, order: Box<StartOrder>) {
        self.executor.start(order);
    }

    pub(crate) fn signal(&self, attempt: AttemptId, signal: Signal) {
        self.executor.signal(attempt, signal);
    }

    pub(crate) fn acknowledge(&self, attempt: AttemptId) {
        self.executor.acknowledge(attempt);
    }

    /// An attempt runs. An unknown one is killed: nothing runs unwatched.
    pub(crate) fn started(&mut self, attempt: AttemptId) {
        match self.active.get_mut(&attempt) {
            Some(active) => active.started = true,
            None => self.executor.signal(attempt, Signal::Kill),
        }
    }

    /// The host cannot start an attempt now; the executor tries again.
    pub(crate) fn delay(&mut self, decisions: &mut Decisions, attempt: AttemptId, reason: String) {
        let label = decisions.label(attempt.job);
        decisions.announce(format!("{label} attempt {} could not be launched, and will be tried again: {reason}", attempt.number));
        if let Some(active) = self.active.get_mut(&attempt) {
            active.delayed = Some(reason);
        }
    }

    /// The attempts that these processes on GPUs belong to.
    pub(crate) fn owners(&self, pids: &[u32]) -> HashMap<u32, AttemptId> {
        self.executor.owners(pids)
    }

    /// These processes were on GPUs.
    pub(crate) fn seen(&mut self, owners: &HashMap<u32, AttemptId>) {
        for (pid, attempt) in owners {
            if let Some(active) = self.active.get_mut(attempt) {
                active.pids.insert(*pid);
            }
        }
    }

    /// The attempts on a server.
    pub(crate) fn on(&self, server: ServerId) -> Vec<AttemptId> {
        self.active.iter().filter(|(_, active)| active.server == server).map(|(attempt, _)| *attempt).collect()
    }

    /// Reads progress and checkpoints of the attempts on a server.
    pub(crate) fn poll(&mut self, decisions: &mut Decisions, server: ServerId) {
        for attempt in self.on(server) {
            self.read_progress(decisions, attempt);
            self.check_for_checkpoint(decisions, attempt, false);
        }
    }

    /// Reads progress and checkpoints of an attempt that has ended.
    pub(crate) fn poll_last(&mut self, decisions: &mut Decisions, attempt: AttemptId) {
        self.read_progress(decisions, attempt);
        self.check_for_checkpoint(decisions, attempt, true);
    }

    fn read_progress(&self, decisions: &mut Decisions, attempt: AttemptId) {
        let Some(done) = self.executor.progress(attempt).map(Fraction::clamped) else { return };
        if decisions.job(attempt.job).is_some_and(|job| job.progress != Some(done)) {
            // The core refuses it if the attempt has ended meanwhile.
            let _ = decisions.tell(Event::Progress { attempt, done });
        }
    }
}
