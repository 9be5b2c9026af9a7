//! GPUs and the jobs on them.

use std::collections::BTreeSet;

use carma_core::{AttemptId, CollocationMode, DeviceId, MiB, Obstacle, Seconds, Utilisation, Watts};
use carma_gpu::{DeviceUuid, Throttling};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::request::ArrayPlace;
use crate::units::{Joules, UnixMillis};

/// A GPU or a MIG instance, and the jobs on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GpuDetail {
    /// The name that the manager gives it.
    pub device: DeviceId,
    /// The host it is in; unset: the manager's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The UUID that the driver gives it.
    pub uuid: DeviceUuid,
    /// The product name.
    pub name: String,
    /// How it is shared.
    pub mode: CollocationMode,
    /// The driver lost it.
    pub lost: bool,
    /// It is drained: no new jobs.
    pub drained: bool,
    /// The repeated faults for which the manager drained it; unset: an operator did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained_for: Option<String>,
    /// The operator who drained it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained_by: Option<String>,
    /// Since when it is drained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained_since: Option<UnixMillis>,
    /// Its driver calls fail or hang, and last succeeded so long ago. Unset: it answers, or is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_for: Option<Seconds>,
    /// Total memory.
    pub memory: MiB,
    /// Memory in use by all processes, at the last sample.
    pub memory_used: Option<MiB>,
    /// Memory reserved for jobs.
    #[serde(alias = "promised")]
    pub reserved: MiB,
    /// Memory that can still be reserved for a job.
    pub available: MiB,
    /// Utilisation in the last sample.
    pub utilisation: Utilisation,
    /// Power drawn.
    pub power: Option<Watts>,
    /// Energy since the manager's first sample.
    pub energy: Option<Joules>,
    /// Degrees Celsius.
    pub temperature: Option<u32>,
    /// Why it runs below its clocks: `power`, `thermal`, `hardware`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub throttling: BTreeSet<Throttling>,
    /// Jobs of this manager on it.
    pub tenants: Vec<GpuTenant>,
    /// Number of other processes on it.
    pub foreign: usize,
    /// Why it accepts no more jobs.
    pub obstacles: Vec<Obstacle>,
    /// The same as text.
    pub closed: Vec<String>,
    /// Source of its profiling counters.
    pub counters: String,
}

/// A job of this manager on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GpuTenant {
    /// The attempt.
    pub attempt: AttemptId,
    /// The name of the job.
    pub name: Option<String>,
    /// The place of the job in an array.
    pub array: Option<ArrayPlace>,
    /// The name of the user.
    pub user: String,
    /// Memory reserved for it.
    #[serde(alias = "promised")]
    pub reserved: MiB,
    /// Memory in use, in the last sample.
    pub memory: Option<MiB>,
    /// The most memory that the driver or MPS lets it have; unset: it is not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<MiB>,
    /// Memory in use beyond what is reserved: the driver takes it back when other jobs need theirs. Unset: it borrows nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borrowed: Option<MiB>,
    /// Its share of the GPU's SMACT in the last sample. Jobs on a shared GPU get shares by what the driver reports per process, or equal ones.
    pub smact: Option<f64>,
    /// Energy accounted to it on this GPU so far.
    pub energy: Option<Joules>,
    /// When it was launched.
    pub launched: UnixMillis,
}

/// The result of draining or resuming a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct DrainResult {
    /// It was not in that state before.
    pub changed: bool,
    /// The driver lost it: it takes no jobs until it answers again.
    pub lost: bool,
}

/// Which minutes of a GPU to return.
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
