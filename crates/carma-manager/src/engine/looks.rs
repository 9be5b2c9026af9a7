//! Looking at the GPUs, again and again, from threads of their own: a sick driver must not keep the engine waiting.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{CollocationMode, DeviceId, Time};
use carma_gpu::mps::{Health, MpsControl, ServerDied, Watch};
use carma_gpu::profiling::{Counters, Options, Profiler, Source};
use carma_gpu::{DeviceUuid, Driver, DriverError, GpuEvent, Monitor, Observation, ProcessActivity, Reading};

use super::clock::Clock;
use super::devices::Devices;
use super::input::Input;

/// How often MPS daemons are asked who serves; whether a known server has died is looked at every time.
const MPS_PERIOD: Duration = Duration::from_secs(5);
/// Drivers take their samples of processes up to a second apart.
const SHORTEST_ACTIVITY: Duration = Duration::from_secs(2);
/// The longest that events of the driver are waited for before it is looked whether anybody still wants them.
const EVENT_WAIT: Duration = Duration::from_millis(500);

/// What one look at a device came to.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) device: DeviceId,
    pub(super) at: Time,
    pub(super) reading: Result<Reading, DriverError>,
    pub(super) counters: Option<Counters>,
    /// What each process did; unset where that was not asked for.
    pub(super) activity: Option<ProcessActivity>,
    pub(super) source: Source,
    /// The MPS server on it, which is neither a job's nor a stranger's.
    pub(super) mps_server: Option<u32>,
}

/// What is looked at, and how.
pub(super) struct Looking {
    pub(super) driver: Arc<Driver>,
    pub(super) clock: Clock,
    pub(super) period: Duration,
    pub(super) profiling: Options,
    pub(super) controls: HashMap<DeviceId, MpsControl>,
}

/// How often it is asked what each process does; unset: never.
type ActivityPeriod = Mutex<Option<Duration>>;

/// The looking threads. Dropped, they end.
#[derive(Debug)]
pub(super) struct Looks {
    poke: SyncSender<()>,
    activity: Arc<ActivityPeriod>,
    /// Whoever is to end with this looks whether it is still there.
    _wanted: Arc<()>,
}

impl Looks {
    pub(super) fn start(looking: Looking, devices: Devices, inputs: Sender<Input>) -> std::io::Result<Self> {
        let (poke, poked) = sync_channel(1);
        let (wanted, activity) = (Arc::new(()), Arc::<ActivityPeriod>::default());
        let asked = Arc::clone(&activity);
        events(&looking.driver, devices.uuids(), Arc::downgrade(&wanted), inputs.clone())?;
        thread::Builder::new().name("looks".to_owned()).spawn(move || look_on(&looking, &devices, &inputs, &poked, &asked))?;
        Ok(Self { poke, activity, _wanted: wanted })
    }

    /// Have a look now.
    pub(super) fn now(&self) {
        // One look that is waiting to be had is enough.
        let _ = self.poke.try_send(());
    }

    /// Ask so often what each process does, from the next look on.
    pub(super) fn ask_activity(&self, every: Option<Duration>) {
        *self.activity.lock().unwrap_or_else(PoisonError::into_inner) = every;
    }
}

/// Whoever looks.
struct Looker<'a> {
    looking: &'a Looking,
    devices: &'a Devices,
    profiler: Option<Profiler>,
    monitor: Monitor,
    mps: MpsWatch,
    asked_activity: Option<Instant>,
}

fn look_on(looking: &Looking, devices: &Devices, inputs: &Sender<Input>, poked: &Receiver<()>, activity: &ActivityPeriod) {
    let targets = devices.iter().map(|device| device.target.clone()).collect();
    let profiler = Profiler::start(Arc::clone(&looking.driver), targets, looking.profiling.clone()).ok();
    let mut eyes = Looker { looking, devices, profiler, monitor: Monitor::default(), mps: MpsWatch::default(), asked_activity: None };
    let mut next = Instant::now();
    loop {
        let wanted = *activity.lock().unwrap_or_else(PoisonError::into_inner);
        let (looked, changes) = eyes.look(wanted);
        if inputs.send(Input::Looked(looked)).is_err() {
            return;
        }
        for change in changes {
            let _ = inputs.send(Input::Gpu(change));
        }
        for (device, died) in eyes.mps.look(devices, &looking.controls) {
            let _ = inputs.send(Input::MpsDied(device, died));
        }
        // In step with the period, and after a look that took longer, with what is left of it.
        next = (next + looking.period).max(Instant::now());
        match poked.recv_timeout(next - Instant::now()) {
            Ok(()) => next = Instant::now(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Looker<'_> {
    /// Looks at all devices, and tells what happened to them since the last look. What each process does is asked so often.
    fn look(&mut self, every: Option<Duration>) -> (Vec<Looked>, Vec<GpuEvent>) {
        let (observations, changes) = self.monitor.look(&self.looking.driver, &self.devices.uuids());
        let due = every.filter(|every| is_due(&mut self.asked_activity, *every));
        let mut activities = due.map_or_else(HashMap::new, |every| activities(&self.looking.driver, &observations, every));
        let at = self.looking.clock.now();
        let looked = observations.into_iter().filter_map(|observation| {
            let device = self.devices.by_uuid(&observation.device)?.id;
            let profiler = self.profiler.as_ref();
            let counters = profiler.and_then(|profiler| profiler.counters(&observation.device));
            let source = profiler.map_or(Source::UtilisationOnly, |profiler| profiler.source(&observation.device));
            let (activity, mps_server) = (activities.remove(&observation.device), self.mps.servers.get(&device).copied());
            Some(Looked { device, at, reading: observation.reading, counters, activity, source, mps_server })
        });
        (looked.collect(), changes)
    }
}

/// What processes did over this time, of each GPU that could be looked at. Where there are none, nobody has to be asked.
fn activities(driver: &Driver, observations: &[Observation], over: Duration) -> HashMap<DeviceUuid, ProcessActivity> {
    let used = |observation: &&Observation| observation.reading.as_ref().is_ok_and(|reading| !reading.processes.is_empty());
    let (used, unused): (Vec<_>, Vec<_>) = observations.iter().partition(used);
    let used: Vec<DeviceUuid> = used.into_iter().map(|observation| observation.device.clone()).collect();
    let answers = driver.process_activity(&used, over.max(SHORTEST_ACTIVITY));
    let asked = answers.into_iter().map(|(device, answer)| (device, answer.unwrap_or(ProcessActivity::Untold)));
    asked.chain(unused.into_iter().map(|observation| (observation.device.clone(), ProcessActivity::Untold))).collect()
}

/// The MPS servers of GPUs.
#[derive(Default)]
struct MpsWatch {
    watches: HashMap<DeviceId, Watch>,
    servers: HashMap<DeviceId, u32>,
    asked: Option<Instant>,
}

impl MpsWatch {
    /// Which servers have died.
    fn look(&mut self, devices: &Devices, controls: &HashMap<DeviceId, MpsControl>) -> Vec<(DeviceId, ServerDied)> {
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

/// Whether it is so long since something was last done; then it is done now.
fn is_due(last: &mut Option<Instant>, every: Duration) -> bool {
    let due = last.is_none_or(|last| last.elapsed() >= every);
    if due {
        *last = Some(Instant::now());
    }
    due
}

/// What the driver reports by itself reaches the engine at once.
fn events(driver: &Arc<Driver>, devices: Vec<DeviceUuid>, wanted: Weak<()>, inputs: Sender<Input>) -> std::io::Result<()> {
    let driver = Arc::clone(driver);
    let run = move || {
        // Some drivers report nothing; then the looks have to do.
        let Ok(watch) = driver.watch(&devices) else { return };
        while wanted.strong_count() > 0 {
            if let Some(event) = watch.next(EVENT_WAIT)
                && inputs.send(Input::Gpu(event)).is_err()
            {
                return;
            }
        }
    };
    thread::Builder::new().name("gpu events".to_owned()).spawn(run).map(drop)
}
