//! The head of the queue: which job is next, and whether anything is kept for it yet.

use super::Scheduler;
use crate::JobId;
use crate::admission::HeadReservation;
use crate::config::QueueConfig;
use crate::job::Waiting;
use crate::obstacle::PlacementKind;
use crate::queue::{KnownEnds, Place, plan_reservation};
use crate::units::{Seconds, Time};

impl Scheduler {
    /// The job that is next: the first of the queue, or the longest once all others would be done before it.
    pub(super) fn head(&self) -> Option<JobId> {
        let still_waits = |job: &JobId| self.jobs.get(job).is_some_and(|job| self.queues.main.contains(&Place::of(job)));
        self.critical.filter(still_waits).or_else(|| self.queues.head())
    }

    /// Reviews whether the longest job is next.
    pub(super) fn review_critical(&mut self, now: Time) {
        let next = |scheduler: &Self| scheduler.head().map(|head| (head, scheduler.is_due(head, now)));
        self.backlog.review(now);
        let critical = self.find_critical(now).map(|(job, _)| job);
        if critical != self.critical {
            let before = next(self);
            self.critical = critical;
            if next(self) != before {
                self.mark_all_dirty();
            }
        }
    }

    /// The longest job, if all other work per GPU is little against its own: how little, from 0 (just little enough) to 1 (there is none).
    fn find_critical(&self, now: Time) -> Option<(JobId, f64)> {
        let (share, gpus) = (self.config.queue.critical, self.fleet.gpu_count());
        if share <= 0.0 || gpus < 2 || self.queues.first_to_recover().is_some() {
            return None;
        }
        let (longest, others) = self.queues.main.longest()?;
        let rest = (others + self.backlog.left(now)) as f64 / gpus as f64;
        let urgency = 1.0 - rest / (share * longest.length.milliseconds() as f64);
        // A job that is due is not passed by one that has waited for a shorter time.
        let since = |job: JobId| self.jobs.get(&job).and_then(|job| job.state.waits_since());
        let may_pass = || self.queues.head().is_none_or(|first| !self.is_due(first, now) || since(longest.job) <= since(first));
        // With a long queue it is mostly not urgent, and no job has to be considered.
        (urgency >= 0.0 && may_pass()).then_some((longest.job, urgency))
    }

    /// Whether GPUs are kept for the head whatever it costs: it has waited for long, or is to be recovered.
    pub(super) fn is_due(&self, head: JobId, now: Time) -> bool {
        let Some(job) = self.jobs.get(&head) else { return false };
        let recovers = job.state.waiting() == Some(Waiting::Recovering);
        recovers || job.state.waits_since().is_some_and(|since| now - since >= self.config.queue.reserve_after)
    }

    /// What is kept for the head: GPUs if it is due, or if they are predicted to be free for it soon enough.
    pub(super) fn kept_for(&self, head: JobId, now: Time) -> Option<HeadReservation> {
        if self.is_due(head, now) { self.planned_for(head, now) } else { Some(self.predicted_for(head, now)) }
    }

    /// The same, taken out of the record instead of copied.
    pub(super) fn take_kept_for(&mut self, head: JobId, now: Time) -> Option<HeadReservation> {
        let known = self.reservation.take().filter(|kept| kept.plans_for(head));
        if self.is_due(head, now) { known.or_else(|| self.planned_for(head, now)) } else { Some(self.predicted_for(head, now)) }
    }

    /// The GPUs that are predicted to be free first for the head, if that is soon enough.
    fn predicted_for(&self, head: JobId, now: Time) -> HeadReservation {
        let job = self.jobs.get(&head).zip(self.worth_waiting(head, now));
        let planned = job.and_then(|(job, wait)| {
            let demand = self.demand(job, now);
            let planned = plan_reservation(&self.fleet, self.question(&demand, PlacementKind::Share, &[]), KnownEnds::Predicted, now);
            planned.from.is_some_and(|from| from <= now + wait).then_some(planned)
        });
        planned.unwrap_or_else(|| HeadReservation::nothing(head))
    }

    /// How long GPUs may be kept for a head that is not due: for the longest job a small share of its length, the more the less other work
    /// there is and the more GPUs it leaves to others; for a job that has waited for long against its length, its length.
    fn worth_waiting(&self, head: JobId, now: Time) -> Option<Seconds> {
        let QueueConfig { drain, stretch, .. } = self.config.queue;
        let job = self.jobs.get(&head)?;
        let (length, since) = (job.turn.length, job.state.waits_since()?);
        if stretch > 0.0 && now - since >= length.times(stretch) {
            return Some(length);
        }
        let urgency = self.find_critical(now).filter(|(longest, _)| *longest == head && drain > 0.0).map(|(_, urgency)| urgency);
        let (gpus, all) = (f64::from(job.spec.gpus), self.fleet.gpu_count() as f64);
        urgency.map(|urgency| length.times((drain * urgency * (all - gpus).max(0.0) / gpus).min(1.0)))
    }

    /// The reservation for the head, due or not. It is planned again when anything it depends on has changed.
    pub(super) fn planned_for(&self, head: JobId, now: Time) -> Option<HeadReservation> {
        let known = self.reservation.as_ref().filter(|kept| kept.plans_for(head));
        let plan = || {
            let demand = self.demand(self.jobs.get(&head)?, now);
            Some(plan_reservation(&self.fleet, self.question(&demand, PlacementKind::Share, &[]), KnownEnds::Limits, now))
        };
        known.cloned().or_else(plan)
    }
}
