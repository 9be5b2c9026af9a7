//! A world that feeds random steps to a scheduler and checks every answer against its own notes.

use std::collections::BTreeMap;

use carma_core::*;
use proptest::sample::Index;

use super::events::{Mode, Setup, Step};
use super::order::Standing;
use super::shares::{Heard, is_beyond};
use crate::lab::window;

/// What the world itself remembers of a gate: who closed it, when, and since when that one was seen.
#[derive(Debug, Clone, Copy)]
struct Closed {
    by: AttemptId,
    launched_at: Time,
    seen_at: Option<Time>,
}

impl Closed {
    /// By the rules in force now, whatever they were when it closed.
    fn is_shut(&self, gate: GateConfig, now: Time) -> bool {
        match (self.seen_at, gate.patience) {
            // Sooner behind a newcomer that does what was forecast.
            (Some(seen), _) => now - seen <= gate.observe.min(gate.confirmed),
            (None, Some(patience)) => now - self.launched_at < patience,
            (None, None) => true,
        }
    }
}

pub(super) struct World {
    pub(super) log: EventLog<Vec<u8>>,
    pub(super) now: Time,
    jobs: u64,
    gates: BTreeMap<DeviceId, Closed>,
    pub(super) heard: BTreeMap<ServerId, Heard>,
    /// GPUs that are to be switched.
    pub(super) switches: Vec<(DeviceId, GpuMode)>,
}

impl World {
    pub(super) fn new(setup: &Setup) -> Self {
        let log = EventLog::new(&setup.settings, Vec::new()).unwrap();
        let mut world =
            Self { log, now: Time::from_secs(1), jobs: 0, gates: BTreeMap::new(), heard: BTreeMap::new(), switches: Vec::new() };
        for (server, gpus) in (0..).zip(&setup.servers) {
            let cpu_jobs = (server == 0).then_some(2);
            // Of the second server's host nothing is counted.
            let counted = server != 1;
            let (cores, host_memory) = (counted.then_some(8 + 2 * server), counted.then_some(MiB(65_536)));
            world.accepted(Event::ServerAttached(ServerSpec { cpu_jobs, cores, host_memory, ..ServerSpec::new(ServerId(server)) }));
            for (ordinal, (memory, mode)) in (0..).zip(gpus) {
                let whole = DeviceSpec::new(DeviceId::gpu(ServerId(server), ordinal), MiB(memory * 1024));
                let mps = CollocationMode::Mps { exclusive_process: ordinal % 2 == 0 };
                let halves = [0, 1].map(|half| DeviceSpec::new(whole.id.instance(half), MiB(memory * 512)));
                match mode {
                    Mode::Streams => world.accepted(Event::GpuAttached(whole)),
                    Mode::Mps => world.accepted(Event::GpuAttached(DeviceSpec { mode: mps, ..whole })),
                    Mode::Mig => {
                        world.accepted(Event::GpuAttached(whole));
                        for half in halves {
                            world.accepted(Event::GpuAttached(half));
                        }
                    }
                }
            }
        }
        world.calm();
        world
    }

    pub(super) fn scheduler(&self) -> &Scheduler {
        self.log.scheduler()
    }

    pub(super) fn log(self) -> Vec<u8> {
        self.log.into_output()
    }

    fn devices(&self) -> Vec<DeviceId> {
        self.scheduler().fleet().devices().map(Device::id).collect()
    }

    fn device(&self, index: Index) -> DeviceId {
        *index.get(&self.devices())
    }

    fn job(&self, index: Index) -> JobId {
        JobId(1 + index.index(self.jobs.max(1) as usize) as u64)
    }

    fn active(&self) -> Vec<Active> {
        self.scheduler().jobs().filter_map(|job| job.state.active().cloned()).collect()
    }

    pub(super) fn accepted(&mut self, event: Event) {
        let name = format!("{event:?}");
        assert!(self.event(event), "{name} was refused");
    }

    /// Hands in an event; checks the answer, or that a refusal changed nothing.
    pub(super) fn event(&mut self, event: Event) -> bool {
        let before = self.scheduler().clone();
        let answer = self.log.handle(event, self.now);
        if let Ok(actions) = &answer {
            self.check(&before, actions);
        } else {
            assert!(*self.scheduler() == before, "a refused event changed something");
        }
        answer.is_ok()
    }

    fn check(&mut self, before: &Scheduler, actions: &[Action]) {
        assert_eq!(self.scheduler().audit(), Vec::<String>::new());
        self.check_shares(actions);
        self.check_power(actions);
        self.check_company(actions);
        self.check_switches(before, actions);
        self.check_nobody_was_overlooked();
        self.check_slots(before, actions);
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

    /// Decisions look only at what an event could have changed. A decision over everything must find nobody else to start,
    /// except that what is kept for the head may be planned anew and let others pass.
    fn check_nobody_was_overlooked(&self) {
        let mut all_over_again = self.scheduler().clone();
        let settings = Settings::from(all_over_again.config());
        let actions = all_over_again.handle(Event::ConfigurationChanged(Box::new(settings)), self.now).unwrap();
        let overlooked = |action: &&Action| matches!(action, Action::Launch { reason: LaunchReason { passed: None, .. }, .. });
        assert_eq!(actions.iter().find(overlooked), None);
    }

    /// A recovered job never starts below its floor, and one that needs idle GPUs gets no others.
    fn check_floor(scheduler: &Scheduler, before: &Scheduler, attempt: AttemptId, placement: &Placement) {
        let job = scheduler.job(attempt.job).unwrap();
        for granted in &placement.devices {
            let device = scheduler.fleet().device(granted.device).unwrap();
            assert!(device.spec.memory >= job.climb.floor, "{attempt} on {} is below its floor", granted.device);
            assert!(!device.lost && !device.drained && !device.partitioned && !device.host_short);
            let alone = device.tenants.len() == 1 && device.foreign.is_empty();
            assert!(alone || !(job.climb.whole_gpu || job.spec.exclusive), "{attempt} had to be alone on {}", granted.device);
            if scheduler.config().admission.reservations {
                assert!(granted.promised >= job.climb.floor.min(device.spec.memory));
            } else if !alone && before.fleet().device(granted.device).unwrap().telemetry == device.telemetry {
                let free = device.spec.memory - device.telemetry.memory_used().unwrap_or_default();
                assert!(free >= job.climb.floor, "{attempt}: {free} free on {}, floor {}", granted.device, job.climb.floor);
            }
        }
    }

    /// Nobody is launched while a job before it in the queue stays behind, unless backfill let it pass.
    fn check_order(scheduler: &Scheduler, before: &Scheduler, actions: &[Action], launched: JobId, reason: LaunchReason) {
        let job = scheduler.job(launched).unwrap();
        if job.spec.gpus == 0 {
            return;
        }
        if let Some(head) = reason.passed {
            assert!(matches!(scheduler.config().queue.discipline, Discipline::Backfill { .. }));
            // Where the head still waits, what was kept for it is on record: whoever passed it there is gone in time.
            // One that is not due may have become critical by those who passed it as they liked.
            let waits = &scheduler.job(head).unwrap().state;
            let since = waits.waits_since().filter(|since| scheduler.now() - *since >= scheduler.config().queue.reserve_after);
            let due = since.is_some() || matches!(waits, State::Recovering { .. });
            if let Some(kept) = scheduler.head_reservation().filter(|kept| due && kept.head == head) {
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
        let launched = Standing { job, recovering: recovered };
        let largest =
            |scheduler: &Scheduler| scheduler.fleet().devices().filter(|device| !device.lost).map(|device| device.spec.memory).max();
        let same_limits = before.config() == scheduler.config() && largest(before) == largest(scheduler);
        for waiting in scheduler.queue() {
            // The turn in an array or within a quota that a job too large gives up comes to another in the middle of a decision.
            let takes_turns = waiting.spec.array.is_some() || scheduler.config().quotas.of(waiting.spec.user) != Quota::default();
            // So does one that a job lost in this event, because it needs more or may have less than before.
            let as_before = |job: &Job| job.id() == waiting.id() && job.spec == waiting.spec && job.climb == waiting.climb;
            if takes_turns && !(same_limits && before.queue().any(as_before)) {
                continue;
            }
            launched.check_after(waiting, &scheduler.config().queue);
        }
    }

    pub(super) fn step(&mut self, step: &Step) {
        match step.clone() {
            Step::Submit(mut spec, after) => {
                let known = |index: &Index| self.jobs > 0 && self.scheduler().job(self.job(*index)).is_some();
                if let Some((index, condition)) = after.filter(|(index, _)| known(index)) {
                    spec.dependencies.push(Dependency { job: self.job(index), condition });
                }
                self.jobs += 1;
                spec.id = JobId(self.jobs);
                if !self.event(Event::JobSubmitted(spec.clone())) {
                    self.check_refusal(&spec);
                }
            }
            Step::Seen(index, memory) => {
                let active = self.active();
                if !active.is_empty() {
                    self.see(index.get(&active), memory);
                }
            }
            Step::Exit(index, verdict) => {
                let active = self.active();
                if !active.is_empty() {
                    self.accepted(Event::JobExited { attempt: index.get(&active).attempt, verdict });
                }
            }
            Step::Progress(index, done) => {
                let active = self.active();
                if !active.is_empty() {
                    self.accepted(Event::Progress { attempt: index.get(&active).attempt, done: Fraction::clamped(done) });
                }
            }
            Step::Needed(index, memory) => {
                let active = self.active();
                if !active.is_empty() {
                    self.accepted(Event::MemoryNeeded { attempt: index.get(&active).attempt, needed: MiB(memory) });
                }
            }
            Step::Activity(index, activity) => {
                let active = self.active();
                if let Some(active) = (!active.is_empty()).then(|| index.get(&active)) {
                    for granted in &active.placement.devices {
                        let attempts = vec![(active.attempt, Fraction::clamped(activity))];
                        self.accepted(Event::ActivitySeen { device: granted.device, attempts });
                    }
                }
            }
            Step::Cancel(index) => {
                self.event(Event::JobCancelled { job: self.job(index) });
            }
            Step::Hold(index) => {
                self.event(Event::JobHeld { job: self.job(index) });
            }
            Step::Release(index) => {
                self.event(Event::JobReleased { job: self.job(index) });
            }
            Step::Requeue(index) => {
                self.event(Event::JobRequeued { job: self.job(index) });
            }
            Step::Change(index, priority, time_limit) => {
                self.event(Event::JobChanged { job: self.job(index), priority: Some(Priority(priority)), time_limit });
            }
            Step::Estimate(index, memory) => {
                let duration = Some(Seconds::from_secs(memory / 10));
                let memory = Some(PerRank::Same(MemoryEstimate::exactly(MiB(memory))));
                let estimate = Box::new(Estimate { memory, duration, ..Estimate::default() });
                self.event(Event::EstimateReady { job: self.job(index), estimate });
            }
            Step::Checkpoint(index) => {
                let active = self.active();
                if !active.is_empty() {
                    self.accepted(Event::Checkpointed { attempt: index.get(&active).attempt });
                }
            }
            Step::Forget(index) => {
                self.event(Event::JobForgotten { job: self.job(index) });
            }
            Step::LaunchFailed(index) => {
                let active = self.active();
                if !active.is_empty() {
                    let attempt = index.get(&active).attempt;
                    self.accepted(Event::LaunchFailed { attempt, reason: "no such file".to_owned() });
                }
            }
            other => self.device_step(other),
        }
    }

    fn device_step(&mut self, step: Step) {
        match step {
            Step::Window(index, used, smact) => {
                self.accepted(Event::GpuWindow { device: self.device(index), window: window(used, smact, smact / 2.0, smact / 3.0) });
            }
            Step::Sample(index, used, smact) => {
                let power = smact.map(|smact| Watts(60.0 + 340.0 * smact));
                let sample = Sample { smact: smact.map(Fraction::clamped), power, ..Sample::new(self.now, MiB(used)) };
                self.accepted(Event::GpuSampled { device: self.device(index), sample });
            }
            Step::Outsider(index, memory) => {
                let process = memory.map(|memory| ProcessUse { owner: Owner::Foreign { pid: 9 }, memory: Some(MiB(memory)) });
                self.accepted(Event::ProcessesSeen { device: self.device(index), processes: process.into_iter().collect() });
            }
            Step::PowerLimit(index, watts) => {
                self.accepted(Event::PowerLimited { device: self.device(index), limit: watts.map(Watts) });
            }
            Step::Lose(index) => self.accepted(Event::GpuLost { device: self.device(index) }),
            Step::Back(index) => self.accepted(Event::GpuBack { device: self.device(index) }),
            Step::Drain(index, true) => self.accepted(Event::GpuDrained { device: self.device(index) }),
            Step::Drain(index, false) => self.accepted(Event::GpuResumed { device: self.device(index) }),
            Step::MpsDied(index) => {
                self.event(Event::MpsServerDied { device: self.device(index) });
            }
            Step::Cut(index, instance) => {
                let whole = DeviceId { instance: None, ..self.device(index) };
                self.event(Event::GpuAttached(DeviceSpec::new(whole.instance(instance), MiB(9_984))));
            }
            Step::Uncut(index) => {
                let device = self.device(index);
                if device.instance.is_some() {
                    self.event(Event::GpuDetached { device });
                }
            }
            Step::Mode(index, mps) => {
                let mode = if mps { CollocationMode::Mps { exclusive_process: true } } else { CollocationMode::Streams };
                self.event(Event::GpuModeChanged { device: self.device(index), mode });
            }
            Step::Switched(index, done) => self.answer_switch(index, done),
            Step::HostShort(index, short) => {
                let server = self.device(index).server();
                self.accepted(if short { Event::HostShort { server } } else { Event::HostFine { server } });
            }
            Step::HostMemory(index, available) => {
                self.host_memory(self.device(index).server(), MiB(available));
            }
            Step::Wait(seconds) => {
                self.now = self.now + Seconds::from_secs(seconds);
                self.accepted(Event::Tick);
            }
            Step::Settings(settings) => {
                // Reservations that come late find promises that were never made, or made without them.
                let kept = Some(self.scheduler().config().admission.reservations);
                let admission = settings.admission.clone().map(|admission| AdmissionSettings { reservations: kept, ..admission });
                self.accepted(Event::ConfigurationChanged(Box::new(Settings { admission, ..*settings })));
            }
            Step::Nonsense => self.nonsense(),
            other => unreachable!("{other:?} is about jobs"),
        }
    }

    fn see(&mut self, active: &Active, memory: u64) {
        for granted in &active.placement.devices {
            let process = ProcessUse { owner: Owner::Attempt(active.attempt), memory: Some(MiB(memory)) };
            self.accepted(Event::ProcessesSeen { device: granted.device, processes: vec![process] });
            let now = self.scheduler().now();
            if let Some(closed) = self.gates.get_mut(&granted.device).filter(|closed| closed.by == active.attempt) {
                closed.seen_at = closed.seen_at.or(Some(now));
            }
        }
    }

    fn nonsense(&mut self) {
        let job = JobId(1_000_000);
        let attempt = AttemptId { job, number: 1 };
        let device = DeviceId::gpu(ServerId(77), 0);
        for event in [
            Event::JobCancelled { job },
            Event::JobForgotten { job },
            Event::EstimateReady { job, estimate: Box::default() },
            Event::JobExited { attempt, verdict: Verdict::Succeeded },
            Event::Checkpointed { attempt },
            Event::GpuLost { device },
            Event::GpuSampled { device, sample: Sample::new(self.now, MiB(1)) },
            Event::ProcessesSeen { device, processes: Vec::new() },
            Event::HostShort { server: ServerId(77) },
            Event::HostMemory { server: ServerId(77), available: MiB(1) },
        ] {
            assert!(!self.event(event.clone()), "{event:?} was accepted");
        }
    }

    /// Everything is back, nothing is busy, nobody from outside is there.
    fn calm(&mut self) {
        let servers: Vec<ServerId> = self.scheduler().fleet().servers().iter().map(|server| server.spec.id).collect();
        for server in servers {
            self.accepted(Event::HostFine { server });
            self.host_memory(server, MiB(1_000_000));
        }
        self.answer_switches();
        for device in self.devices() {
            self.accepted(Event::GpuBack { device });
            self.accepted(Event::GpuResumed { device });
            self.accepted(Event::ProcessesSeen { device, processes: Vec::new() });
            self.accepted(Event::GpuWindow { device, window: window(0, 0.0, 0.0, 0.0) });
        }
    }

    /// Lets everything that runs end well, again and again, until nothing runs. Then every job is final, held, waiting for
    /// one that is, or too large, and says so.
    pub(super) fn dry_up(mut self) {
        for _ in 0..1_000 {
            // GPUs that were switched have rested, and what was never answered is given up.
            self.now = self.now + Seconds::from_secs(1_000);
            self.accepted(Event::Tick);
            self.calm();
            let active = self.active();
            if active.is_empty() && self.switches.is_empty() && self.scheduler().next_wakeup().is_none() {
                break;
            }
            for Active { attempt, .. } in active {
                self.accepted(Event::JobExited { attempt, verdict: Verdict::Succeeded });
            }
            self.answer_switches();
        }
        for job in self.scheduler().jobs() {
            let explanation = self.scheduler().explain(job.id()).unwrap();
            let settled = match &job.state {
                State::Done { .. } | State::Held { .. } => true,
                _ => match explanation.reason {
                    WaitReason::Dependencies { .. }
                    | WaitReason::TooLarge { .. }
                    | WaitReason::TooLargeForHosts { .. }
                    | WaitReason::TooMuchPower { .. } => true,
                    WaitReason::Quota { over } => is_beyond(over),
                    _ => false,
                },
            };
            assert!(settled, "forgotten: {explanation}");
        }
    }

    pub(super) fn replay(&mut self) {
        let empty = EventLog::new(&Settings::default(), Vec::new()).unwrap();
        let log = std::mem::replace(&mut self.log, empty);
        let scheduler = log.scheduler().clone();
        let written = log.into_output();
        assert!(replay(&written[..]).unwrap().1 == scheduler, "the replayed log leads elsewhere");
        self.log = EventLog::resume(scheduler, written);
    }
}
