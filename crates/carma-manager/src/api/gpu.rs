//! GPUs as the manager sees them.

use carma_core::{AttemptId, CollocationMode, DeviceId, MiB, Obstacle, Utilisation, Watts};
use carma_gpu::DeviceUuid;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::request::ArrayPlace;
use crate::units::{Joules, UnixMillis};

/// A GPU or a MIG instance, and who is on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
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
    /// Memory in use by all processes, at the last sample.
    pub memory_used: Option<MiB>,
    /// Memory reserved for jobs.
    pub promised: MiB,
    /// Memory that can still be reserved for a job.
    pub available: MiB,
    /// How busy it is, when last seen.
    pub utilisation: Utilisation,
    /// Power drawn.
    pub power: Option<Watts>,
    /// Energy since the manager's first sample.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GpuTenant {
    /// Which attempt.
    pub attempt: AttemptId,
    /// What people call the job.
    pub name: Option<String>,
    /// Its place in an array, which people name it by.
    pub array: Option<ArrayPlace>,
    /// Whose it is.
    pub user: String,
    /// Memory reserved for it.
    pub promised: MiB,
    /// Memory it was seen with.
    pub memory: Option<MiB>,
    /// Its part of the GPU's SMACT when last seen; where jobs share a GPU it goes by what the driver tells of processes, or in equal parts.
    pub smact: Option<f64>,
    /// Energy accounted to it on this GPU so far.
    pub energy: Option<Joules>,
    /// When it was launched.
    pub launched: UnixMillis,
}

/// Which minutes of a GPU are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct SampleQuery {
    /// From the minute of this time on; unset: an hour before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Before the minute of this time; unset: until now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}
