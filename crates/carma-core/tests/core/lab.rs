//! A scheduler with handles: a server of GPUs, jobs by number, time in whole seconds.

use carma_core::*;

pub(crate) struct Lab {
    pub(crate) scheduler: Scheduler,
    pub(crate) now: Time,
}

/// What was launched: job, GPUs by ordinal in rank order.
pub(crate) type Launched = (u64, Vec<u16>);

pub(crate) const A100: MiB = MiB(40_960);

pub(crate) fn gpu(ordinal: u16) -> DeviceId {
    DeviceId::gpu(ServerId(0), ordinal)
}

pub(crate) fn job(id: u64) -> JobSpec {
    JobSpec::new(JobId(id))
}

pub(crate) fn known(id: u64, memory: u64) -> JobSpec {
    JobSpec { memory: MemoryNeed::known(MiB(memory)), ..job(id) }
}

pub(crate) fn secs(seconds: u64) -> Seconds {
    Seconds::from_secs(seconds)
}

pub(crate) fn share(value: f64) -> Fraction {
    Fraction::new(value).unwrap()
}

/// A full window of steady readings.
pub(crate) fn window(used: u64, smact: f64, smocc: f64, drama: f64) -> Box<WindowSummary> {
    let steady = |value| Some(Statistics::steady(value));
    Box::new(WindowSummary {
        full: true,
        memory_used: MiB(used),
        statistics: PerMetric::NONE
            .with(Metric::Smact, steady(smact))
            .with(Metric::Smocc, steady(smocc))
            .with(Metric::Drama, steady(drama)),
        ..WindowSummary::default()
    })
}

impl Lab {
    /// A server with idle A100s whose windows are full.
    pub(crate) fn new(config: Config, gpus: u16) -> Self {
        let mut lab = Self { scheduler: Scheduler::new(config), now: Time::from_secs(1000) };
        lab.event(Event::ServerAttached(ServerSpec::new(ServerId(0))));
        (0..gpus).for_each(|ordinal| lab.attach(DeviceSpec::new(gpu(ordinal), A100)));
        lab
    }

    pub(crate) fn with_policy(preset: Preset, policy: &str, gpus: u16) -> Self {
        Self::new(Config { mapping: policy.parse().unwrap(), ..preset.into() }, gpus)
    }

    pub(crate) fn attach(&mut self, spec: DeviceSpec) {
        let device = spec.id;
        self.event(Event::GpuAttached(spec));
        self.event(Event::GpuWindow { device, window: window(0, 0.0, 0.0, 0.0) });
    }

    /// Hands in an event that must be accepted, and checks the books after it.
    pub(crate) fn event(&mut self, event: Event) -> Vec<Action> {
        let actions = self.scheduler.handle(event, self.now).unwrap();
        assert_eq!(self.scheduler.audit(), Vec::<String>::new());
        actions
    }

    /// Hands in an event that must be refused and change nothing.
    pub(crate) fn refused(&mut self, event: Event) -> String {
        let before = self.scheduler.clone();
        let error = self.scheduler.handle(event, self.now + secs(5)).unwrap_err();
        assert_eq!(self.scheduler, before, "a refused event changed something");
        error.to_string()
    }

    pub(crate) fn submit(&mut self, spec: JobSpec) -> Vec<Launched> {
        launches(&self.event(Event::JobSubmitted(Box::new(spec))))
    }

    pub(crate) fn wait(&mut self, seconds: u64) -> Vec<Launched> {
        self.now = self.now + secs(seconds);
        launches(&self.event(Event::Tick))
    }

    /// A full window of steady readings on a GPU.
    pub(crate) fn load(&mut self, ordinal: u16, used: u64, smact: f64) -> Vec<Launched> {
        self.busy(ordinal, used, smact, smact / 2.0, smact / 2.0)
    }

    pub(crate) fn busy(&mut self, ordinal: u16, used: u64, smact: f64, smocc: f64, drama: f64) -> Vec<Launched> {
        launches(&self.event(Event::GpuWindow { device: gpu(ordinal), window: window(used, smact, smocc, drama) }))
    }

    /// The running attempt of a job.
    pub(crate) fn attempt(&self, id: u64) -> AttemptId {
        self.scheduler.job(JobId(id)).unwrap().state.active().unwrap().attempt
    }

    /// Shows a job's processes on all of its GPUs, beside our other attempts there, each using this much.
    pub(crate) fn seen(&mut self, id: u64, memory: u64) {
        let placement = self.scheduler.job(JobId(id)).unwrap().state.active().unwrap().placement.clone();
        for granted in placement.devices {
            let device = granted.device;
            let tenants = &self.scheduler.fleet().device(device).unwrap().tenants;
            let process = |attempt: AttemptId| ProcessUse { owner: Owner::Attempt(attempt), memory: Some(MiB(memory)) };
            let processes = tenants.iter().map(|tenant| process(tenant.attempt)).collect();
            self.event(Event::ProcessesSeen { device, processes });
        }
    }

    /// Seen, and observed for long enough that the gates open.
    pub(crate) fn settle(&mut self, id: u64, memory: u64) -> Vec<Launched> {
        self.seen(id, memory);
        self.wait(31)
    }

    pub(crate) fn exit(&mut self, id: u64, verdict: Verdict) -> Vec<Action> {
        let attempt = self.attempt(id);
        self.event(Event::JobExited { attempt, verdict })
    }

    pub(crate) fn state(&self, id: u64) -> &State {
        &self.scheduler.job(JobId(id)).unwrap().state
    }

    pub(crate) fn outcome(&self, id: u64) -> &Outcome {
        self.state(id).outcome().unwrap()
    }

    /// What keeps a job off one GPU.
    pub(crate) fn obstacles(&self, id: u64, ordinal: u16) -> Vec<Obstacle> {
        let explanation = self.scheduler.explain(JobId(id)).unwrap();
        explanation.devices.into_iter().find(|answer| answer.device == gpu(ordinal)).unwrap().obstacles
    }
}

pub(crate) fn launches(actions: &[Action]) -> Vec<Launched> {
    let launched = |action: &Action| match action {
        Action::Launch { attempt, placement, .. } => {
            Some((attempt.job.0, placement.devices.iter().map(|granted| granted.device.gpu.ordinal).collect()))
        }
        _ => None,
    };
    actions.iter().filter_map(launched).collect()
}
