//! Jobs restored after a restart, from what the driver stored.

use std::collections::BTreeSet;

use super::action::Action;
use super::timers::Timer;
use super::{EventError, Scheduler};
use crate::job::{Active, Dependency, Job, State};
use crate::tenant::Tenant;
use crate::units::Time;
use crate::{DeviceId, JobId};

impl Scheduler {
    /// Restores jobs, all at once: no job may be placed before all running jobs are known.
    pub(super) fn jobs_restored(&mut self, mut jobs: Vec<Job>, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        jobs.sort_unstable_by_key(|job| job.sequence);
        let mut seen = BTreeSet::new();
        for job in &jobs {
            let id = job.id();
            if self.jobs.contains_key(&id) || !seen.insert(id) {
                return Err(EventError::DuplicateJob(id));
            }
            job.spec.validate().map_err(EventError::spec(id))?;
            if let Some(active) = job.state.active() {
                self.check_place(active)?;
            }
        }
        let ids: Vec<JobId> = jobs.iter().map(Job::id).collect();
        for job in jobs {
            self.sequence = self.sequence.max(job.sequence).max(job.place());
            self.restore(job, now);
        }
        self.charge_all(now);
        // No job gets a turn in an array or within a quota before all running jobs have theirs.
        for job in ids {
            self.leave_server(job, now, actions);
            self.enqueue(job, now);
        }
        Ok(())
    }

    /// The devices of an attempt must be attached, even if lost.
    fn check_place(&self, active: &Active) -> Result<(), EventError> {
        let unknown = |device: &DeviceId| self.fleet.device(*device).is_none();
        match active.placement.devices.iter().map(|granted| granted.device).find(unknown) {
            Some(device) => Err(EventError::UnknownDevice(device)),
            None if self.fleet.server(active.placement.server).is_none() => Err(EventError::UnknownServer(active.placement.server)),
            None => Ok(()),
        }
    }

    fn restore(&mut self, mut job: Job, now: Time) {
        let id = job.id();
        // Its dependencies come before it in the order, so they are restored already; a forgotten one is over.
        let still_open = |dependency: &&Dependency| self.jobs.get(&dependency.job).is_some_and(|other| other.state.outcome().is_none());
        job.unmet = if job.state.is_pending() { job.spec.dependencies.iter().filter(still_open).copied().collect() } else { Vec::new() };
        self.dependents.add(id, &job.unmet);
        let active = job.state.active().cloned();
        if let Some(active) = &active {
            self.take_back(&job, active, now);
        }
        self.jobs.insert(id, Box::new(job));
        if let Some(active) = active {
            self.predict_speeds(&active.placement, now);
        }
        self.begin_time_slice(id);
        self.count_in(id);
    }

    /// Restores an attempt on its devices. They are closed until it has been seen on them again.
    fn take_back(&mut self, job: &Job, active: &Active, now: Time) {
        let attempt = active.attempt;
        // A running job has its turn in its array.
        self.arrays.admit(job);
        if active.stopping.is_some() {
            self.time_slices.leaves(attempt);
            self.timers.set(now + self.config.queue.grace, Timer::Grace(attempt));
        }
        let mut tenant = Tenant::newcomer(&job.spec, attempt, active.launched_at);
        if let Some(idle) = active.idle {
            // One that was never seen on its GPUs is idle by that alone.
            tenant.idle_since = Some(idle.since).filter(|_| matches!(job.state, State::Running(_)));
            if idle.lent {
                tenant.lend();
            }
            self.timers.set(now, Timer::Idle(attempt));
        } else if matches!(job.state, State::Starting(_)) {
            self.watch_unseen(attempt, now);
        }
        self.move_in(&tenant, job.spec.host_claim(), &active.placement, now);
    }
}
