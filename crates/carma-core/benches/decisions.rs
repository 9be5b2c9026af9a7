//! What one event costs, and how that grows with queued jobs and with GPUs.

#![allow(clippy::wildcard_imports, reason = "the benchmark speaks of everything the core has")]

use carma_bench::{Calls, Case, Suite};
use carma_core::*;

const GPUS_PER_SERVER: u16 = 8;
const JOBS_PER_GPU: u64 = 4;
const MEMORY: MiB = MiB(40_960);
const NEED: u64 = 9_000;

/// A fleet with four jobs on every GPU and a queue. Each job that ends makes room for exactly one other.
struct Site {
    scheduler: Scheduler,
    now: Time,
    devices: Vec<DeviceId>,
    /// The device that is next to lose a job.
    turn: usize,
    next_job: u64,
    leaving: Option<AttemptId>,
}

fn window(used: u64, smact: f64) -> Box<WindowSummary> {
    let steady = |value| Some(Statistics::steady(value));
    let statistics = PerMetric::NONE
        .with(Metric::Smact, steady(smact))
        .with(Metric::Smocc, steady(smact / 2.0))
        .with(Metric::Drama, steady(smact / 3.0));
    Box::new(WindowSummary { full: true, memory_used: MiB(used), statistics, ..WindowSummary::default() })
}

impl Site {
    /// GPUs with two jobs each, and two more on every other GPU, so that full and open GPUs alternate.
    fn uneven(config: Config, gpus: usize) -> Self {
        let mut site = Self::with_jobs(config, gpus, 2);
        let (filled, spared): (Vec<DeviceId>, Vec<DeviceId>) = site.devices.iter().partition(|device| device.gpu.ordinal % 2 == 0);
        for device in &spared {
            site.event(Event::GpuDrained { device: *device });
        }
        for _ in 0..2 {
            for _ in &filled {
                site.submit();
            }
            for device in &filled {
                site.show_processes(*device);
            }
            site.now = site.now + Seconds::from_secs(40);
            site.event(Event::Tick);
        }
        for device in &spared {
            site.event(Event::GpuResumed { device: *device });
        }
        site
    }

    /// GPUs with this many jobs on each.
    fn with_jobs(config: Config, gpus: usize, jobs_per_gpu: u64) -> Self {
        let devices: Vec<DeviceId> = (0..gpus)
            .map(|gpu| DeviceId::gpu(ServerId((gpu / usize::from(GPUS_PER_SERVER)) as u32), gpu as u16 % GPUS_PER_SERVER))
            .collect();
        let now = Time::from_secs(1_000);
        let mut site = Self { scheduler: Scheduler::new(config), now, devices, turn: 0, next_job: 1, leaving: None };
        for device in site.devices.clone() {
            if device.gpu.ordinal == 0 {
                site.event(Event::ServerAttached(ServerSpec::new(device.server())));
            }
            site.event(Event::GpuAttached(DeviceSpec::new(device, MEMORY)));
            site.event(Event::GpuWindow { device, window: window(0, 0.1) });
        }
        for round in 1..=jobs_per_gpu {
            (0..gpus).for_each(|_| site.submit());
            for device in site.devices.clone() {
                site.show_processes(device);
                // A little different on each, as GPUs are.
                let spread = (device.gpu.ordinal as usize * 37 + device.server().0 as usize * 101) % 97;
                site.event(Event::GpuWindow { device, window: window(NEED * round + spread as u64, 0.2 + spread as f64 / 1000.0) });
            }
            site.now = site.now + Seconds::from_secs(40);
            site.event(Event::Tick);
        }
        site
    }

    /// A full fleet, and this many waiting jobs.
    fn new(config: Config, gpus: usize, queued: u64) -> Self {
        let mut site = Self::with_jobs(config, gpus, JOBS_PER_GPU);
        (0..queued).for_each(|_| site.submit());
        assert_eq!(site.scheduler.queue().count() as u64, queued, "the fleet is full and all other jobs wait");
        site
    }

    fn event(&mut self, event: Event) -> usize {
        match self.scheduler.handle(event, self.now) {
            Ok(actions) => actions.len(),
            Err(error) => panic!("{error}"),
        }
    }

    fn spec(&mut self) -> Box<JobSpec> {
        self.next_job += 1;
        let limit = Some(Seconds::from_secs(100_000 + self.next_job));
        // Light enough to share by every policy until memory is full.
        let utilisation = Utilisation::of([(Metric::Smact, 0.1)]);
        let memory = MemoryNeed::known(MiB(NEED));
        Box::new(JobSpec { memory, utilisation, time_limit: limit, ..JobSpec::new(JobId(self.next_job)) })
    }

    fn submit(&mut self) {
        let spec = self.spec();
        self.event(Event::JobSubmitted(spec));
    }

    fn show_processes(&mut self, device: DeviceId) {
        let tenants = self.scheduler.fleet().device(device).map_or(&[][..], |device| &device.tenants);
        let process = |tenant: &Tenant| ProcessUse { owner: Owner::Attempt(tenant.attempt), memory: Some(MiB(NEED)) };
        let processes = tenants.iter().map(process).collect();
        self.event(Event::ProcessesSeen { device, processes });
    }

    fn device(&self) -> DeviceId {
        self.devices[self.turn % self.devices.len()]
    }

    /// The gate of the last new job has opened, and the next job is about to end.
    fn before_exit(&mut self) {
        self.show_processes(self.device());
        self.now = self.now + Seconds::from_secs(40);
        self.submit();
        self.turn += 1;
        self.leaving = self.scheduler.fleet().device(self.device()).and_then(|device| device.tenants.first()).map(|tenant| tenant.attempt);
    }

    fn exit(&mut self) {
        if let Some(attempt) = self.leaving {
            let done = self.event(Event::JobExited { attempt, verdict: Verdict::Succeeded });
            assert_eq!(done, 2, "one job ends, another starts");
        }
    }

    fn sample(&mut self) {
        let wave = f64::from(self.turn as u32 % 7) / 100.0;
        let sample = Sample {
            utilisation: Utilisation::of([(Metric::Smact, 0.3 + wave), (Metric::Smocc, 0.2 + wave), (Metric::Drama, 0.1 + wave)]),
            ..Sample::new(self.now, MiB(NEED * JOBS_PER_GPU))
        };
        self.event(Event::GpuSampled { device: self.device(), sample });
    }

    /// What a monitor tells of all GPUs: their processes and their counters.
    fn sample_all(&mut self) {
        for _ in 0..self.devices.len() {
            self.show_processes(self.device());
            self.sample();
            self.turn += 1;
        }
    }

    /// Samples of one second apart, a full window of them on the device that is asked.
    fn before_sample(&mut self) {
        self.now = self.now + Seconds::from_secs(1);
        self.turn += usize::from(self.turn == 0);
    }
}

fn with_policy(preset: Preset, policy: &str) -> Config {
    match policy.parse() {
        Ok(mapping) => Config { mapping, ..preset.into() },
        Err(error) => panic!("{error}"),
    }
}

/// The three events that matter, for one site: a sample that changes nothing, a submission, an exit that starts the next job.
fn events(suite: &mut Suite, name: &str, reference: &str, config: &Config, gpus: usize, queued: u64) {
    let setup = || Site::new(config.clone(), gpus, queued);
    let case = |event: &str, of: &str| format!("{event}, {of}");
    let mut run = |event: &str, prepare: &dyn Fn(&mut Site), call: &dyn Fn(&mut Site)| {
        let (name, reference) = (case(event, name), case(event, reference));
        suite.run(&Case { name: &name, units: 1, reference: &reference, setup: &setup, prepare, call });
    };
    run("sample", &Site::before_sample, &Site::sample);
    run("submit", &|_| (), &Site::submit);
    run("exit + launch", &Site::before_exit, &Site::exit);
}

fn main() {
    let standard = Config::from(Preset::Standard);
    let mut queues = Suite::new("Growth with the queue: 8 GPUs, standard preset (MAGM, backfill); reference: 10 queued jobs");
    for queued in [10, 1_000, 100_000] {
        events(&mut queues, &format!("{queued} queued"), "10 queued", &standard, 8, queued);
    }

    let mut gpus = Suite::new("Growth with the GPUs: 1,000 queued jobs, servers of 8, standard preset; reference: 8 GPUs");
    for count in [8, 1_000, 10_000] {
        events(&mut gpus, &format!("{count} GPUs"), "8 GPUs", &standard, count, 1_000);
    }

    let mut ours = Suite::new("Preset carma: 8 GPUs and 1,000 queued jobs, and more of both; reference: preset standard on as many");
    for (gpus, queued) in [(8, 1_000), (8, 100_000), (10_000, 1_000)] {
        let of = |preset: &str| format!("{preset}, {gpus} GPUs, {queued} queued");
        events(&mut ours, &of("standard"), &of("standard"), &standard, gpus, queued);
        events(&mut ours, &of("carma"), &of("standard"), &Config::from(Preset::Carma), gpus, queued);
    }

    let mut samples = Suite::with_calls("A sample of all GPUs, 1,000 queued; reference: preset standard", Calls { timed: 300, counted: 5 });
    for preset in [Preset::Standard, Preset::Carma] {
        samples.run(&Case {
            name: &format!("all of 1,000 GPUs, {}", preset.name()),
            units: 1,
            reference: "all of 1,000 GPUs, standard",
            setup: &|| Site::new(Config::from(preset), 1_000, 1_000),
            prepare: &Site::before_sample,
            call: &Site::sample_all,
        });
    }

    let mut policies = Suite::new("Policies on 10,000 GPUs, strict FIFO; reference: a look at every GPU");
    let survey = "survey of 10,000 GPUs";
    policies.run(&Case {
        name: survey,
        units: 1,
        reference: survey,
        setup: &|| Site::new(Config::from(Preset::Standard), 10_000, 1_000),
        prepare: &|_| (),
        call: &|site| assert_eq!(site.scheduler.survey().filter(|report| report.obstacles.is_empty()).count(), 10_000),
    });
    for policy in ["ff", "bf", "magm", "lug", "rr"] {
        let config = || Config { queue: Config::from(Preset::Paper).queue, ..with_policy(Preset::Standard, policy) };
        policies.run(&Case {
            name: &format!("{policy}: exit + launch, room on one GPU"),
            units: 1,
            reference: survey,
            setup: &|| Site::new(config(), 10_000, 1_000),
            prepare: &Site::before_exit,
            call: &Site::exit,
        });
        policies.run(&Case {
            name: &format!("{policy}: submit + launch, room on every GPU"),
            units: 1,
            reference: survey,
            setup: &|| Site::with_jobs(config(), 10_000, 2),
            prepare: &|_| (),
            call: &Site::submit,
        });
        policies.run(&Case {
            name: &format!("{policy}: submit + launch, room on every other"),
            units: 1,
            reference: survey,
            setup: &|| Site::uneven(config(), 10_000),
            prepare: &|_| (),
            call: &Site::submit,
        });
    }
}
