//! Measurements of GPUs over time.

use carma_core::{DeviceId, MiB, Utilisation, Watts};
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
