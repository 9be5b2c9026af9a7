//! Events about jobs: submitted, cancelled, held, released, put back, changed, estimated, forgotten.

use std::collections::BTreeSet;

use super::action::{Action, Signal};
use super::cpu_jobs::could_ever_hold;
use super::event::{Estimate, LimitChange};
use super::timers::Timer;
use super::{EventError, Scheduler};
use crate::JobId;
use crate::job::{Dependency, IllegalTransition, Job, JobSpec, Outcome, Priority, State, StopReason};
use crate::mapping;
use crate::queue::{DependencyResult, Place};
use crate::units::Time;

/// A job that passed every check of its submission.
struct CheckedJob {
    job: Box<Job>,
    /// A job it depends on that has failed already.
    failed_dependency: Option<JobId>,
}

impl Scheduler {
    pub(super) fn known_job(&self, job: JobId) -> Result<&Job, EventError> {
        self.job(job).ok_or(EventError::UnknownJob(job))
    }

    /// Changes a job's state, or refuses as the state machine does.
    fn transition(&mut self, job: JobId, change: impl FnOnce(&mut State) -> Result<(), IllegalTransition>) -> Result<(), EventError> {
        let known = self.jobs.get_mut(&job).ok_or(EventError::UnknownJob(job))?;
        change(&mut known.state).map_err(EventError::transition(job))
    }

    pub(super) fn job_submitted(&mut self, spec: JobSpec, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        let newcomer = self.check_submission(spec, self.sequence + 1, now)?;
        self.accept(newcomer, now, actions);
        Ok(())
    }

    /// Accepts jobs together: all are checked before the first one is accepted.
    pub(super) fn jobs_submitted(&mut self, specs: Vec<JobSpec>, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        let mut ids = BTreeSet::new();
        if let Some(twice) = specs.iter().find(|spec| !ids.insert(spec.id)) {
            return Err(EventError::DuplicateJob(twice.id));
        }
        let new_jobs = specs.into_iter().zip(self.sequence + 1..).map(|(spec, sequence)| self.check_submission(spec, sequence, now));
        for newcomer in new_jobs.collect::<Result<Vec<_>, _>>()? {
            self.accept(newcomer, now, actions);
        }
        Ok(())
    }

    fn check_submission(&self, spec: JobSpec, sequence: u64, now: Time) -> Result<CheckedJob, EventError> {
        let id = spec.id;
        if self.jobs.contains_key(&id) {
            return Err(EventError::DuplicateJob(id));
        }
        spec.validate().map_err(EventError::spec(id))?;
        let mut unmet: Vec<Dependency> = Vec::new();
        let mut failed = None;
        for dependency in &spec.dependencies {
            let on = dependency.job;
            let other = self.jobs.get(&on).ok_or(EventError::UnknownDependency { job: id, on })?;
            match other.state.outcome() {
                None => unmet.push(*dependency),
                Some(outcome) if !dependency.is_met_by(outcome) => failed = failed.or(Some(on)),
                Some(_) => {}
            }
        }
        let job = Box::new(Job::accept(spec, unmet, sequence, now));
        match self.beyond_quota(&job, now) {
            Some(over) => Err(EventError::Quota { job: id, over }),
            None => Ok(CheckedJob { job, failed_dependency: failed }),
        }
    }

    fn accept(&mut self, newcomer: CheckedJob, now: Time, actions: &mut Vec<Action>) {
        let CheckedJob { job, failed_dependency } = newcomer;
        let id = job.id();
        self.dependents.add(id, &job.unmet);
        self.sequence = job.sequence;
        self.jobs.insert(id, job);
        match failed_dependency {
            Some(on) => self.finish(id, Outcome::after_failure_of(self.label(on)), now, actions),
            None => self.enqueue(id, now),
        }
    }

    /// Puts a job into its queue if nothing but room can hold it back.
    pub(super) fn enqueue(&mut self, job: JobId, now: Time) {
        let mut next = Some(job);
        while let Some(job) = next {
            next = self.enqueue_one(job, now);
        }
    }

    /// As [`Self::enqueue`]. Returns the job that gets the turn in the array, if this one can never have it.
    fn enqueue_one(&mut self, job: JobId, now: Time) -> Option<JobId> {
        self.set_turn(job, now);
        let known = self.jobs.get(&job)?;
        if known.state.waiting().is_none() || !known.unmet.is_empty() {
            return None;
        }
        if let Some(begin) = known.spec.begin.filter(|begin| *begin > now) {
            self.timers.set(begin, Timer::Begin(job));
        } else if self.beyond_quota(known, now).is_some() {
            let user = known.spec.user;
            self.queues.set_aside(Place::of(known));
            self.quotas.leave(known);
            let next = self.arrays.pass_on(known);
            self.give_turns(user);
            return next.map(|place| place.job);
        } else if self.arrays.enter(known) {
            self.await_turn(job, now);
        }
        None
    }

    /// Takes a job out of its queue, and gives its turns within a quota and in an array to others.
    fn withdraw(&mut self, job: JobId, now: Time) {
        let Some(known) = self.jobs.get(&job) else { return };
        let (user, place) = (known.spec.user, Place::of(known));
        let waited = self.queues.main.contains(&place);
        self.queues.remove(&place);
        self.quotas.leave(known);
        let next = self.arrays.leave(known);
        self.give_turns(user);
        if waited && self.queues.main.reserve.is_active() {
            self.reserve_may_end(now);
        }
        if let Some(next) = next {
            self.enqueue(next.job, now);
        }
    }

    /// Puts a job that no server could hold aside, so that it blocks neither the queue nor its array.
    pub(super) fn set_aside(&mut self, job: JobId, now: Time) {
        self.withdraw(job, now);
        if let Some(known) = self.jobs.get(&job) {
            self.queues.set_aside(Place::of(known));
        }
    }

    /// Tries jobs that were too large again: the servers, the rules or the jobs have changed, and with them what jobs could take.
    pub(super) fn reconsider_set_aside(&mut self, now: Time) {
        if self.has_quotas() {
            self.review_quotas(now);
        }
        for place in self.queues.take_set_aside() {
            let Some(job) = self.jobs.get(&place.job) else { continue };
            let demand = self.demand(job, now);
            // A job that is still too large must not be next even for a moment: it would change which job is critical, and for which job without
            // GPUs a host is kept. The room in a power budget is known only after a trial placement.
            let may_fit = match job.spec.gpus {
                0 => could_ever_hold(&self.fleet, &demand),
                _ => self.config.power.budget.is_some() || mapping::could_ever_fit(&self.fleet, &demand),
            };
            if may_fit {
                self.enqueue(place.job, now);
            } else {
                self.queues.set_aside(place);
            }
        }
    }

    /// Ends a job, and with it those that can no longer run.
    pub(super) fn finish(&mut self, job: JobId, outcome: Outcome, now: Time, actions: &mut Vec<Action>) {
        let mut ends = vec![(job, outcome)];
        while let Some((job, outcome)) = ends.pop() {
            // A job can wait for two that fail; it ends once.
            let ended = self.transition(job, |state| state.finish(outcome.clone(), now));
            if ended.is_err() {
                continue;
            }
            self.withdraw(job, now);
            for dependent in self.dependents.take(job) {
                match self.jobs.get_mut(&dependent).map(|waiting| waiting.settle(job, &outcome)) {
                    Some(DependencyResult::Ready) => self.enqueue(dependent, now),
                    Some(DependencyResult::Never) => ends.push((dependent, Outcome::after_failure_of(self.label(job)))),
                    Some(DependencyResult::Waiting) | None => {}
                }
            }
            actions.push(Action::Finish { job, outcome });
        }
    }

    pub(super) fn job_cancelled(&mut self, job: JobId, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        let known = self.known_job(job)?;
        if let Some(active) = known.state.active() {
            self.stop(active.attempt, StopReason::Cancelled, Signal::Terminate, now, actions);
            return Ok(());
        }
        known.state.unfinished("cancelled").map_err(EventError::transition(job))?;
        self.finish(job, Outcome::Cancelled, now, actions);
        Ok(())
    }

    pub(super) fn job_held(&mut self, job: JobId, now: Time) -> Result<(), EventError> {
        self.transition(job, |state| state.hold(now))?;
        self.withdraw(job, now);
        Ok(())
    }

    pub(super) fn job_released(&mut self, job: JobId, now: Time) -> Result<(), EventError> {
        self.transition(job, |state| state.release(now))?;
        self.enqueue(job, now);
        Ok(())
    }

    pub(super) fn job_requeued(&mut self, job: JobId, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        let known = self.known_job(job)?;
        let active = known.state.under_way("requeued").map_err(EventError::transition(job))?;
        let signal = if known.spec.may_checkpoint { Signal::Checkpoint } else { Signal::Terminate };
        self.stop(active.attempt, StopReason::Requeued, signal, now, actions);
        Ok(())
    }

    pub(super) fn job_changed(&mut self, job: JobId, priority: Option<Priority>, limit: LimitChange, now: Time) -> Result<(), EventError> {
        let mut spec = self.unfinished(job)?.spec.clone();
        spec.priority = priority.unwrap_or(spec.priority);
        spec.time_limit = match limit {
            LimitChange::Keep => spec.time_limit,
            LimitChange::Remove => None,
            LimitChange::Set(limit) => Some(limit),
        };
        spec.validate().map_err(EventError::spec(job))?;
        self.replace_spec(job, spec, now);
        Ok(())
    }

    pub(super) fn begin_moved(&mut self, job: JobId, begin: Time, now: Time) -> Result<(), EventError> {
        let known = self.unfinished(job)?;
        let waits = known.state.waiting().is_some();
        // A running job has started, even if it is requeued later.
        if known.state.active().is_some() {
            return Ok(());
        }
        if let Some(before) = known.spec.begin {
            self.timers.cancel(before, Timer::Begin(job));
        }
        self.jobs.entry(job).and_modify(|known| known.spec.begin = Some(begin));
        // Until then, others have its turns.
        if waits {
            self.withdraw(job, now);
            self.enqueue(job, now);
        }
        Ok(())
    }

    pub(super) fn estimate_ready(&mut self, job: JobId, estimate: Estimate, now: Time) -> Result<(), EventError> {
        let mut spec = self.unfinished(job)?.spec.clone();
        estimate.tell(&mut spec);
        spec.validate().map_err(EventError::spec(job))?;
        self.jobs.entry(job).and_modify(|known| known.state.estimated(now));
        self.replace_spec(job, spec, now);
        Ok(())
    }

    fn unfinished(&self, job: JobId) -> Result<&Job, EventError> {
        let known = self.known_job(job)?;
        known.state.unfinished("changed").map_err(EventError::transition(job))?;
        Ok(known)
    }

    /// Changes a job's request. A waiting job is queued again; for a running one only the time limit matters.
    fn replace_spec(&mut self, job: JobId, spec: JobSpec, now: Time) {
        let Some(known) = self.jobs.get_mut(&job) else { return };
        let queued = known.state.waiting().is_some();
        if queued {
            self.queues.remove(&Place::of(known));
            self.arrays.step_aside(known);
            self.quotas.leave(known);
        }
        let before = known.spec.time_limit;
        let after = spec.time_limit;
        known.spec = spec;
        if queued {
            self.enqueue(job, now);
        } else if before != after {
            self.move_limit(job, before, now);
        }
    }

    pub(super) fn job_forgotten(&mut self, job: JobId) -> Result<(), EventError> {
        if self.known_job(job)?.state.outcome().is_none() || self.dependents.has(job) {
            return Err(EventError::StillNeeded(job));
        }
        self.jobs.remove(&job);
        Ok(())
    }
}
