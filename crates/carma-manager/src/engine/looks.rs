//! Looking at the GPUs, again and again, from threads of their own: a sick driver must not keep the engine waiting.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{CollocationMode, DeviceId, Time};
use carma_gpu::mps::{MpsControl, Watch};
use carma_gpu::profiling::{Counters, Options, Profiler, Source};
use carma_gpu::{Driver, DriverError, Monitor, Reading};

use super::clock::Clock;
use super::devices::Devices;
use super::input::Input;

/// How often MPS daemons are asked who serves; whether a known server has died is looked at every time.
const MPS_PERIOD: Duration = Duration::from_secs(5);
/// The longest that events of the driver are waited for before it is looked whether anybody still wants them.
const EVENT_WAIT: Duration = Duration::from_millis(500);

/// What one look at a device came to.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) device: DeviceId,
    pub(super) at: Time,
    pub(super) reading: Result<Reading, DriverError>,
    pub(super) counters: Option<Counters>,
    pub(super) source: Source,
}

/// What is looked at, and how.
pub(super) struct Looking {
    pub(super) driver: Arc<Driver>,
    pub(super) clock: Clock,
    pub(super) period: Duration,
    pub(super) profiling: Options,
    pub(super) controls: HashMap<DeviceId, MpsControl>,
}

/// The looking threads. Dropped, they end.
#[derive(Debug)]
pub(super) struct Looks {
    poke: SyncSender<()>,
    devices: Arc<Mutex<Devices>>,
}

impl Looks {
    pub(super) fn start(looking: Looking, devices: Devices, inputs: Sender<Input>) -> std::io::Result<Self> {
        let (poke, poked) = sync_channel(1);
        let shared = Arc::new(Mutex::new(devices));
        let looks = Self { poke, devices: Arc::clone(&shared) };
        events(&looking.driver, &shared, inputs.clone())?;
        thread::Builder::new().name("looks".to_owned()).spawn(move || look_on(&looking, &shared, &inputs, &poked))?;
        Ok(looks)
    }

    /// Have a look now.
    pub(super) fn now(&self) {
        // One look that is waiting to be had is enough.
        let _ = self.poke.try_send(());
    }

    /// From now on, look at these.
    pub(super) fn change(&self, devices: Devices) {
        *self.devices.lock().unwrap_or_else(PoisonError::into_inner) = devices;
        self.now();
    }
}

fn look_on(looking: &Looking, shared: &Mutex<Devices>, inputs: &Sender<Input>, poked: &Receiver<()>) {
    let current = || shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let profile = |devices: &Devices| {
        let targets = devices.iter().map(|device| device.target.clone()).collect();
        Profiler::start(Arc::clone(&looking.driver), targets, looking.profiling.clone()).ok()
    };
    let mut devices = current();
    let (mut profiler, mut monitor) = (profile(&devices), Monitor::default());
    let mut watches: HashMap<DeviceId, Watch> = HashMap::new();
    let mut asked_mps: Option<Instant> = None;
    let mut next = Instant::now();
    loop {
        let (observations, changes) = monitor.look(&looking.driver, &devices.uuids());
        let at = looking.clock.now();
        let looked = observations.into_iter().filter_map(|observation| {
            let device = devices.by_uuid(&observation.device)?.id;
            let counters = profiler.as_ref().and_then(|profiler| profiler.counters(&observation.device));
            let source = profiler.as_ref().map_or(Source::UtilisationOnly, |profiler| profiler.source(&observation.device));
            Some(Looked { device, at, reading: observation.reading, counters, source })
        });
        if inputs.send(Input::Looked(looked.collect())).is_err() {
            return;
        }
        for change in changes {
            let _ = inputs.send(Input::Gpu(change));
        }
        let ask = asked_mps.is_none_or(|asked| asked.elapsed() >= MPS_PERIOD);
        for device in devices.iter().filter(|device| matches!(device.mode, CollocationMode::Mps { .. })) {
            let Some(control) = looking.controls.get(&device.id) else { continue };
            let watch = watches.entry(device.id).or_default();
            let health = if ask { control.health().ok() } else { None };
            let died = match health {
                Some(health) => watch.observe(&health),
                None => watch.check(),
            };
            if let Some(died) = died {
                let _ = inputs.send(Input::MpsDied(device.id, died));
            }
        }
        if ask {
            asked_mps = Some(Instant::now());
        }
        // In step with the period, and after a look that took longer, with what is left of it.
        next = (next + looking.period).max(Instant::now());
        match poked.recv_timeout(next - Instant::now()) {
            Ok(()) => next = Instant::now(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = current();
        if now != devices {
            profiler = profile(&now);
            devices = now;
        }
    }
}

/// What the driver reports by itself reaches the engine at once.
fn events(driver: &Arc<Driver>, shared: &Arc<Mutex<Devices>>, inputs: Sender<Input>) -> std::io::Result<()> {
    let (driver, shared) = (Arc::clone(driver), Arc::downgrade(shared));
    let uuids = move || Some(shared.upgrade()?.lock().unwrap_or_else(PoisonError::into_inner).uuids());
    let run = move || {
        while let Some(devices) = uuids() {
            // Some drivers report nothing; then the looks have to do.
            let Ok(watch) = driver.watch(&devices) else { return };
            while uuids().is_some_and(|now| now == devices) {
                if let Some(event) = watch.next(EVENT_WAIT)
                    && inputs.send(Input::Gpu(event)).is_err()
                {
                    return;
                }
            }
        }
    };
    thread::Builder::new().name("gpu events".to_owned()).spawn(run).map(drop)
}
