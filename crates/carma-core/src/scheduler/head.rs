//! The head of the queue: which job is next, and whether anything is kept for it yet.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Scheduler;
use crate::JobId;
use crate::admission::HeadReservation;
use crate::job::Waiting;
use crate::obstacle::PlacementKind;
use crate::queue::{Place, plan_reservation};
use crate::tenant::Tenant;
use crate::units::Time;

/// Expected remaining GPU time of running attempts, as far as known. Kept as sums, because every decision reads it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Backlog {
    /// How many ranks should end when. Overdue ranks are left out: their remaining time is unknown.
    due: BTreeMap<Time, u32>,
    /// The sum of these moments, in milliseconds.
    ends: u128,
    ranks: u128,
}

impl Backlog {
    fn end(tenant: &Tenant) -> Option<Time> {
        tenant.expected.map(|expected| tenant.launched_at + expected)
    }

    pub(super) fn add(&mut self, tenant: &Tenant) {
        if let Some(end) = Self::end(tenant) {
            *self.due.entry(end).or_default() += 1;
            (self.ends, self.ranks) = (self.ends + u128::from(end.milliseconds()), self.ranks + 1);
        }
    }

    pub(super) fn remove(&mut self, tenant: &Tenant) {
        if let Some(Entry::Occupied(mut due)) = Self::end(tenant).map(|end| self.due.entry(end)) {
            (self.ends, self.ranks) = (self.ends - u128::from(due.key().milliseconds()), self.ranks - 1);
            *due.get_mut() -= 1;
            if *due.get() == 0 {
                due.remove();
            }
        }
    }

    /// Drops ranks that should have ended by now.
    fn forget_overdue(&mut self, now: Time) {
        while let Some(due) = self.due.first_entry().filter(|due| *due.key() <= now) {
            let (end, ranks) = due.remove_entry();
            self.ends -= u128::from(end.milliseconds()) * u128::from(ranks);
            self.ranks -= u128::from(ranks);
        }
    }

    /// Whether it is what these have still to do, for checks.
    pub(super) fn is_of<'a>(&self, tenants: impl Iterator<Item = &'a Tenant>, now: Time) -> bool {
        let (mut kept, mut recomputed) = (self.clone(), Self::default());
        tenants.for_each(|tenant| recomputed.add(tenant));
        kept.forget_overdue(now);
        recomputed.forget_overdue(now);
        kept == recomputed
    }

    fn left(&self, now: Time) -> u128 {
        self.ends.saturating_sub(self.ranks * u128::from(now.milliseconds()))
    }
}

impl Scheduler {
    /// The job that is next: the first of the queue, or the longest once all others would be done before it.
    pub(super) fn head(&self) -> Option<JobId> {
        let still_waits = |job: &JobId| self.jobs.get(job).is_some_and(|job| self.queues.main.contains(&Place::of(job)));
        self.critical.filter(still_waits).or_else(|| self.queues.head())
    }

    /// Reviews whether the longest job is next.
    pub(super) fn review_critical(&mut self, now: Time) {
        let next = |scheduler: &Self| scheduler.head().map(|head| (head, scheduler.is_due(head, now)));
        self.backlog.forget_overdue(now);
        let critical = self.find_critical(now);
        if critical != self.critical {
            let before = next(self);
            self.critical = critical;
            if next(self) != before {
                self.mark_all_dirty();
            }
        }
    }

    fn find_critical(&self, now: Time) -> Option<JobId> {
        let (share, gpus) = (self.config.queue.critical, self.fleet.gpu_count());
        if share <= 0.0 || gpus < 2 || self.queues.first_to_recover().is_some() {
            return None;
        }
        let (longest, others) = self.queues.main.longest()?;
        let rest = (others + self.backlog.left(now)) as f64 / gpus as f64;
        // A job that is due is not passed by one that has waited for a shorter time.
        let since = |job: JobId| self.jobs.get(&job).and_then(|job| job.state.waits_since());
        let may_pass = self.queues.head().is_none_or(|first| !self.is_due(first, now) || since(longest.job) <= since(first));
        (may_pass && rest <= share * longest.length.milliseconds() as f64).then_some(longest.job)
    }

    /// Whether GPUs are kept for the head: it has waited for long, or is to be recovered. The longest job goes first where it can
    /// start at once, but GPUs that are emptied for it cost the other jobs more than it gains.
    pub(super) fn is_due(&self, head: JobId, now: Time) -> bool {
        let Some(job) = self.jobs.get(&head) else { return false };
        let recovers = job.state.waiting() == Some(Waiting::Recovering);
        recovers || job.state.waits_since().is_some_and(|since| now - since >= self.config.queue.reserve_after)
    }

    /// What is kept for the head, if it is due.
    pub(super) fn kept_for(&self, head: JobId, now: Time) -> Option<HeadReservation> {
        if self.is_due(head, now) { self.planned_for(head, now) } else { Some(HeadReservation::nothing(head)) }
    }

    /// The same, taken out of the record instead of copied.
    pub(super) fn take_kept_for(&mut self, head: JobId, now: Time) -> Option<HeadReservation> {
        let known = self.reservation.take().filter(|kept| kept.head == head && !kept.devices.is_empty());
        if self.is_due(head, now) { known.or_else(|| self.planned_for(head, now)) } else { Some(HeadReservation::nothing(head)) }
    }

    /// What is to be kept for the head, due or not; planned again when anything it depends on has changed.
    pub(super) fn planned_for(&self, head: JobId, now: Time) -> Option<HeadReservation> {
        let known = self.reservation.as_ref().filter(|kept| kept.head == head && !kept.devices.is_empty());
        let plan = || {
            let demand = self.demand(self.jobs.get(&head)?, now);
            Some(plan_reservation(&self.fleet, self.question(&demand, PlacementKind::Share, &[]), now))
        };
        known.cloned().or_else(plan)
    }
}
