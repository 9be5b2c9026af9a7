//! Changes that are stored together, and their effects, which wait for the commit.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use carma_core::{ArrayId, AttemptId, DeviceId, GpuMode, Job, JobId, JobLabel, Scheduler, ServerId, Signal};
use tokio::sync::oneshot;

use crate::agents::Session;
use crate::api::{Problem, Update};
use crate::batch::BatchOrder;
use crate::event::JobEvent;
use crate::executor::StartOrder;
use crate::request::{JobRequest, Owner};
use crate::store::{Change, NewEvent, StoredArray, StoredJob, UnixMillis};
use crate::submission::Template;
use crate::submission_key::SubmissionKey;
use crate::tally::Tallies;

/// The channel of an answer.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Problem>>;

/// An effect of a batch, after its commit.
pub(crate) enum Effect {
    /// An attempt is started.
    Start(Box<StartOrder>),
    /// An attempt gets a signal.
    Signal(AttemptId, Signal),
    /// The executor need not report the end of an attempt again.
    Acknowledge(AttemptId),
    /// A question is answered.
    Answer(Box<dyn FnOnce(Result<(), Problem>) + Send>),
    /// Listeners are notified.
    Publish(Update),
    /// A GPU is switched to another mode.
    Switch { device: DeviceId, to: GpuMode },
    /// The answer to a submission with this key is in the store.
    KeyStored(u32, SubmissionKey),
    /// An agent is one of the servers.
    Welcome(ServerId, Session),
    /// A request to the batch system.
    Batch(BatchOrder),
    /// The core forgets a job that is over.
    Forget(JobId),
}

/// An accepted job that is not stored yet.
#[derive(Debug)]
pub(crate) struct AcceptedJob {
    pub(crate) job: JobId,
    pub(crate) request: JobRequest,
    pub(crate) owner: Owner,
    pub(crate) submitted: UnixMillis,
}

/// An accepted array or sweep that is not stored yet. The core knows its jobs.
#[derive(Debug)]
pub(crate) struct AcceptedArray {
    pub(crate) array: ArrayId,
    pub(crate) indices: Vec<u32>,
    pub(crate) template: Arc<Template>,
    pub(crate) owner: Owner,
    pub(crate) submitted: UnixMillis,
}

/// Changes that go together, with their effects.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) accepted: Vec<AcceptedJob>,
    pub(crate) arrays: Vec<AcceptedArray>,
    /// Jobs that have changed in the core.
    pub(crate) changed: BTreeSet<JobId>,
    pub(crate) changes: Vec<Change>,
    pub(crate) effects: Vec<Effect>,
    /// Counters that outlive restarts.
    pub(crate) tallies: Tallies,
    /// How many changes the tasks of each user made.
    by_user: HashMap<u32, usize>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.size() == 0 && self.effects.is_empty() && self.tallies.is_empty()
    }

    /// The number of changes.
    pub(crate) fn size(&self) -> usize {
        let members: usize = self.arrays.iter().map(|array| array.indices.len()).sum();
        self.accepted.len() + members + self.changed.len() + self.changes.len()
    }

    /// The number of changes by the tasks of a user.
    pub(crate) fn changes_of(&self, user: u32) -> usize {
        self.by_user.get(&user).copied().unwrap_or(0)
    }

    /// Adds to the changes of a user.
    pub(crate) fn count_changes(&mut self, user: u32, changes: usize) {
        if changes > 0 {
            *self.by_user.entry(user).or_default() += changes;
        }
    }

    /// Adds an event to the log.
    pub(crate) fn log(&mut self, at: UnixMillis, job: impl Into<Option<JobLabel>>, event: JobEvent) {
        self.changes.push(Change::EventLogged(NewEvent::of(at, job.into(), event)));
    }

    /// The changes to write, with each job as the core knows it now, and the effects.
    pub(crate) fn settle(self, scheduler: &Scheduler, at: UnixMillis) -> (Vec<Change>, Vec<Effect>) {
        let Self { accepted, arrays, mut changed, changes, effects, tallies, by_user: _ } = self;
        let mut all = Vec::with_capacity(accepted.len() + changed.len() + changes.len());
        for AcceptedJob { job: id, request, owner, submitted } in accepted {
            changed.remove(&id);
            if let Some(job) = scheduler.job(id) {
                let ended = job.state.outcome().map(|_| at);
                all.push(Change::JobAccepted(Box::new(StoredJob { request, owner, job: job.clone(), submitted, ended })));
            }
        }
        for array in arrays {
            let ids = (array.array.0..).map(JobId).zip(&array.indices);
            let members: Vec<&Job> = ids.filter_map(|(id, _)| scheduler.job(id)).collect();
            // Jobs that have started already, or have an estimate of their own, are written one by one.
            let Some(state) = members.last().copied().cloned() else { continue };
            changed.extend(members.iter().filter(|job| !job.is_alike(&state)).map(|job| job.id()));
            let AcceptedArray { array, indices, template, owner, submitted } = array;
            let ended = state.state.outcome().map(|_| at);
            let stored = StoredArray { array, indices, template, owner, state, submitted, ended };
            all.push(Change::ArrayAccepted(Box::new(stored)));
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
