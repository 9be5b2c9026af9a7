//! What the core does not know about unfinished jobs.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use carma_core::{Event, EventError, JobId};

use crate::engine::decide::Decisions;
use crate::request::Owner;
use crate::store::JobMeta;

/// The unfinished jobs.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// The jobs of an array share theirs.
    meta: HashMap<JobId, Arc<JobMeta>>,
    latest: Option<Arc<JobMeta>>,
    /// How many of them each user has.
    per_user: HashMap<u32, u64>,
    /// Finished jobs that the core still needs.
    lingering: BTreeSet<JobId>,
}

impl Jobs {
    pub(crate) fn add(&mut self, job: JobId, meta: JobMeta) {
        *self.per_user.entry(meta.owner.uid).or_default() += 1;
        let shared = self.latest.take().filter(|latest| **latest == meta).unwrap_or_else(|| Arc::new(meta));
        self.latest = Some(Arc::clone(&shared));
        self.meta.insert(job, shared);
    }

    pub(crate) fn get(&self, job: JobId) -> Option<&JobMeta> {
        self.meta.get(&job).map(Arc::as_ref)
    }

    pub(crate) fn owner(&self, job: JobId) -> Option<&Owner> {
        self.get(job).map(|meta| &meta.owner)
    }

    /// The number of unfinished jobs of a user.
    pub(crate) fn count_of(&self, uid: u32) -> u64 {
        self.per_user.get(&uid).copied().unwrap_or(0)
    }

    /// Removes a finished job from the core, unless other jobs depend on it.
    pub(crate) fn forget_job(&mut self, decisions: &mut Decisions, job: JobId) {
        if let Err(EventError::StillNeeded(_)) = decisions.tell(Event::JobForgotten { job }) {
            self.lingering.insert(job);
        }
        if let Some(meta) = self.meta.remove(&job) {
            self.per_user.entry(meta.owner.uid).and_modify(|jobs| *jobs = jobs.saturating_sub(1));
        }
    }

    /// Tries again to remove finished jobs from the core.
    pub(crate) fn forget_lingering(&mut self, decisions: &mut Decisions) {
        for job in std::mem::take(&mut self.lingering) {
            self.forget_job(decisions, job);
        }
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{JobSpec, Settings, Time};

    use super::*;
    use crate::engine::decide::{Clock, Core};
    use crate::store::UnixMillis;

    #[test]
    fn unfinished_jobs_of_a_user_are_counted() {
        let mut decisions = Decisions::new(Core::new(&Settings::default(), None).unwrap(), Clock::from(Time::ZERO, 1.0));
        let (mut jobs, owner) = (Jobs::default(), Owner { uid: 7, gid: 7, name: "ada".to_owned() });
        for job in [1, 2].map(JobId) {
            jobs.add(job, JobMeta { name: None, owner: owner.clone(), submitted: UnixMillis(0) });
            decisions.tell(Event::JobSubmitted(Box::new(JobSpec { hold: true, ..JobSpec::new(job) }))).unwrap();
        }
        assert_eq!((jobs.count_of(7), jobs.count_of(8)), (2, 0));
        decisions.tell(Event::JobCancelled { job: JobId(2) }).unwrap();
        jobs.forget_job(&mut decisions, JobId(2));
        assert_eq!((jobs.count_of(7), jobs.owner(JobId(2))), (1, None));
        assert!(decisions.job(JobId(2)).is_none() && decisions.job(JobId(1)).is_some());
    }
}
