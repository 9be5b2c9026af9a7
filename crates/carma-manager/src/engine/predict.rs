//! Predictions of starts and ends: when they are made.

use carma_core::JobId;

use super::state::EngineState;

/// Number of requests of waiting jobs that are read from the store at a time after a restart.
const MOST_READ: usize = 50;

impl EngineState {
    /// Orders a prediction from the present state, if one is due.
    pub(super) fn predict(&mut self) {
        self.predictions.follow(&self.decisions);
        if !self.predictions.is_due(&self.decisions) {
            return;
        }
        self.remember_groups();
        self.predictions.order(&self.decisions, &self.estimates.lengths);
    }

    /// What jobs of an earlier manager, and those far behind in an array, have in common with others is read from their requests.
    fn remember_groups(&mut self) {
        let scheduler = self.decisions.scheduler();
        let running = scheduler.fleet().devices().flat_map(|device| device.tenants.iter().map(|tenant| tenant.attempt.job));
        let unknown =
            running.chain(scheduler.queue_ids().take(super::predictions::WAITING)).filter(|job| !self.estimates.lengths.knows(*job));
        let unknown: Vec<JobId> = unknown.take(MOST_READ).collect();
        for job in unknown {
            let user = self.decisions.job(job).map(|job| job.spec.user);
            if let (Some(user), Ok(Some(request))) = (user, self.reader.request(job)) {
                let groups = self.estimates.lengths.groups(&request, user);
                self.estimates.lengths.add(job, groups);
            }
        }
    }
}
