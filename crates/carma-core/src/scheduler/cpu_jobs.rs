//! Jobs without GPUs: which start, and on which host.

use super::Scheduler;
use super::action::{Action, LaunchReason};
use super::dirty_scope::DirtyScope;
use crate::admission::{Demand, HeadReservation, HostReservation, closes_at, host_takes, least_lacking, may_last};
use crate::fleet::Fleet;
use crate::job::{Job, Placement};
use crate::obstacle::PlacementKind;
use crate::policy::Score;
use crate::queue::Place;
use crate::units::Time;
use crate::{JobId, ServerId};

impl Scheduler {
    /// Starts jobs without GPUs in order, until no host takes another. One that waits for cores or memory lets only those
    /// pass that claim none.
    pub(super) fn start_cpu_jobs(&mut self, now: Time, actions: &mut Vec<Action>) {
        if !self.queues.has_cpu_jobs() {
            return;
        }
        while let Some((job, start)) = self.next_cpu_start(now) {
            let Some((server, passed)) = start else {
                self.set_aside(job, now);
                continue;
            };
            if self.queues.host_head() == Some(job) {
                // Jobs that had to leave it room may start now.
                self.dirty = DirtyScope::Anything;
            }
            let placement = Placement { server, devices: Vec::new() };
            self.launch(job, placement, LaunchReason { kind: None, passed }, now, actions);
        }
        self.look_when_host_closes(now);
    }

    /// Others wait behind the first jobs, and a host is kept for the first that claims something of one. That changes when it can no
    /// longer start there.
    fn look_when_host_closes(&mut self, now: Time) {
        for id in self.queues.next_cpu_jobs() {
            let Some(job) = self.jobs.get(&id) else { continue };
            let demand = self.demand(job, now);
            if let Some(server) = demand.lasts.and_then(|_| least_lacking(&self.fleet, &demand)) {
                self.look_when_closed(id, closes_at(&demand, server));
            }
        }
    }

    /// The next job that can start and where, past which head; or one that no host could ever hold.
    #[expect(clippy::type_complexity, reason = "explained in the line above, and used in one place")]
    fn next_cpu_start(&self, now: Time) -> Option<(JobId, Option<(ServerId, Option<JobId>)>)> {
        self.queues.next_cpu_jobs().find_map(|id| {
            let job = self.jobs.get(&id)?;
            let demand = self.demand(job, now);
            let Some(server) = self.host_for(&demand, &[]) else {
                return (!could_ever_hold(&self.fleet, &demand)).then_some((id, None));
            };
            // Worked out only where there is something to keep it from.
            let Some(kept) = self.kept_for_claiming_head(job, now) else { return Some((id, Some((server, None)))) };
            let server = self.host_for(&demand, std::slice::from_ref(&kept))?;
            Some((id, Some((server, Some(kept.head)))))
        })
    }

    fn host_for(&self, demand: &Demand<'_>, kept: &[HeadReservation]) -> Option<ServerId> {
        let question = self.question(demand, PlacementKind::Idle, kept);
        self.fleet.best(
            0..self.fleet.servers().len(),
            |summary| {
                let takes = summary.takes_cpu_job && demand.host.fits_in(summary.host_unbooked) && may_last(demand, summary);
                takes.then_some(Score(0))
            },
            |server| (server.takes_cpu_job() && host_takes(&question, server)).then_some((Score(0), server.spec.id)),
        )
    }

    /// The part of a host that a job without GPUs must leave for the head of the queue, if the head comes first and both claim host resources.
    pub(super) fn kept_for_claiming_head(&self, job: &Job, now: Time) -> Option<HeadReservation> {
        let head = self.jobs.get(&self.head()?)?;
        let claims = |job: &Job| !job.spec.host_claim().is_nothing();
        let before = self.queues.host_job_before(&Place::of(head)) != Some(job.id());
        if claims(job) && claims(head) && before { self.kept_for(head.id(), now) } else { None }
    }

    /// The part of a host that a job with GPUs must leave for the first job without GPUs, if that one comes first and claims host resources.
    pub(super) fn host_kept_before(&self, demand: &Demand<'_>) -> Option<HostReservation> {
        let now = demand.now;
        if demand.host.is_nothing() || demand.width() == 0 {
            return None;
        }
        let head = self.jobs.get(&self.queues.host_job_before(&Place::of(self.jobs.get(&demand.spec.id)?))?)?;
        let demand = self.demand(head, now);
        Some(HostReservation { head: head.id(), server: least_lacking(&self.fleet, &demand)?.spec.id, claim: demand.host })
    }
}

/// Whether a job without GPUs claims no more than some host has that lasts long enough.
pub(super) fn could_ever_hold(fleet: &Fleet, demand: &Demand<'_>) -> bool {
    least_lacking(fleet, demand).is_some()
}
