//! The life of an attempt: launched, seen, signalled to stop, ended, and the next step.

use super::action::{Action, LaunchReason, RequeueReason, Signal};
use super::timers::Timer;
use super::{EventError, Scheduler};
use crate::admission::Demand;
use crate::job::{Active, HostClaim, Job, Outcome, Placement, StopReason, Verdict, Waiting};
use crate::mapping;
use crate::queue::Place;
use crate::recovery::{LadderPosition, OomContext};
use crate::sharing::Limits;
use crate::tenant::{Tenant, Work};
use crate::units::{Fraction, MiB, Seconds, Time};
use crate::{AttemptId, DeviceId, JobId};

impl Scheduler {
    /// The job whose attempt is under way.
    pub(super) fn under_way(&self, attempt: AttemptId) -> Result<(&Job, &Active), EventError> {
        let job = self.known_job(attempt.job)?;
        let active = job.state.active().filter(|active| active.attempt == attempt);
        active.map(|active| (job, active)).ok_or(EventError::NotUnderWay(attempt))
    }

    /// Starts a job that is in a queue.
    pub(super) fn launch(&mut self, job: JobId, placement: Placement, reason: LaunchReason, now: Time, actions: &mut Vec<Action>) {
        let Some(known) = self.jobs.get_mut(&job) else { return };
        let attempt = known.next_attempt();
        // The remaining work of a job that resumes from a checkpoint.
        let expected = known.spec.expected_duration.and_then(|_| known.expected_remaining(now));
        let active = Active {
            attempt,
            placement: placement.clone(),
            launched_at: now,
            stopping: None,
            needed: None,
            ended_at: None,
            idle: None,
            stall: None,
        };
        if known.state.launch(active).is_err() {
            debug_assert!(false, "{job} was launched while {}", known.state.name());
            return;
        }
        known.attempts += 1;
        known.progress = None;
        self.queues.remove(&Place::of(known));
        let work = expected.map(|expected| Work::new(expected, now));
        let may_trim = known.has_sure_memory();
        let newcomer = Tenant { may_trim, work, ..Tenant::newcomer(&known.spec, attempt, now) };
        let claim = known.spec.host_claim();
        self.move_in(&newcomer, claim, &placement, now);
        self.fleet.update_host(placement.server, |host| host.expect(attempt, claim.memory));
        self.count_in(job);
        self.charge(job, now, now);
        self.begin_time_slice(job);
        self.remember_kind(job, now);
        self.advance_cursor(&placement);
        self.watch_unseen(attempt, now);
        if !placement.devices.is_empty() {
            self.reservation = None;
        }
        actions.push(Action::Launch { attempt, placement, reason });
    }

    /// Places an attempt on its devices. Its time limit counts from its launch.
    pub(super) fn move_in(&mut self, newcomer: &Tenant, claim: HostClaim, placement: &Placement, now: Time) {
        if let Some(end) = newcomer.ends_at {
            self.timers.set(end, Timer::Limit(newcomer.attempt));
        }
        for granted in &placement.devices {
            let mps_client = matches!(granted.limits, Limits::Mps { .. });
            let driver_limit = if let Limits::Driver { memory } = granted.limits { Some(memory) } else { None };
            let may_trim = newcomer.may_trim || driver_limit.is_some() || matches!(granted.limits, Limits::Mps { memory: Some(_), .. });
            let tenant = Tenant { reserved: granted.reserved, mps_client, driver_limit, may_trim, ..newcomer.clone() };
            self.backlog.add(tenant.work);
            self.update_timed(granted.device, now, |device, config| device.admit(tenant, config, now));
        }
        self.tenants_changed(placement, now);
        if placement.devices.is_empty() {
            self.fleet.add_cpu_attempt(placement.server, newcomer.attempt);
        }
        self.fleet.update_host(placement.server, |host| host.book(claim));
    }

    /// The ring continues after its last used device.
    fn advance_cursor(&mut self, placement: &Placement) {
        let devices = placement.devices.iter().map(|granted| granted.device);
        self.cursor = devices.max_by_key(|device| (Some(*device) <= self.cursor, *device)).or(self.cursor);
    }

    /// Notes that an attempt's process was seen on a device.
    pub(super) fn seen(&mut self, attempt: AttemptId) {
        if let Some(job) = self.jobs.get_mut(&attempt.job) {
            // Its device names it a tenant, so it is starting or running.
            let seen = job.state.seen();
            debug_assert!(seen.is_ok());
        }
    }

    /// Tells an attempt to stop. A user's cancellation overrides any other reason; otherwise the first reason stays.
    pub(super) fn stop(&mut self, attempt: AttemptId, reason: StopReason, signal: Signal, now: Time, actions: &mut Vec<Action>) {
        let Some(active) = self.jobs.get_mut(&attempt.job).and_then(|job| job.state.active_mut()) else { return };
        let outweighs = match active.stopping {
            None => true,
            Some(already) => reason == StopReason::Cancelled && already != StopReason::Cancelled,
        };
        if active.attempt != attempt || !outweighs {
            return;
        }
        active.stopping = Some(reason);
        self.time_slices.leaves(attempt);
        if signal != Signal::Kill {
            self.timers.set(now + self.config.queue.grace, Timer::Grace(attempt));
        }
        actions.push(Action::Signal { attempt, signal, reason });
    }

    /// Moves the end of a running attempt whose time limit was changed.
    pub(super) fn move_limit(&mut self, job: JobId, before: Option<Seconds>, now: Time) {
        let Some(known) = self.jobs.get(&job) else { return };
        let Some(active) = known.state.active() else { return };
        let (attempt, launched_at) = (active.attempt, active.launched_at);
        if let Some(limit) = before {
            self.timers.cancel(launched_at + limit, Timer::Limit(attempt));
        }
        let ends_at = known.spec.time_limit.map(|limit| launched_at + limit);
        if let Some(end) = ends_at {
            self.timers.set(end, Timer::Limit(attempt));
        }
        for granted in &active.placement.devices {
            self.fleet.update(granted.device, &self.config, now, |device| {
                device.tenant_mut(attempt).into_iter().for_each(|tenant| tenant.ends_at = ends_at);
            });
        }
    }

    pub(super) fn progressed(
        &mut self,
        attempt: AttemptId,
        done: Fraction,
        now: Time,
        actions: &mut Vec<Action>,
    ) -> Result<(), EventError> {
        self.under_way(attempt)?;
        self.jobs.entry(attempt.job).and_modify(|job| job.progress = Some(done));
        self.change_work(attempt, |work| work.reported(done.get(), now));
        self.watch_pace(attempt, done, now, actions);
        Ok(())
    }

    pub(super) fn checkpointed(&mut self, attempt: AttemptId, now: Time) -> Result<(), EventError> {
        self.under_way(attempt)?;
        self.jobs.entry(attempt.job).and_modify(|job| {
            job.checkpointed_at = Some(now);
            job.saved_progress = job.progress.or(job.saved_progress);
        });
        Ok(())
    }

    pub(super) fn memory_needed(&mut self, attempt: AttemptId, needed: MiB) -> Result<(), EventError> {
        self.under_way(attempt)?;
        if let Some(active) = self.jobs.get_mut(&attempt.job).and_then(|job| job.state.active_mut()) {
            active.needed = Some(needed);
        }
        Ok(())
    }

    pub(super) fn ended_at(&mut self, attempt: AttemptId, at: Time, now: Time) -> Result<(), EventError> {
        self.under_way(attempt)?;
        if let Some(active) = self.jobs.get_mut(&attempt.job).and_then(|job| job.state.active_mut()) {
            active.ended_at = Some(at.min(now).max(active.launched_at));
        }
        Ok(())
    }

    /// The attempt runs on a device without the limits that it should have.
    pub(super) fn not_limited(&mut self, attempt: AttemptId, device: DeviceId, now: Time) -> Result<(), EventError> {
        let (job, _) = self.under_way(attempt)?;
        let may_trim = job.has_sure_memory();
        let active = self.jobs.get_mut(&attempt.job).and_then(|job| job.state.active_mut());
        let granted = active.and_then(|active| active.placement.devices.iter_mut().find(|granted| granted.device == device));
        let Some(granted) = granted.filter(|granted| matches!(granted.limits, Limits::Driver { .. })) else { return Ok(()) };
        granted.limits = Limits::Streams;
        self.update_timed(device, now, |device, _| {
            if let Some(tenant) = device.tenant_mut(attempt) {
                (tenant.driver_limit, tenant.may_trim) = (None, may_trim);
            }
        });
        Ok(())
    }

    pub(super) fn exited(&mut self, attempt: AttemptId, verdict: Verdict, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        let (job, active) = self.under_way(attempt)?;
        let borrowed = matches!(active.stopping, Some(StopReason::Borrows(_)));
        let oom = (borrowed || verdict == Verdict::OutOfMemory).then(|| self.oom(job, active, now)).flatten();
        let (active, claim, limit) = (active.clone(), job.spec.host_claim(), job.spec.time_limit);
        if let Some(limit) = limit {
            self.timers.cancel(active.launched_at + limit, Timer::Limit(attempt));
        }
        for granted in &active.placement.devices {
            let gone = self.update_timed(granted.device, now, |device, _| device.dismiss(attempt, now));
            gone.flatten().into_iter().for_each(|tenant| self.backlog.remove(tenant.work));
        }
        if active.placement.devices.is_empty() {
            self.fleet.remove_cpu_attempt(active.placement.server, attempt);
        }
        self.fleet.update_host(active.placement.server, |host| host.release(attempt, claim));
        self.time_slices.gone(attempt);
        self.paces.remove(&attempt);
        self.tenants_changed(&active.placement, now);
        self.settle_use(&active, now);
        if verdict == Verdict::ServerLost {
            self.remember_lost_server(&active, now);
        }
        // A server and a time limit can end at the same moment.
        let out_of_time = verdict == Verdict::ServerLost && limit.is_some_and(|limit| active.ran(now) >= limit);
        let stopping = active.stopping.or(out_of_time.then_some(StopReason::TimeLimit));
        match self.next_step(attempt, stopping, &verdict, oom, now) {
            NextStep::Finish(outcome) => self.finish(attempt.job, outcome, now, actions),
            NextStep::Requeue(queue) => {
                let reason = match active.stopping.filter(|_| borrowed || queue == Waiting::Preempted) {
                    Some(StopReason::Borrows(_)) => RequeueReason::Borrowed,
                    Some(StopReason::TimeSliceOver) => RequeueReason::TimeSliceOver,
                    Some(StopReason::Moved) => RequeueReason::Moved,
                    Some(StopReason::ServerEnding) => RequeueReason::ServerEnding,
                    Some(StopReason::Hanging) => RequeueReason::Hung,
                    Some(_) => RequeueReason::Requested,
                    None => RequeueReason::After(verdict),
                };
                self.put_back(attempt.job, queue, reason, now, actions);
            }
        }
        Ok(())
    }

    fn put_back(&mut self, job: JobId, queue: Waiting, reason: RequeueReason, now: Time, actions: &mut Vec<Action>) {
        // Whatever the order, the jobs it made room for go before it.
        let last = self.jobs.get(&job).map_or(0, |known| self.queues.main.last_rank(known));
        let Some(known) = self.jobs.get_mut(&job) else { return };
        let put = known.state.put_back(queue, now);
        debug_assert!(put.is_ok(), "{job} was put back while {}", known.state.name());
        if reason == RequeueReason::TimeSliceOver {
            self.sequence += 1;
            (known.put_back_as, known.put_back_rank) = (Some(self.sequence), last);
        }
        let LadderPosition { floor, whole_gpu, .. } = known.climb;
        actions.push(Action::Requeue { job, floor, whole_gpu, reason });
        self.enqueue(job, now);
    }

    /// The memory that was reserved for the attempt, for the recovery ladder; none without GPUs.
    fn oom(&self, job: &Job, active: &Active, now: Time) -> Option<OomContext> {
        let demand = self.demand(job, now);
        let devices = || active.placement.devices.iter().filter_map(|granted| self.fleet.device(granted.device));
        let ours = |tenant: &&Tenant| tenant.attempt == active.attempt;
        // Every rank will ask for the same, so the smallest device is the limit.
        let capacity = devices().map(|device| device.spec.memory).min()?;
        let reading = devices().flat_map(|device| &device.tenants).filter(ours).map(Tenant::attributed);
        let requested = demand.ranks.iter().map(|need| if demand.needs_idle { capacity } else { need.to_share });
        let borrowed = if let Some(StopReason::Borrows(borrowing)) = active.stopping { Some(borrowing.used()) } else { None };
        let had = requested.chain(reading).chain(active.needed).chain(borrowed).max().unwrap_or(MiB::ZERO).min(capacity);
        // An attempt that reported a need above the device's memory is not tried there again.
        let too_large = active.needed.filter(|needed| *needed > capacity);
        let nobody_else = devices().all(|device| device.tenants.len() == 1 && device.foreign.is_empty());
        let alone = too_large.is_some() || job.spec.exclusive || !self.config.mapping.policy.shares || job.climb.whole_gpu && nobody_else;
        Some(OomContext {
            had,
            capacity,
            next_capacity: self.fleet.next_larger(too_large.map_or(capacity, |needed| needed - MiB(1))),
            alone,
        })
    }

    /// What happens to a job whose attempt has ended.
    fn next_step(
        &mut self,
        attempt: AttemptId,
        stopping: Option<StopReason>,
        verdict: &Verdict,
        oom: Option<OomContext>,
        now: Time,
    ) -> NextStep {
        let job = attempt.job;
        match (stopping, verdict, oom) {
            (_, Verdict::Succeeded, _) => NextStep::Finish(Outcome::Succeeded),
            (Some(StopReason::Cancelled), ..) => NextStep::Finish(Outcome::Cancelled),
            (Some(StopReason::TimeLimit), ..) => NextStep::Finish(Outcome::TimeLimit),
            (Some(StopReason::Requeued | StopReason::TimeSliceOver | StopReason::Moved | StopReason::ServerEnding), ..) => {
                NextStep::Requeue(Waiting::Preempted)
            }
            (Some(StopReason::Hanging), ..) | (_, Verdict::Hung, _) => self.after_hang(attempt),
            // Servers come and go: that is no fault, however often it happens.
            (_, Verdict::ServerLost, _) => NextStep::Requeue(Waiting::Queued),
            (Some(StopReason::GpuLost), ..) | (_, Verdict::GpuLost, _) => self.after_displacement(job, Outcome::GpuLost),
            (Some(StopReason::MpsServerDied), ..) | (_, Verdict::MpsServerDied, _) => self.after_displacement(job, Outcome::MpsServerDied),
            (None | Some(StopReason::Borrows(_)), _, Some(oom)) => self.after_oom(job, oom, now),
            (None | Some(StopReason::Borrows(_)), _, None) => self.after_failure(job, verdict),
        }
    }

    /// After a hardware fault or a dead MPS server: requeued, up to a limit.
    fn after_displacement(&mut self, job: JobId, outcome: Outcome) -> NextStep {
        let most = self.config.recovery.displacements;
        let Some(job) = self.jobs.get_mut(&job) else { return NextStep::Finish(outcome) };
        job.displacements += 1;
        if job.displacements > most { NextStep::Finish(outcome) } else { NextStep::Requeue(Waiting::Queued) }
    }

    /// It ran out of memory: up the ladder, as long as that leads to something there is and its user may have.
    fn after_oom(&mut self, job: JobId, oom: OomContext, now: Time) -> NextStep {
        let Some(known) = self.jobs.get_mut(&job) else { return NextStep::Finish(Outcome::OutOfMemory) };
        let within_budget = known.spec.retries.out_of_memory.is_none_or(|budget| known.climb.crashes < budget);
        let next = known.climb.after(oom, &self.config.recovery.ladder).filter(|_| within_budget);
        let Some(next) = next else { return NextStep::Finish(Outcome::OutOfMemory) };
        known.climb = next;
        let leads_on = self
            .jobs
            .get(&job)
            // Servers like one that ends may come again.
            .is_some_and(|job| {
                let demand = Demand { whenever: true, ..self.demand(job, now) };
                mapping::could_ever_fit(&self.fleet, &demand) && self.beyond_quota(job, now).is_none()
            });
        if leads_on { NextStep::Requeue(Waiting::Recovering) } else { NextStep::Finish(Outcome::OutOfMemory) }
    }

    /// It failed by itself.
    fn after_failure(&mut self, job: JobId, verdict: &Verdict) -> NextStep {
        let Some(job) = self.jobs.get_mut(&job) else { return NextStep::Finish(verdict.clone().into()) };
        job.failures += 1;
        if job.failures > job.spec.retries.failure { NextStep::Finish(verdict.clone().into()) } else { NextStep::Requeue(Waiting::Queued) }
    }
}

/// What happens to a job whose attempt has ended.
pub(super) enum NextStep {
    Finish(Outcome),
    Requeue(Waiting),
}
