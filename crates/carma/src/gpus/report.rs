//! The state of each GPU, from the driver, the profiler and the system.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::time::{SystemTime, UNIX_EPOCH};

use carma_core::{Fraction, MiB, Watts};
use carma_gpu::mig::{Instance, ProfileName};
use carma_gpu::profiling::{Counters, Source};
use carma_gpu::{DeviceUuid, Gpu, GpuProcess, LeftOut, Ownership, ProcessKind, Reading, Throttling, ownership, process_started};
use carma_manager::api::{GpuDetail, GpuTenant};
use carma_manager::names_gpu;
use serde::Serialize;

use super::managed::{Known, is_remote};

/// All GPUs at one moment: the output of `--json`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    /// Time of the sample, in seconds since 1970.
    pub(crate) at: f64,
    /// Absent where this machine has no GPUs, as a login node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) driver: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cuda: Option<String>,
    /// The folder of the emulated machine; absent: the GPUs are real.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) emulated: Option<String>,
    /// Whether counters were waited for.
    #[serde(skip)]
    pub(crate) waited: bool,
    pub(crate) gpus: Vec<GpuReport>,
    pub(crate) left_out: Vec<LeftOut>,
    /// GPUs of other servers, as the manager knows them through its agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) remote: Vec<GpuDetail>,
}

impl Report {
    /// Adds what the manager knows: jobs and drained GPUs of this host, and GPUs of other servers. An agent may run on this host: its GPUs
    /// are listed already.
    pub(super) fn add_managed(&mut self, Known { gpus, ignored }: Known) {
        for local in &mut self.gpus {
            let is_part = |known: &GpuDetail| local.parts.iter().any(|part| part.part.uuid == known.uuid);
            let here = gpus.iter().filter(|known| known.uuid == local.gpu.uuid || is_part(known));
            local.jobs = here.flat_map(|gpu| &gpu.tenants).cloned().collect();
            let is_ignored = ignored.iter().any(|word| names_gpu(word, local.gpu.index, &local.gpu.uuid));
            local.notes.extend(is_ignored.then(|| "the manager ignores it: manager.gpus.ignore".to_owned()));
            local.notes.extend(gpus.iter().filter(|known| known.uuid == local.gpu.uuid).find_map(drained));
        }
        let is_local = |uuid: &DeviceUuid| {
            self.gpus.iter().any(|local| local.gpu.uuid == *uuid || local.parts.iter().any(|part| part.part.uuid == *uuid))
        };
        self.remote = gpus.into_iter().filter(|gpu| is_remote(gpu) && !is_local(&gpu.uuid)).collect();
    }
}

/// That a GPU gets no new jobs, and why.
pub(super) fn drained(gpu: &GpuDetail) -> Option<String> {
    let by = gpu.drained_by.as_ref().map_or(String::new(), |user| format!(" by {user}"));
    let why = gpu.drained_for.as_ref().map_or(by, |faults| format!(" because of its faults: {faults}"));
    gpu.drained.then(|| format!("drained{why}: it gets no new jobs"))
}

/// That a GPU does not answer.
pub(super) fn silent(gpu: &GpuDetail) -> Option<String> {
    gpu.silent_for.map(|lasted| format!("it has not answered for {lasted}"))
}

/// The time of a sample.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// One GPU.
#[derive(Debug, Serialize)]
pub(crate) struct GpuReport {
    #[serde(flatten)]
    pub(crate) gpu: Gpu,
    /// Source of its profiling counters.
    pub(crate) source: Source,
    /// Further notes.
    pub(crate) notes: Vec<String>,
    #[serde(flatten)]
    pub(crate) state: DeviceReport,
    pub(crate) parts: Vec<PartReport>,
    /// The jobs of the user's manager on it and on its parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) jobs: Vec<GpuTenant>,
}

/// A device that is a part of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Part {
    pub(crate) uuid: DeviceUuid,
    /// The number of its GPU instance.
    pub(crate) gpu_instance: u32,
    pub(crate) profile: ProfileName,
    pub(crate) memory: MiB,
}

impl Part {
    /// The devices of an instance.
    pub(crate) fn of(instance: &Instance) -> impl Iterator<Item = Self> {
        let Instance { gpu_instance, profile, memory, .. } = *instance;
        instance.compute.iter().map(move |compute| Self { uuid: compute.uuid.clone(), gpu_instance, profile, memory })
    }
}

/// The state of a part of a GPU.
#[derive(Debug, Serialize)]
pub(crate) struct PartReport {
    #[serde(flatten)]
    pub(crate) part: Part,
    #[serde(flatten)]
    pub(crate) state: DeviceReport,
}

/// The state of a GPU or an instance.
#[derive(Debug, Serialize)]
pub(crate) struct DeviceReport {
    /// Why it has no data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    pub(crate) memory_used: Option<MiB>,
    pub(crate) utilisation: Option<Fraction>,
    pub(crate) power: Option<Watts>,
    /// Joules since the driver was loaded.
    pub(crate) energy: Option<f64>,
    pub(crate) temperature: Option<u32>,
    /// Why it runs below its clocks.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) throttling: BTreeSet<Throttling>,
    /// Errors in memory that could not be corrected.
    pub(crate) uncorrected: Option<u64>,
    /// Memory in use that no process holds.
    pub(crate) unaccounted: Option<MiB>,
    pub(crate) counters: Option<Counters>,
    pub(crate) processes: Vec<ProcessReport>,
}

/// A process on a GPU.
#[derive(Debug, Serialize)]
pub(crate) struct ProcessReport {
    pub(crate) pid: u32,
    pub(crate) kind: ProcessKind,
    pub(crate) memory: Option<MiB>,
    /// Absent if the process is not visible.
    #[serde(flatten)]
    pub(crate) ownership: Option<Ownership>,
}

impl DeviceReport {
    /// From a sample of a device and its counters.
    pub(crate) fn new(reading: Result<Reading, impl ToString>, counters: Option<Counters>, owners: &mut Owners) -> Self {
        match reading {
            Ok(reading) => Self {
                problem: None,
                memory_used: Some(reading.memory_used),
                utilisation: reading.utilisation,
                power: reading.power,
                energy: reading.energy,
                temperature: reading.temperature,
                throttling: reading.throttling.clone(),
                uncorrected: reading.uncorrected,
                unaccounted: reading.unaccounted(),
                counters,
                processes: reading.processes.iter().map(|process| ProcessReport::new(process, owners)).collect(),
            },
            Err(error) => Self {
                problem: Some(error.to_string()),
                memory_used: None,
                utilisation: None,
                power: None,
                energy: None,
                temperature: None,
                throttling: BTreeSet::new(),
                uncorrected: None,
                unaccounted: None,
                counters: None,
                processes: Vec::new(),
            },
        }
    }
}

impl ProcessReport {
    fn new(process: &GpuProcess, owners: &mut Owners) -> Self {
        Self { pid: process.pid, kind: process.kind, memory: process.memory, ownership: owners.of(process.pid) }
    }
}

/// Owners of processes, each looked up once: user names may come from a slow directory service.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    known: HashMap<(u32, u64), Ownership>,
}

impl Owners {
    fn of(&mut self, pid: u32) -> Option<Ownership> {
        let process = (pid, process_started(pid)?);
        match self.known.entry(process) {
            Entry::Occupied(known) => Some(known.get().clone()),
            Entry::Vacant(unknown) => Some(unknown.insert(ownership(pid)?).clone()),
        }
    }

    /// Forgets processes that have ended.
    pub(crate) fn prune(&mut self) {
        self.known.retain(|(pid, started), _| process_started(*pid) == Some(*started));
    }
}

/// A GPU, and its MIG instances.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartitionedGpu {
    pub(crate) gpu: Gpu,
    pub(crate) parts: Vec<Part>,
}

impl PartitionedGpu {
    /// The GPU before its parts.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &DeviceUuid> {
        std::iter::once(&self.gpu.uuid).chain(self.parts.iter().map(|part| &part.uuid))
    }
}
