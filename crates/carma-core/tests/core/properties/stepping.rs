//! The events of each step.

use carma_core::*;
use proptest::sample::Index;

use super::events::Step;
use super::world::World;
use crate::lab::window;

impl World {
    fn active_at(&self, index: Index) -> Option<Active> {
        let active = self.active();
        (!active.is_empty()).then(|| index.get(&active).clone())
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
                if let Some(active) = self.active_at(index) {
                    self.see(&active, memory);
                }
            }
            Step::Exit(index, verdict) => {
                if let Some(active) = self.active_at(index) {
                    self.accepted(Event::JobExited { attempt: active.attempt, verdict });
                }
            }
            Step::Progress(index, done) => {
                if let Some(active) = self.active_at(index) {
                    self.accepted(Event::Progress { attempt: active.attempt, done: Fraction::clamped(done) });
                }
            }
            Step::Needed(index, memory) => {
                if let Some(active) = self.active_at(index) {
                    self.accepted(Event::MemoryNeeded { attempt: active.attempt, needed: MiB(memory) });
                }
            }
            Step::NotLimited(index) => {
                if let Some(active) = self.active_at(index) {
                    let devices = active.placement.devices.iter().map(|granted| granted.device);
                    devices.for_each(|device| self.accepted(Event::NotLimited { attempt: active.attempt, device }));
                }
            }
            Step::Activity(index, activity) => {
                if let Some(active) = self.active_at(index) {
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
            Step::MoveBegin(index, seconds) => {
                self.event(Event::BeginMoved { job: self.job(index), begin: Time::from_secs(seconds) });
            }
            Step::Estimate(index, memory) => {
                let duration = Some(Seconds::from_secs(memory / 10));
                let memory = Some(PerRank::Same(MemoryEstimate::exactly(MiB(memory))));
                let estimate = Box::new(Estimate { memory, duration, ..Estimate::default() });
                self.event(Event::EstimateReady { job: self.job(index), estimate });
            }
            Step::Checkpoint(index) => {
                if let Some(active) = self.active_at(index) {
                    self.accepted(Event::Checkpointed { attempt: active.attempt });
                }
            }
            Step::Stall(index, hangs) => {
                if let Some(active) = self.active_at(index) {
                    let since = self.now;
                    let slow = Stall::Slow { since, speed: Fraction::clamped(0.1) };
                    let stall = hangs.map(|hangs| if hangs { Stall::Hanging { since } } else { slow });
                    self.accepted(Event::StallSeen { attempt: active.attempt, stall });
                }
            }
            Step::Forget(index) => {
                self.event(Event::JobForgotten { job: self.job(index) });
            }
            Step::LaunchFailed(index) => {
                if let Some(active) = self.active_at(index) {
                    let attempt = active.attempt;
                    self.accepted(Event::LaunchFailed { attempt, reason: "no such file".to_owned() });
                }
            }
            other => self.device_step(other),
        }
    }

    fn device_step(&mut self, step: Step) {
        let of_device = !matches!(step, Step::Server(_) | Step::Switched(..) | Step::Wait(_) | Step::Settings(_) | Step::Nonsense);
        if of_device && self.devices().is_empty() {
            return;
        }
        match step {
            Step::Window(index, used, smact) => {
                self.accepted(Event::GpuWindow { device: self.device(index), window: window(used, smact, smact / 2.0, smact / 3.0) });
            }
            Step::Sample(index, used, smact) => {
                let power = smact.map(|smact| Watts(60.0 + 340.0 * smact));
                let sample = Sample {
                    utilisation: Utilisation::NONE.with(Metric::Smact, smact.map(Fraction::clamped)),
                    power,
                    ..Sample::new(self.now, MiB(used))
                };
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
            Step::Back(index) => self.accepted(Event::GpuRecovered { device: self.device(index) }),
            Step::Drain(index, true) => self.accepted(Event::GpuDrained { device: self.device(index) }),
            Step::Drain(index, false) => self.accepted(Event::GpuResumed { device: self.device(index) }),
            Step::Failing(index) => self.accepted(Event::GpuFailing { device: self.device(index) }),
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
                self.accepted(if short { Event::HostShort { server } } else { Event::HostRecovered { server } });
            }
            Step::HostMemory(index, available) => {
                self.host_memory(self.device(index).server(), MiB(available));
            }
            Step::Server(step) => self.server_step(step),
            Step::Wait(seconds) => {
                self.now = self.now + Seconds::from_secs(seconds);
                self.accepted(Event::Tick);
            }
            Step::Settings(settings) => {
                // Reservations that are switched on late find memory that was never reserved.
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
            self.note_memory(active.attempt, granted.device, MiB(memory));
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
            Event::StallSeen { attempt, stall: None },
            Event::GpuFailing { device },
            Event::GpuLost { device },
            Event::GpuSampled { device, sample: Sample::new(self.now, MiB(1)) },
            Event::ProcessesSeen { device, processes: Vec::new() },
            Event::HostShort { server: ServerId(77) },
            Event::HostMemory { server: ServerId(77), available: MiB(1) },
            Event::ServerEnds { server: ServerId(77), at: None },
            Event::ServerDraining { server: ServerId(77) },
            Event::ServerDetached { server: ServerId(77) },
        ] {
            assert!(!self.event(event.clone()), "{event:?} was accepted");
        }
    }
}
