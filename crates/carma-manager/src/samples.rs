//! Measurements of GPUs over time.

use carma_core::{AttemptId, DeviceId, MiB, Seconds, Utilisation, UtilisationOverTime, Watts};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::units::{UnixMillis, UnixMinute};

/// The mean of a device's samples over one minute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MinuteMean {
    /// The device.
    pub device: DeviceId,
    /// The minute.
    pub minute: UnixMinute,
    /// Number of samples.
    pub readings: u32,
    /// Memory in use by all processes.
    pub memory_used: MiB,
    /// Mean utilisation.
    pub utilisation: Utilisation,
    /// Power drawn.
    pub power: Option<Watts>,
}

/// The memory of an attempt on a GPU, from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemoryStep {
    /// The time.
    pub at: UnixMillis,
    /// The memory.
    pub memory: MiB,
}

/// How busy an attempt kept a GPU over time: its part of the GPU's utilisation, as means of equal spans.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptUtilisation {
    /// The attempt.
    pub attempt: AttemptId,
    /// The GPU.
    pub device: DeviceId,
    /// When the first span begins.
    pub since: UnixMillis,
    /// The length of a span. It grows with the attempt, so that there are at most 120.
    pub span: Seconds,
    /// A column per metric, to three decimals. A span without samples is unset.
    pub utilisation: UtilisationOverTime,
}
