//! Jobs that are not to begin before a time of the wall clock. They follow that clock when it is set, and when no manager ran for a while.

use carma_core::{Event, Job, JobId, Time};

use super::decide::Clock;
use super::state::EngineState;
use crate::store::{UnfinishedJob, UnixMillis};

/// A time of the wall clock, in seconds, as the core's time.
pub(super) fn in_core_time(clock: &Clock, seconds: u64) -> Time {
    clock.at(UnixMillis(seconds.saturating_mul(1000)))
}

impl EngineState {
    /// Moves the times of waiting jobs if the wall clock was set, or the host slept.
    pub(super) fn follow_wall_clock(&mut self) {
        let Some(jump) = self.decisions.clock.take_jump() else { return };
        tracing::warn!("the wall clock was set by {} s; time limits do not change", jump / 1000);
        self.move_begin_times();
    }

    /// Computes the times of waiting jobs again.
    pub(super) fn move_begin_times(&mut self) {
        let is_waiting = |job: &&Job| job.spec.begin.is_some() && job.state.active().is_none() && job.state.outcome().is_none();
        let waiting: Vec<JobId> = self.decisions.scheduler().jobs().filter(is_waiting).map(Job::id).collect();
        for job in waiting {
            if let Some(begin) = self.requested_begin(job) {
                self.decisions.tell_or_log(Event::BeginMoved { job, begin });
            }
        }
    }

    /// Gives jobs from the store their times again: the core's time stood still while no manager ran.
    pub(super) fn renew_begin_times(&self, unfinished: &mut [UnfinishedJob]) {
        // Time of emulated GPUs that run faster passes only while a manager runs.
        if !self.decisions.clock.is_real() {
            return;
        }
        for UnfinishedJob { job, .. } in unfinished.iter_mut().filter(|unfinished| unfinished.job.spec.begin.is_some()) {
            job.spec.begin = self.requested_begin(job.id()).or(job.spec.begin);
        }
    }

    /// What the user requested, by the wall clock of now.
    fn requested_begin(&self, job: JobId) -> Option<Time> {
        let request = self.reader.request(job).ok()??;
        request.schedule.begin.map(|seconds| in_core_time(&self.decisions.clock, seconds))
    }
}
