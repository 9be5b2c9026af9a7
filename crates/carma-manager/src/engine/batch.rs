//! What is to be written down together, and what is done once it is.

use std::collections::BTreeSet;

use carma_core::{AttemptId, JobId, Scheduler, Signal};

use super::launcher::LaunchOrder;
use super::modes::SwitchOrder;
use crate::api::{Problem, Update};
use crate::event::JobEvent;
use crate::metrics::Tallies;
use crate::request::{JobRequest, Owner};
use crate::store::{Change, NewEvent, StoredJob, UnixMillis};

/// Something that is done when what led to it is on the disk.
pub(super) enum Effect {
    /// A shim is started.
    Launch(Box<LaunchOrder>),
    /// An attempt is told something.
    Signal(AttemptId, Signal),
    /// Somebody who asked gets their answer.
    Answer(Box<dyn FnOnce(Result<(), Problem>) + Send>),
    /// Whoever listens is told.
    Tell(Update),
    /// A GPU is switched to another mode.
    Switch(Box<SwitchOrder>),
    /// A job that is over need not be known to the core any more.
    Forget(JobId),
}

/// A job that was accepted and is not written down yet.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) job: JobId,
    pub(super) request: JobRequest,
    pub(super) owner: Owner,
    pub(super) submitted: UnixMillis,
}

/// Changes that go together, with their effects.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) accepted: Vec<Accepted>,
    /// Jobs of which the core knows something new.
    pub(super) changed: BTreeSet<JobId>,
    pub(super) changes: Vec<Change>,
    pub(super) effects: Vec<Effect>,
    /// What is counted for good.
    pub(super) tallies: Tallies,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.accepted.is_empty() && self.changed.is_empty() && self.changes.is_empty() && self.effects.is_empty() && self.tallies.is_empty()
    }

    /// Adds an event to the log.
    pub(super) fn log(&mut self, at: UnixMillis, job: impl Into<Option<JobId>>, event: JobEvent) {
        self.changes.push(Change::EventLogged(NewEvent { at, job: job.into(), event }));
    }

    /// The changes to write, with each job as the core knows it now, and the effects.
    pub(super) fn settle(self, scheduler: &Scheduler, at: UnixMillis) -> (Vec<Change>, Vec<Effect>) {
        let Self { accepted, mut changed, changes, effects, tallies } = self;
        let mut all = Vec::with_capacity(accepted.len() + changed.len() + changes.len());
        for Accepted { job: id, request, owner, submitted } in accepted {
            changed.remove(&id);
            if let Some(job) = scheduler.job(id) {
                let ended = job.state.outcome().map(|_| at);
                all.push(Change::JobAccepted(Box::new(StoredJob { request, owner, job: job.clone(), submitted, ended })));
            }
        }
        // A job is written before its attempts are; all of a batch is kept or nothing.
        let known = changed.into_iter().filter_map(|id| scheduler.job(id));
        all.extend(known.map(|job| Change::JobChanged { job: Box::new(job.clone()), at }));
        all.extend(changes);
        if !tallies.is_empty() {
            all.push(Change::Tallied(tallies));
        }
        (all, effects)
    }
}
