//! What the engine knows at one moment, as far as metrics tell of it.

use std::collections::BTreeMap;

use carma_core::{AttemptId, Fraction, MiB, Seconds};
use carma_gpu::Reading;
use carma_gpu::profiling::{Counters, Unit};

use crate::api::{GpuDetail, Status};
use crate::host::HostReading;
use crate::measure::DeviceEnergy;
use crate::store::Phase;

/// All of it.
#[derive(Debug, Clone)]
pub struct Facts {
    /// How the manager is.
    pub status: Status,
    /// What is decided can be written down.
    pub writable: bool,
    /// The last look at the host.
    pub host: Option<HostReading>,
    /// The host is short of something, and nothing new is started.
    pub host_short: bool,
    /// The GPUs and instances.
    pub gpus: Vec<GpuFacts>,
    /// Jobs that are not over, by where they stand.
    pub phases: BTreeMap<Phase, u64>,
    /// Jobs that could start if there were room.
    pub ready: u64,
    /// How long the first of them has waited.
    pub oldest: Option<Seconds>,
    /// Jobs that run.
    pub running: Vec<RunningJob>,
}

/// A GPU or an instance.
#[derive(Debug, Clone)]
pub struct GpuFacts {
    /// As the API tells of it.
    pub detail: GpuDetail,
    /// What it is to its driver.
    pub unit: Unit,
    /// It is cut into instances, which are used in its place.
    pub partitioned: bool,
    /// The last reading that came to something.
    pub reading: Option<Reading>,
    /// Its profiling counters.
    pub counters: Option<Counters>,
    /// How long ago it was looked at.
    pub age: Option<Seconds>,
    /// Memory of processes that are not ours.
    pub foreign_memory: MiB,
    /// Where its energy went.
    pub energy: Option<DeviceEnergy>,
}

/// A job that runs.
#[derive(Debug, Clone)]
pub struct RunningJob {
    /// Which attempt of it.
    pub attempt: AttemptId,
    /// What people call it.
    pub name: Option<String>,
    /// Whose it is.
    pub user: String,
    /// GPUs it has.
    pub gpus: u32,
    /// For how long it has run.
    pub ran: Seconds,
    /// How far it is, where it tells.
    pub progress: Option<Fraction>,
}
