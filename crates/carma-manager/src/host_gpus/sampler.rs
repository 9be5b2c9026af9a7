//! Samples the GPUs periodically, on threads of its own: a driver that hangs must not block the engine.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{CollocationMode, DeviceId};
use carma_gpu::mps::{Health, MpsControl, ServerDied, Watch};
use carma_gpu::profiling::{Options, Profiler, Source};
use carma_gpu::{Condition, DeviceUuid, Driver, GpuEvent, Monitor, Observation, ProcessActivity};

use super::devices::Devices;
use super::sample::GpuSample;
use crate::clock::Clock;

/// How often MPS daemons are asked for their server; whether a known server has died is checked with every sample.
const MPS_PERIOD: Duration = Duration::from_secs(5);
/// Drivers take their samples of processes up to a second apart.
const MIN_ACTIVITY: Duration = Duration::from_secs(2);
/// The longest wait for an event of the driver before it is checked whether the sampler still exists.
const EVENT_WAIT: Duration = Duration::from_millis(500);

/// What the sampler needs.
pub(crate) struct SamplerSetup {
    pub(crate) driver: Arc<Driver>,
    pub(crate) clock: Clock,
    pub(crate) period: Duration,
    pub(crate) profiling: Options,
    pub(crate) controls: HashMap<DeviceId, MpsControl>,
    /// What is known of devices from an earlier sampler.
    pub(crate) conditions: HashMap<DeviceUuid, Condition>,
}

/// A report of the sampling threads.
#[derive(Debug)]
pub(crate) enum Sampled {
    /// The devices were sampled.
    Samples(Vec<GpuSample>),
    /// Something happened to a GPU.
    Event(GpuEvent),
    /// The MPS server of a device died.
    MpsDied(DeviceId, ServerDied),
}

/// Takes reports on any thread. False when no more are wanted.
type TakeReports = Arc<dyn Fn(Sampled) -> bool + Send + Sync>;

/// How often the activity of processes is asked for; unset: never.
type ActivityPeriod = Mutex<Option<Duration>>;

/// The sampling threads. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Sampler {
    wake: SyncSender<()>,
    activity: Arc<ActivityPeriod>,
    /// The thread of driver events ends when this is dropped.
    _wanted: Arc<()>,
}

impl Sampler {
    pub(crate) fn start(
        setup: SamplerSetup,
        devices: Devices,
        take: impl Fn(Sampled) -> bool + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let take: TakeReports = Arc::new(take);
        let (wake, woken) = sync_channel(1);
        let (wanted, activity) = (Arc::new(()), Arc::<ActivityPeriod>::default());
        let asked = Arc::clone(&activity);
        events(&setup.driver, devices.uuids(), Arc::downgrade(&wanted), Arc::clone(&take))?;
        thread::Builder::new().name("sampler".to_owned()).spawn(move || run(&setup, &devices, &take, &woken, &asked))?;
        Ok(Self { wake, activity, _wanted: wanted })
    }

    /// Samples now.
    pub(crate) fn now(&self) {
        // One pending request is enough.
        let _ = self.wake.try_send(());
    }

    /// Sets how often the activity of processes is asked for, from the next sample on.
    pub(crate) fn ask_activity(&self, every: Option<Duration>) {
        *self.activity.lock().unwrap_or_else(PoisonError::into_inner) = every;
    }
}

/// The state of the sampling thread.
struct SamplerThread<'a> {
    setup: &'a SamplerSetup,
    devices: &'a Devices,
    profiler: Option<Profiler>,
    monitor: Monitor,
    mps: MpsWatch,
    asked_activity: Option<Instant>,
}

fn run(setup: &SamplerSetup, devices: &Devices, take: &TakeReports, woken: &Receiver<()>, activity: &ActivityPeriod) {
    let targets = devices.iter().map(|device| device.target.clone()).collect();
    let profiler = Profiler::start(Arc::clone(&setup.driver), targets, setup.profiling.clone()).ok();
    let mut sampling = SamplerThread {
        setup,
        devices,
        profiler,
        monitor: Monitor::continued(setup.conditions.clone()),
        mps: MpsWatch::default(),
        asked_activity: None,
    };
    let mut next = Instant::now();
    loop {
        let wanted = *activity.lock().unwrap_or_else(PoisonError::into_inner);
        let (samples, changes) = sampling.sample(wanted);
        if !take(Sampled::Samples(samples)) {
            return;
        }
        for change in changes {
            take(Sampled::Event(change));
        }
        for (device, died) in sampling.mps.check(devices, &setup.controls) {
            take(Sampled::MpsDied(device, died));
        }
        // In step with the period; after a sample that took longer, at once.
        next = (next + setup.period).max(Instant::now());
        match woken.recv_timeout(next - Instant::now()) {
            Ok(()) => next = Instant::now(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl SamplerThread<'_> {
    /// Samples all devices, and returns what happened to them since the last sample. The activity of processes is asked for this often.
    fn sample(&mut self, every: Option<Duration>) -> (Vec<GpuSample>, Vec<GpuEvent>) {
        let (observations, changes) = self.monitor.sample(&self.setup.driver, &self.devices.uuids());
        let due = every.filter(|every| is_due(&mut self.asked_activity, *every));
        let mut activities = due.map_or_else(HashMap::new, |every| activities(&self.setup.driver, &observations, every));
        let at = self.setup.clock.now();
        let samples = observations.into_iter().filter_map(|observation| {
            let device = self.devices.by_uuid(&observation.device)?.id;
            let profiler = self.profiler.as_ref();
            let counters = profiler.and_then(|profiler| profiler.counters(&observation.device));
            let source = profiler.map_or(Source::UtilisationOnly, |profiler| profiler.source(&observation.device));
            let (activity, mps_server) = (activities.remove(&observation.device), self.mps.servers.get(&device).copied());
            Some(GpuSample { device, at, reading: observation.reading, counters, activity, source, owners: None, mps_server })
        });
        (samples.collect(), changes)
    }
}

/// How active processes were over this time, for each GPU that could be read. GPUs without processes are not asked.
fn activities(driver: &Driver, observations: &[Observation], over: Duration) -> HashMap<DeviceUuid, ProcessActivity> {
    let used = |observation: &&Observation| observation.reading.as_ref().is_ok_and(|reading| !reading.processes.is_empty());
    let (used, unused): (Vec<_>, Vec<_>) = observations.iter().partition(used);
    let used: Vec<DeviceUuid> = used.into_iter().map(|observation| observation.device.clone()).collect();
    let answers = driver.process_activity(&used, over.max(MIN_ACTIVITY));
    let asked = answers.into_iter().map(|(device, answer)| (device, answer.unwrap_or(ProcessActivity::Unknown)));
    asked.chain(unused.into_iter().map(|observation| (observation.device.clone(), ProcessActivity::Unknown))).collect()
}

/// The MPS servers of GPUs.
#[derive(Default)]
struct MpsWatch {
    watches: HashMap<DeviceId, Watch>,
    servers: HashMap<DeviceId, u32>,
    asked: Option<Instant>,
}

impl MpsWatch {
    /// The servers that have died.
    fn check(&mut self, devices: &Devices, controls: &HashMap<DeviceId, MpsControl>) -> Vec<(DeviceId, ServerDied)> {
        let ask = is_due(&mut self.asked, MPS_PERIOD);
        let by_mps = devices.iter().filter(|device| matches!(device.mode, CollocationMode::Mps { .. })).map(|device| device.id);
        let died = by_mps.filter_map(|device| {
            let control = controls.get(&device)?;
            let watch = self.watches.entry(device).or_default();
            let Some(health) = ask.then(|| control.health().ok()).flatten() else { return Some((device, watch.check()?)) };
            if let Health::Serving(server) | Health::Faulty(server) = &health {
                self.servers.insert(device, server.pid);
            }
            Some((device, watch.observe(&health)?))
        });
        died.collect()
    }
}

/// Whether this much time has passed since the last time; then it counts as done now.
fn is_due(last: &mut Option<Instant>, every: Duration) -> bool {
    let due = last.is_none_or(|last| last.elapsed() >= every);
    if due {
        *last = Some(Instant::now());
    }
    due
}

/// What the driver reports by itself reaches the engine at once.
fn events(driver: &Arc<Driver>, devices: Vec<DeviceUuid>, wanted: Weak<()>, take: TakeReports) -> std::io::Result<()> {
    let driver = Arc::clone(driver);
    let run = move || {
        // Some drivers report no events; then the samples must do.
        let Ok(watch) = driver.watch(&devices) else { return };
        while wanted.strong_count() > 0 {
            if let Some(event) = watch.next(EVENT_WAIT)
                && !take(Sampled::Event(event))
            {
                return;
            }
        }
    };
    thread::Builder::new().name("gpu events".to_owned()).spawn(run).map(drop)
}
