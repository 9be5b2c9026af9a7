//! Repeated sampling of GPUs, their counters, and their events.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use carma_core::MiB;
use carma_format::count;
use carma_gpu::profiling::{Options, Profiler, Source, SourceReport, SourceState, Target};
use carma_gpu::{DeviceUuid, Driver, EventWatch, Exclusion, Gpu, GpuEvent, Incident, Inventory, Monitor, Observation, mig};

use super::find::World;
use super::report::{DeviceReport, GpuReport, Owners, Part, PartReport, PartitionedGpu, Report, now};
use super::table::throttled;

/// A source needs two samples for its first counters.
const FIRST_COUNTERS: Duration = Duration::from_millis(2500);
/// Drivers keep less memory than this for contexts without any process.
const MIN_REPORTED: MiB = MiB(1024);

/// Everything that is sampled.
pub(super) struct View {
    driver: Arc<Driver>,
    world: World,
    inventory: Inventory,
    gpus: Vec<PartitionedGpu>,
    profiler: Profiler,
    monitor: Monitor,
    owners: Owners,
    /// The driver's events; some drivers have none.
    events: Option<EventWatch>,
    /// The last that happened to each GPU.
    incidents: HashMap<DeviceUuid, (Instant, Incident)>,
    pub(super) waited: bool,
}

impl View {
    pub(super) fn new(driver: Arc<Driver>, world: World) -> Result<Self> {
        let (inventory, gpus) = Self::devices(&driver)?;
        let profiler = Profiler::start(Arc::clone(&driver), targets(&gpus), profiler_options(&world))?;
        let events = driver.watch(&inventory.gpus.iter().map(|gpu| gpu.uuid.clone()).collect::<Vec<_>>()).ok();
        Ok(Self {
            driver,
            world,
            inventory,
            gpus,
            profiler,
            monitor: Monitor::default(),
            owners: Owners::default(),
            events,
            incidents: HashMap::new(),
            waited: false,
        })
    }

    /// Sets everything up again if GPUs or instances were added or removed.
    pub(super) fn refresh(&mut self) -> Result<()> {
        self.owners.prune();
        // A short silence of the driver changes nothing; missing answers are shown.
        if let Ok((inventory, gpus)) = Self::devices(&self.driver)
            && (inventory != self.inventory || gpus != self.gpus)
        {
            let incidents = std::mem::take(&mut self.incidents);
            *self = Self { waited: self.waited, incidents, ..Self::new(Arc::clone(&self.driver), self.world.clone())? };
        }
        Ok(())
    }

    fn devices(driver: &Driver) -> Result<(Inventory, Vec<PartitionedGpu>)> {
        let inventory = driver.inventory()?;
        let parts = |gpu: &Gpu| -> Result<Vec<Part>> {
            match gpu.mig {
                Some(true) => {
                    let parts = mig::list(driver, &gpu.uuid)?.instances;
                    Ok(parts.iter().flat_map(Part::of).filter(|part| gpu.may_use(&part.uuid)).collect())
                }
                _ => Ok(Vec::new()),
            }
        };
        let gpus =
            inventory.gpus.iter().map(|gpu| Ok(PartitionedGpu { gpu: gpu.clone(), parts: parts(gpu)? })).collect::<Result<Vec<_>>>()?;
        Ok((inventory, gpus))
    }

    /// Waits until every GPU with a counter source has delivered counters.
    pub(super) fn await_counters(&self) {
        let until = Instant::now() + FIRST_COUNTERS;
        let missing = |gpu: &Gpu| self.profiler.counters(&gpu.uuid).is_none();
        // A started source will deliver; NVML does at the second sample.
        let may_deliver = |report: &SourceReport| match report.state {
            SourceState::Starting => true,
            SourceState::Used(_) => report.source == Source::Gpm,
            SourceState::Spare => report.source == Source::Dcgmi,
            SourceState::Absent(_) => false,
        };
        let wait = || self.inventory.gpus.iter().any(missing) && self.profiler.report().iter().any(may_deliver);
        while Instant::now() < until && wait() {
            thread::sleep(Duration::from_millis(50));
        }
    }

    pub(super) fn sample(&mut self) -> Report {
        let all: Vec<DeviceUuid> = self.gpus.iter().flat_map(PartitionedGpu::devices).cloned().collect();
        let (observations, changes) = self.monitor.sample(&self.driver, &all);
        for GpuEvent { device, incident } in self.events.iter().flat_map(EventWatch::recent).chain(changes) {
            device.map(|device| self.incidents.insert(device, (Instant::now(), incident)));
        }
        let owners = &mut self.owners;
        let report = |observation: Observation| {
            let counters = self.profiler.counters(&observation.device);
            DeviceReport::new(observation.reading, counters, owners)
        };
        let reports: Vec<DeviceReport> = observations.into_iter().map(report).collect();
        // Observations come in the order of the devices.
        let mut seen = reports.into_iter();
        let mut next = || seen.next().unwrap_or_else(|| DeviceReport::new(Err("it was not sampled"), None, &mut Owners::default()));
        let mut gpus = Vec::new();
        for PartitionedGpu { gpu, parts } in &self.gpus {
            let state = next();
            let parts = parts.iter().map(|part| PartReport { part: part.clone(), state: next() }).collect();
            gpus.push(GpuReport {
                gpu: gpu.clone(),
                source: self.profiler.source(&gpu.uuid),
                notes: self.notes(gpu, &state),
                state,
                parts,
                jobs: Vec::new(),
            });
        }
        Report {
            driver: Some(self.inventory.driver.clone()),
            cuda: Some(self.inventory.cuda.clone()),
            emulated: match &self.world {
                World::Real => None,
                World::Emulated(folder) => Some(folder.display().to_string()),
            },
            waited: self.waited,
            at: now(),
            gpus,
            left_out: self.inventory.left_out.clone(),
            remote: Vec::new(),
        }
    }
}

impl View {
    /// Notes about a GPU besides its numbers.
    fn notes(&self, gpu: &Gpu, state: &DeviceReport) -> Vec<String> {
        let errors = state
            .uncorrected
            .filter(|errors| *errors > 0)
            .map(|errors| format!("{} in its memory could not be corrected", count(errors as usize, "error")));
        let throttled = throttled(&state.throttling);
        let leaked = state.unaccounted.filter(|memory| *memory >= MIN_REPORTED).map(|memory| format!("{memory} belong to no process"));
        let incident = self.incidents.get(&gpu.uuid).map(|(when, what)| format!("{what}, {} s ago", when.elapsed().as_secs()));
        let parts = gpu.usable_instances.as_ref().map(|_| format!("its other MIG instances are {}", Exclusion::NotVisible));
        [throttled, errors, leaked, incident, parts].into_iter().flatten().collect()
    }
}

/// All devices with wanted counters.
fn targets(gpus: &[PartitionedGpu]) -> Vec<Target> {
    let of = |PartitionedGpu { gpu, parts }: &PartitionedGpu| {
        let parts = parts.iter().map(|part| Target::instance(part.uuid.clone(), gpu.uuid.clone(), part.gpu_instance));
        std::iter::once(Target::gpu(gpu.uuid.clone())).chain(parts).collect::<Vec<_>>()
    };
    gpus.iter().flat_map(of).collect()
}

/// The programs of the sampled machine: an emulated machine has its own.
pub(crate) fn profiler_options(world: &World) -> Options {
    match world {
        World::Real => Options::default(),
        World::Emulated(folder) => Options { dcgmi: folder.join("bin/dcgmi"), ..Options::default() },
    }
}
