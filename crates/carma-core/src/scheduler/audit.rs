//! Checks that what is kept in two places agrees; for tests and bug reports.

use super::Scheduler;
use crate::config::QuotaUse;
use crate::device::grown_stale;
use crate::job::{HostClaim, Job, State};
use crate::queue::Place;
use crate::units::MiB;

impl Scheduler {
    /// Every broken invariant as text; none if all hold.
    pub fn audit(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut expect = |holds: bool, what: &dyn Fn() -> String| {
            if !holds {
                broken.push(what());
            }
        };
        for device in self.fleet.devices() {
            let id = device.id();
            if self.config.admission.reservations {
                expect(device.reserved() <= device.spec.memory, &|| {
                    format!("{id} reserves {} of {}", device.reserved(), device.spec.memory)
                });
            }
            for tenant in &device.tenants {
                let active = self.jobs.get(&tenant.attempt.job).and_then(|job| job.state.active());
                let placed = active.is_some_and(|active| {
                    active.attempt == tenant.attempt && active.placement.devices.iter().any(|granted| granted.device == id)
                });
                expect(placed, &|| format!("{id} has {}, which is not placed there", tenant.attempt));
            }
            let mut fresh = device.clone();
            fresh.refresh(&self.config, self.clock);
            // Samples grow old without an event; the cached availability may only be too optimistic by that.
            let stale = grown_stale(device, &self.config, self.clock).is_some();
            expect(stale || fresh.availability() == device.availability(), &|| format!("{id} has an outdated availability"));
        }
        for server in self.fleet.servers() {
            let here = |job: &&Job| job.state.active().is_some_and(|active| active.placement.server == server.spec.id);
            let claims = self.jobs().filter(here).map(|job| job.spec.host_claim());
            let sum = claims.fold(HostClaim::default(), HostClaim::and);
            let without_gpus = self.jobs().filter(here).filter(|job| job.spec.gpus == 0).count();
            expect(without_gpus == server.cpu_jobs(), &|| {
                format!("{} counts {} jobs without GPUs of {without_gpus}", server.spec.id, server.cpu_jobs())
            });
            let alike = server.devices.iter().all(|device| device.ending == server.ending && device.host_short == server.host_short);
            expect(alike, &|| format!("{} and its devices disagree", server.spec.id));
            expect(sum == server.host.booked, &|| format!("{} booked {:?} for claims of {sum:?}", server.spec.id, server.host.booked));
        }
        expect(self.fleet.adds_up(), &|| "the summaries of the servers are outdated".to_owned());
        for gpu in self.wrong_switches() {
            expect(false, &|| format!("{gpu} is being switched with jobs on it, or is not on record as such"));
        }
        for user in self.quotas.wrong_sums() {
            expect(false, &|| format!("the account of {user} does not add up"));
        }
        let with_gpus = |job: &&Job| job.state.active().is_some_and(|active| !active.placement.devices.is_empty());
        let charged = if self.config.queue.fair_share { self.jobs().filter(with_gpus).count() } else { 0 };
        let paid = self.queues.main.ledger.len();
        expect(charged == paid, &|| format!("{paid} attempts are charged of {charged}"));
        let tenants = self.fleet.devices().flat_map(|device| &device.tenants);
        expect(self.backlog.is_of(tenants, self.clock), &|| "the work that is under way does not add up".to_owned());
        expect(self.queues.main.adds_up(), &|| "the work that waits does not add up".to_owned());
        let mut queued = 0;
        for job in self.jobs() {
            queued += usize::from(self.queues.contains(&Place::of(job)));
            self.audit_job(job, &mut expect);
        }
        expect(queued == self.queues.len(), &|| format!("{} places in queues for {queued} jobs", self.queues.len()));
        broken
    }

    fn audit_job(&self, job: &Job, expect: &mut dyn FnMut(bool, &dyn Fn() -> String)) {
        let id = job.id();
        let place = Place::of(job);
        let in_queue = self.queues.contains(&place);
        if self.config.quotas.of(job.spec.user).limits() {
            let turn = self.quotas.turn(job);
            let right = match job.state.active() {
                Some(active) => turn == Some(QuotaUse::of(&active.placement)),
                None => turn.is_some() == (in_queue && !self.queues.is_set_aside(&place)),
            };
            expect(right, &|| format!("{id} is {}, and its turn takes {turn:?}", job.state.name()));
        }
        match &job.state {
            State::Held { .. } | State::Estimating { .. } | State::Done { .. } => {
                expect(!in_queue, &|| format!("{id} is {} and in a queue", job.state.name()));
            }
            State::Queued { .. } | State::Recovering { .. } | State::Preempted { .. } => {
                let begins_later = job.spec.begin.is_some_and(|begin| begin > self.clock);
                let waits = in_queue || !job.unmet.is_empty() || self.arrays.is_waiting(job) || begins_later || self.quotas.is_waiting(job);
                expect(waits, &|| format!("{id} is lost: {} but in no queue", job.state.name()));
            }
            State::Starting(active) | State::Running(active) => {
                expect(!in_queue, &|| format!("{id} runs and waits"));
                let ranks = active.placement.devices.len();
                expect(ranks == job.spec.gpus as usize, &|| format!("{id} has {ranks} of {} GPUs", job.spec.gpus));
                for granted in &active.placement.devices {
                    let tenants = self.fleet.device(granted.device).map_or(&[][..], |device| &device.tenants);
                    let times = tenants.iter().filter(|tenant| tenant.attempt == active.attempt).count();
                    expect(times == 1, &|| format!("{id} is {times} times on {}", granted.device));
                }
                let reserved = |granted: &&crate::job::Granted| granted.reserved > MiB::ZERO && granted.reserved < job.climb.floor;
                expect(active.placement.devices.iter().find(reserved).is_none(), &|| format!("{id} runs below its floor"));
            }
        }
    }
}
