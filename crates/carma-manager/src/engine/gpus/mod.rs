//! The GPUs: inventory, sharing modes, samples, and incidents.

pub(crate) mod activity;
mod faults;
mod finding;
pub(crate) mod incidents;
pub(crate) mod memory_limits;
mod modes;
mod mps;
mod power;
mod report;
mod sampling;
mod scans;
mod switch;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use carma_core::{DeviceId, DeviceSpec, Event, EventError, ServerId};
use carma_gpu::Driver;
use carma_gpu::profiling::Options;

use self::incidents::Incidents;
use self::memory_limits::MemoryLimiter;
use self::mps::MpsDaemons;
use self::power::PowerOrder;
pub(crate) use self::report::{GpuChange, GpuReport, Reports};
use self::sampling::Sampling;
pub(crate) use self::sampling::Silence;
use self::scans::Scans;
use super::decide::Decisions;
use crate::api::DrainResult;
use crate::configuration::{GpuConfig, WatchConfig};
use crate::host_gpus::{Device, Devices, ExcludedGpus, LOCAL_SERVER, Numbers};
use crate::memory_limits::CannotLimit;
use crate::pool::Pool;
use crate::store::{Change, DrainCause, Drained, MachineChange, Store};
use crate::watch::FaultLog;
use crate::world::World;

/// Whether the core knows that a device is lost.
fn is_lost(decisions: &Decisions, device: DeviceId) -> bool {
    decisions.scheduler().fleet().device(device).is_some_and(|device| device.lost)
}

/// The fixed settings.
#[derive(Debug)]
pub(crate) struct GpuSetup {
    /// Unset where there are no GPUs.
    pub(crate) driver: Option<Arc<Driver>>,
    pub(crate) settings: GpuConfig,
    /// Where profiling counters come from.
    pub(crate) profiling: Options,
    /// The manager only watches: it changes nothing of the GPUs.
    pub(crate) observes: bool,
    /// Why the memory of jobs cannot be limited here, whatever the driver; unset: it can.
    pub(crate) cannot_limit: Option<CannotLimit>,
    /// When GPUs count as faulty.
    pub(crate) watch: WatchConfig,
    /// The file that says which GPU has which number.
    pub(crate) numbers: PathBuf,
}

/// The GPUs of this host.
pub(crate) struct Gpus {
    setup: GpuSetup,
    devices: Devices,
    /// The GPUs of agents' servers.
    remote: BTreeMap<ServerId, Devices>,
    excluded: ExcludedGpus,
    /// Drained GPUs, present or not.
    drained: BTreeMap<DeviceId, Drained>,
    faults: FaultLog,
    /// Attempts are quiet on GPUs where others work.
    suspects: bool,
    numbers: Numbers,
    scans: Scans,
    sampling: Sampling,
    incidents: Incidents,
    mps: MpsDaemons,
    /// MPS daemons of an earlier manager that are to be stopped.
    unwanted_mps: Vec<MachineChange>,
    power: Pool<PowerOrder>,
    memory_limits: MemoryLimiter,
    reports: Reports,
}

impl Gpus {
    pub(crate) fn new(setup: GpuSetup, world: &World, store: &Arc<Store>, reports: Reports) -> io::Result<Self> {
        Ok(Self {
            numbers: Numbers::read(&setup.numbers),
            mps: MpsDaemons::new(world, Arc::clone(store)),
            unwanted_mps: Vec::new(),
            power: power::limits(setup.driver.as_ref(), store, &reports)?,
            memory_limits: MemoryLimiter::start(setup.driver.as_ref(), &reports)?,
            setup,
            devices: Devices::default(),
            remote: BTreeMap::new(),
            excluded: ExcludedGpus::default(),
            drained: BTreeMap::new(),
            faults: FaultLog::default(),
            suspects: false,
            scans: Scans::default(),
            sampling: Sampling::default(),
            incidents: Incidents::default(),
            reports,
        })
    }

    /// A device of any server.
    pub(crate) fn device(&self, id: DeviceId) -> Option<&Device> {
        if id.server() == LOCAL_SERVER { self.devices.get(id) } else { self.remote.get(&id.server())?.get(id) }
    }

    /// What the scheduler knows of a device of this host.
    fn spec(&self, device: &Device) -> DeviceSpec {
        DeviceSpec { limits_memory: device.limits_memory && self.setup.cannot_limit.is_none(), ..device.spec() }
    }

    /// The kinds of GPUs of all servers, by their names.
    pub(crate) fn kinds(&self) -> BTreeSet<&str> {
        self.devices.iter().chain(self.remote.values().flat_map(Devices::iter)).map(|device| device.name.as_str()).collect()
    }

    /// Whether this host has GPUs for jobs.
    pub(crate) fn has_local(&self) -> bool {
        self.devices.iter().next().is_some()
    }

    /// The kind of all GPUs, if there is only one.
    pub(crate) fn only_kind(&self) -> Option<&str> {
        let kinds = self.kinds();
        kinds.first().copied().filter(|_| kinds.len() == 1)
    }

    /// The GPUs of an agent's server.
    pub(crate) fn remote(&self, server: ServerId) -> &Devices {
        static NONE: Devices = Devices::none();
        self.remote.get(&server).unwrap_or(&NONE)
    }

    pub(crate) fn add_remote(&mut self, server: ServerId, devices: Devices) {
        self.remote.insert(server, devices);
    }

    pub(crate) fn remove_remote(&mut self, server: ServerId) {
        for device in self.remote.remove(&server).unwrap_or_default().iter() {
            self.sampling.forget(device.id);
        }
    }

    /// Forgets the GPUs of all agents' servers, for a new core.
    pub(crate) fn clear_remote(&mut self) {
        self.remote.clear();
    }

    pub(crate) fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// The GPUs of this host that are not used.
    pub(crate) fn excluded(&self) -> &ExcludedGpus {
        &self.excluded
    }

    /// Whether a GPU is being switched to another mode.
    pub(crate) fn is_switching(&self) -> bool {
        self.scans.is_switching()
    }

    /// A report while the engine is unavailable. The result of a switch is read from the GPU later.
    pub(crate) fn ignore(&mut self, report: &GpuReport) {
        if matches!(report, GpuReport::Changed(GpuChange::Switched(_))) {
            self.scans.end_switch();
        }
    }

    pub(crate) fn take(&mut self, decisions: &mut Decisions, change: GpuChange) {
        match change {
            GpuChange::Event(event) => self.gpu_event(decisions, LOCAL_SERVER, &event),
            GpuChange::MpsDied(device, died) => self.mps_died(decisions, device, &died),
            GpuChange::Found(scan) => self.scanned(decisions, scan),
            GpuChange::Switched(switched) => self.switched(decisions, *switched),
            GpuChange::PowerLimited(device, result) => power::limited(decisions, device, result),
            GpuChange::NotLimited { attempt, device, reason } => memory_limits::not_limited(decisions, attempt, device, &reason),
        }
    }

    /// Drains a GPU, or resumes it.
    pub(crate) fn drain(
        &mut self,
        decisions: &mut Decisions,
        device: DeviceId,
        drained: bool,
        by: &str,
    ) -> Result<DrainResult, EventError> {
        let before = decisions.scheduler().fleet().device(device).is_some_and(|device| device.drained);
        decisions.tell(if drained { Event::GpuDrained { device } } else { Event::GpuResumed { device } })?;
        let result = DrainResult { changed: before != drained, lost: is_lost(decisions, device) };
        if drained {
            self.note_drained(decisions, device, DrainCause::User(by.to_owned()));
        } else {
            self.drained.remove(&device);
            // The faults are assumed to be repaired.
            self.faults.forget(device);
            decisions.batch.changes.push(Change::GpuResumed { device });
        }
        if result.changed {
            let lost = if result.lost { ", and lost" } else { "" };
            decisions.announce(format!("{device} is {}drained by {by}{lost}", if drained { "" } else { "no longer " }));
        }
        Ok(result)
    }

    /// Undoes changes of earlier managers that are no longer wanted, and sets power limits.
    pub(crate) fn begin(&mut self, decisions: &mut Decisions, changes: Vec<MachineChange>) {
        self.remove_unwanted_instances(decisions, &changes);
        self.find_unwanted_mps(&changes);
        // Before a job may need another daemon on the GPU.
        let _ = self.stop_unwanted_mps(decisions).map(JoinHandle::join);
        self.begin_power_limits(decisions, changes);
    }
}
