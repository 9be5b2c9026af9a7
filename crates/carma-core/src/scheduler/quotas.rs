//! Turns within users' quotas: taken before a job is queued, given back when others end.

use std::collections::BTreeSet;

use super::Scheduler;
use crate::admission::Demand;
use crate::config::{OverQuota, Quota, QuotaUse};
use crate::fleet::Server;
use crate::job::{Job, JobSpec};
use crate::queue::{Lane, Place, Quotas};
use crate::units::Time;
use crate::{JobId, UserId};

impl Scheduler {
    /// Puts a job into its queue as soon as its user's quota has room for it.
    pub(super) fn await_turn(&mut self, job: JobId, now: Time) {
        let Some(known) = self.jobs.get(&job) else { return };
        let user = known.spec.user;
        let quota = self.config.quotas.of(user);
        if !quota.limits() {
            self.stand_in_queue(job);
            return;
        }
        let needed = self.quota_need(&self.demand(known, now));
        self.quotas.ask(known, needed);
        self.give_turns(user);
    }

    fn stand_in_queue(&mut self, job: JobId) {
        let Some(known) = self.jobs.get(&job) else { return };
        let Some(waiting) = known.state.waiting() else { return };
        self.queues.insert(Lane::of(known, waiting), Place::of(known));
        self.dirty.add(job);
        self.time_slices.look_again();
    }

    /// Gives a user's jobs the turns that the quota has room for.
    pub(super) fn give_turns(&mut self, user: UserId) {
        let quota = self.config.quotas.of(user);
        while let Some(job) = self.quotas.next(user, &quota) {
            self.stand_in_queue(job);
        }
    }

    /// The most a job could take of its user's quota: a rank that gets a whole device may get the largest.
    pub(super) fn quota_need(&self, demand: &Demand<'_>) -> QuotaUse {
        let largest = self.fleet.largest();
        let memory = demand.ranks.iter().map(|need| need.reserved.on(largest)).sum();
        QuotaUse { jobs: 1, gpus: demand.spec.gpus, memory }
    }

    /// The quota that the job alone exceeds, if any: it can never start.
    pub(super) fn beyond_quota(&self, job: &Job, now: Time) -> Option<OverQuota> {
        let quota = self.config.quotas.of(job.spec.user);
        quota.limits().then(|| quota.objection(self.quota_need(&self.demand(job, now)), QuotaUse::default())).flatten()
    }

    /// Why the job waits for its user's quota, if it does.
    pub(super) fn over_quota(&self, job: &Job, now: Time) -> Option<OverQuota> {
        if self.queues.is_set_aside(&Place::of(job)) {
            return self.beyond_quota(job, now);
        }
        self.quotas.objection(job, &self.config.quotas.of(job.spec.user))
    }

    /// What a user may use at once, and what the user's running jobs use.
    pub fn quota(&self, user: UserId) -> (Quota, QuotaUse) {
        let running: BTreeSet<JobId> = self.fleet.servers().iter().flat_map(Server::attempts).map(|attempt| attempt.job).collect();
        let own = running.iter().filter_map(|job| self.jobs.get(job)).filter(|job| job.spec.user == user);
        let placements = own.filter_map(|job| Some(&job.state.active()?.placement));
        let in_use = placements.fold(QuotaUse::default(), |sum, placement| sum + QuotaUse::of(placement));
        (self.config.quotas.of(user), in_use)
    }

    /// Counts what a job that runs takes.
    pub(super) fn count_in(&mut self, job: JobId) {
        let Some(known) = self.jobs.get(&job) else { return };
        let Some(active) = known.state.active() else { return };
        let user = known.spec.user;
        if self.config.quotas.of(user).limits() {
            self.quotas.hold(known, QuotaUse::of(&active.placement));
            // It may take less than it could have.
            self.give_turns(user);
        }
    }

    /// Gives all turns again: quotas, or what jobs could take, have changed. Running jobs continue.
    pub(super) fn review_quotas(&mut self, now: Time) {
        let before = std::mem::take(&mut self.quotas);
        let limited = |spec: &JobSpec| self.config.quotas.of(spec.user).limits();
        let counted = |job: &&Job| limited(&job.spec) || before.is_waiting(job) || before.turn(job).is_some();
        let (mut running, mut waiting) = (Vec::new(), Vec::new());
        for job in self.jobs().filter(counted) {
            let place = Place::of(job);
            if job.state.active().is_some() {
                running.push(job.id());
            } else if before.is_waiting(job) || self.queues.contains(&place) && !self.queues.is_set_aside(&place) {
                // A turn that was given stays, as far as it can.
                waiting.push((before.turn(job).is_none(), place));
            }
        }
        waiting.sort_unstable();
        for job in running {
            self.count_in(job);
        }
        for (_, place) in waiting {
            self.queues.remove(&place);
            self.enqueue(place.job, now);
        }
    }

    /// Whether there is anything to review, before or after a change of the rules.
    pub(super) fn has_quotas(&self) -> bool {
        self.config.quotas.limits_anybody() || self.quotas != Quotas::default()
    }
}
