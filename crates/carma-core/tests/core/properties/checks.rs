//! What every answer of the scheduler is checked against.

use carma_core::*;

use super::order::Candidate;
use super::world::World;

/// The test's own record of a gate: which attempt closed it, when, and since when it was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closed {
    pub(super) by: AttemptId,
    pub(super) launched_at: Time,
    pub(super) seen_at: Option<Time>,
}

impl Closed {
    /// By the rules in force now, whatever they were when it closed.
    fn is_shut(&self, gate: GateConfig, now: Time) -> bool {
        match (self.seen_at, gate.timeout) {
            // Sooner for a new job that behaves as predicted.
            (Some(seen), _) => now - seen <= gate.observe.min(gate.confirmed),
            (None, Some(timeout)) => now - self.launched_at < timeout,
            (None, None) => true,
        }
    }
}

impl World {
    pub(super) fn check(&mut self, before: &Scheduler, actions: &[Action]) {
        assert_eq!(self.scheduler().audit(), Vec::<String>::new());
        self.check_shares(actions);
        self.check_power(actions);
        self.check_servers(before, actions);
        self.check_exclusive(actions);
        self.check_switches(before, actions);
        self.check_no_job_was_overlooked();
        self.check_listed_order();
        self.check_time_slices(before, actions);
        self.check_trims(before);
        let now = self.scheduler().now();
        let scheduler = self.log.scheduler();
        // Gates whose attempt is over are open.
        self.gates.retain(|_, closed| {
            let active = before.job(closed.by.job).and_then(|job| job.state.active().cloned());
            let still = scheduler.job(closed.by.job).and_then(|job| job.state.active());
            active.is_some_and(|active| active.attempt == closed.by) && still.is_some_and(|still| still.attempt == closed.by)
        });
        for action in actions {
            if let Action::Launch { attempt, placement, reason } = action {
                Self::check_floor(scheduler, before, *attempt, placement);
                Self::check_order(scheduler, before, actions, attempt.job, *reason);
                for granted in &placement.devices {
                    let gate = scheduler.config().gate;
                    let shut = self.gates.get(&granted.device).is_some_and(|closed| closed.is_shut(gate, now));
                    assert!(!shut, "{attempt} passed a closed gate at {}", granted.device);
                    self.gates.insert(granted.device, Closed { by: *attempt, launched_at: now, seen_at: None });
                }
            }
        }
    }

    /// The list of the queue begins with the job that others wait behind, and has as many jobs before a job as its reason says.
    fn check_listed_order(&self) {
        let scheduler = self.scheduler();
        let listed: Vec<JobId> = scheduler.queue_ids().collect();
        let Some(last) = listed.last() else { return };
        match scheduler.explain(*last).unwrap().reason {
            WaitReason::Behind { head, ahead, .. } => assert_eq!((head, ahead), (listed[0], listed.len() - 1)),
            WaitReason::Room => assert_eq!(listed.len(), 1),
            _ => {}
        }
    }

    /// Decisions consider only what an event could have changed. A decision over everything must find no other job to start,
    /// except that what is kept for the head may be planned again and let others pass.
    fn check_no_job_was_overlooked(&self) {
        // New rules forget which switches were refused, and a head that hopes for one again is another one.
        if self.scheduler().fleet().devices().any(|device| !device.switches.refused.is_empty()) {
            return;
        }
        let mut all_over_again = self.scheduler().clone();
        let settings = Settings::from(all_over_again.config());
        let actions = all_over_again.handle(Event::ConfigurationChanged(Box::new(settings)), self.now).unwrap();
        // Under a budget one that was set aside as too large counts as work until it is tried again: so long the longest may not be next.
        let Config { queue, power, .. } = self.scheduler().config();
        let more_work = queue.critical > 0.0 && power.budget.is_some();
        let overlooked = |action: &&Action| match action {
            Action::Launch { attempt, placement, reason: LaunchReason { passed: None, .. } } => {
                !self.is_left_to_others(attempt.job, placement)
            }
            _ => false,
        };
        assert_eq!(actions.iter().find(overlooked).filter(|_| !more_work), None);
    }

    /// Whether a job had to leave a device to users below their share. The usage of users is read when attempts begin and end; read again now, it
    /// may exempt another user.
    fn is_left_to_others(&self, job: JobId, placement: &Placement) -> bool {
        let explanation = self.scheduler().explain(job).unwrap();
        let left = |answer: &&DeviceAnswer| answer.obstacles.contains(&Obstacle::ReservedForFairShare);
        let mut left = explanation.devices.iter().filter(left);
        left.any(|answer| placement.devices.iter().any(|granted| granted.device == answer.device))
    }

    /// A recovered job never starts below its floor, and one that needs idle GPUs gets no others.
    fn check_floor(scheduler: &Scheduler, before: &Scheduler, attempt: AttemptId, placement: &Placement) {
        let job = scheduler.job(attempt.job).unwrap();
        for granted in &placement.devices {
            let device = scheduler.fleet().device(granted.device).unwrap();
            assert!(device.spec.memory >= job.climb.floor, "{attempt} on {} is below its floor", granted.device);
            assert!(!device.lost && !device.drained && !device.partitioned && !device.host_short && !device.ending);
            let alone = device.tenants.len() == 1 && device.foreign.is_empty();
            assert!(alone || !(job.climb.whole_gpu || job.spec.exclusive), "{attempt} had to be alone on {}", granted.device);
            if scheduler.config().admission.reservations {
                assert!(granted.reserved >= job.climb.floor.min(device.spec.memory));
            } else if !alone && before.fleet().device(granted.device).unwrap().telemetry == device.telemetry {
                let free = device.spec.memory - device.telemetry.memory_used().unwrap_or_default();
                assert!(free >= job.climb.floor, "{attempt}: {free} free on {}, floor {}", granted.device, job.climb.floor);
            }
        }
    }

    /// Whether another job was at the head later in the same decision and started: a launch can make the longest job the next one. It may take
    /// what was kept for the head, for which other GPUs are kept then.
    fn became_head_after(actions: &[Action], launched: JobId) -> bool {
        let later =
            actions.iter().skip_while(|action| !matches!(action, Action::Launch { attempt, .. } if attempt.job == launched)).skip(1);
        later.into_iter().any(|action| matches!(action, Action::Launch { reason: LaunchReason { passed: None, kind: Some(_) }, .. }))
    }

    /// No job is launched while a job before it in the queue stays behind, unless backfill let it pass.
    fn check_order(scheduler: &Scheduler, before: &Scheduler, actions: &[Action], launched: JobId, reason: LaunchReason) {
        let job = scheduler.job(launched).unwrap();
        if job.spec.gpus == 0 {
            return;
        }
        if let Some(head) = reason.passed {
            assert!(scheduler.config().queue.backfill.is_some());
            // Where the head still waits, its reservation is on record: a job that passed it there ends in time.
            // A head that is not due may have become critical by the jobs that passed it.
            let waits = &scheduler.job(head).unwrap().state;
            let since = waits.waits_since().filter(|since| scheduler.now() - *since >= scheduler.config().queue.reserve_after);
            let due = since.is_some() || matches!(waits, State::Recovering { .. });
            // The GPUs kept for users below their share move with every launch, and with them what can be kept for a head of another user.
            let QueueConfig { fair_share, fair_share_reserve, .. } = scheduler.config().queue;
            let moves = (fair_share && fair_share_reserve > Seconds::ZERO) || Self::became_head_after(actions, launched);
            if let Some(kept) = scheduler.head_reservation().filter(|kept| due && !moves && kept.head == head) {
                let active = job.state.active().unwrap();
                let end = job.spec.time_limit.map(|limit| active.launched_at + limit);
                for granted in active.placement.devices.iter().filter(|granted| kept.devices.contains(&granted.device)) {
                    let in_time = end.is_some_and(|end| kept.from.is_some_and(|from| end <= from));
                    assert!(in_time, "{launched} is on {} until {end:?}, kept for {head} from {:?}", granted.device, kept.from);
                }
            }
            return;
        }
        let recovered = matches!(before.job(launched).map(|job| &job.state), Some(State::Recovering { .. }))
            || actions.iter().any(|action| {
                matches!(action, Action::Requeue { job, reason: RequeueReason::After(Verdict::OutOfMemory), .. } if *job == launched)
            });
        let launched = Candidate { job, recovering: recovered };
        let largest =
            |scheduler: &Scheduler| scheduler.fleet().devices().filter(|device| !device.lost).map(|device| device.spec.memory).max();
        let same_limits = before.config() == scheduler.config() && largest(before) == largest(scheduler);
        for waiting in scheduler.queue() {
            // The turn in an array or within a quota that a job too large gives up comes to another in the middle of a decision.
            let takes_turns = waiting.spec.array.is_some() || scheduler.config().quotas.of(waiting.spec.user) != Quota::default();
            // The same holds for a reservation that a job lost in this event, because it needs more or may have less than before.
            let as_before = |job: &Job| job.id() == waiting.id() && job.spec == waiting.spec && job.climb == waiting.climb;
            if takes_turns && !(same_limits && before.queue().any(as_before)) {
                continue;
            }
            launched.check_after(waiting, &scheduler.config().queue);
        }
    }
}
