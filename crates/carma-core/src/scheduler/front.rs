//! A copy of the scheduler with the front of its queue, for looking ahead.

use super::Scheduler;
use crate::JobId;
use crate::fleet::Server;

impl Scheduler {
    /// A copy with the running jobs and the first waiting ones; jobs that wait for something other than GPUs only if all
    /// jobs are few. Drivers run it ahead of time: the cost of a copy is bounded however long the queue is.
    #[must_use]
    pub fn front(&self, waiting: usize) -> Self {
        if self.jobs.len() <= waiting {
            return self.clone();
        }
        let running = self.fleet.servers().iter().flat_map(Server::attempts).map(|attempt| attempt.job);
        let kept = running.chain(self.queues.in_order().take(waiting));
        let jobs = kept.filter_map(|job: JobId| Some((job, self.jobs.get(&job)?.clone()))).collect();
        Self {
            config: self.config.clone(),
            clock: self.clock,
            jobs,
            fleet: self.fleet.clone(),
            queues: self.queues.front(waiting),
            dependents: self.dependents.clone(),
            arrays: self.arrays.clone(),
            quotas: self.quotas.clone(),
            timers: self.timers.clone(),
            modes: self.modes.clone(),
            time_slices: self.time_slices.clone(),
            paces: self.paces.clone(),
            sequence: self.sequence,
            cursor: self.cursor,
            backlog: self.backlog.clone(),
            critical: self.critical,
            dirty: self.dirty.clone(),
            reservation: self.reservation.clone(),
        }
    }
}
