//! GPUs as the manager sees them.

use carma_core::{AttemptId, CollocationMode, DeviceId, MiB, Obstacle, Utilisation, Watts};
use carma_gpu::DeviceUuid;
use serde::{Deserialize, Serialize};

use crate::store::Joules;

/// A GPU or a MIG instance, and who is on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuDetail {
    /// As the manager names it.
    pub device: DeviceId,
    /// As the driver names it.
    pub uuid: DeviceUuid,
    /// What it is.
    pub name: String,
    /// How it is shared.
    pub mode: CollocationMode,
    /// It answers no more.
    pub lost: bool,
    /// It takes nothing new.
    pub drained: bool,
    /// All its memory.
    pub memory: MiB,
    /// Memory in use by anybody, when last seen.
    pub memory_used: Option<MiB>,
    /// Memory that is promised to jobs.
    pub promised: MiB,
    /// Memory that a job could still be promised.
    pub available: MiB,
    /// How busy it is, when last seen.
    pub utilisation: Utilisation,
    /// Power drawn.
    pub power: Option<Watts>,
    /// Energy since the manager first looked.
    pub energy: Option<Joules>,
    /// Degrees Celsius.
    pub temperature: Option<u32>,
    /// Our jobs on it.
    pub tenants: Vec<GpuTenant>,
    /// Processes on it that are not ours.
    pub foreign: usize,
    /// What keeps it from taking another job.
    pub obstacles: Vec<Obstacle>,
    /// The same, for people.
    pub closed: Vec<String>,
    /// Where its counters come from.
    pub counters: String,
}

/// One of our jobs on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuTenant {
    /// Which attempt.
    pub attempt: AttemptId,
    /// What people call the job.
    pub name: Option<String>,
    /// Whose it is.
    pub user: String,
    /// Memory it was promised.
    pub promised: MiB,
    /// Memory it was seen with.
    pub memory: Option<MiB>,
}
