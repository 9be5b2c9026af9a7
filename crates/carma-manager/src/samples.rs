//! What is kept of GPUs over time.

use carma_core::{DeviceId, MiB, Utilisation, Watts};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::units::{UnixMillis, UnixMinute};

/// The mean of a device's samples over one minute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MinuteMean {
    /// Which device.
    pub device: DeviceId,
    /// Which minute.
    pub minute: UnixMinute,
    /// Samples it is the mean of.
    pub readings: u32,
    /// Memory in use by all processes.
    pub memory_used: MiB,
    /// How busy the device was.
    pub utilisation: Utilisation,
    /// Power drawn.
    pub power: Option<Watts>,
}

/// From this time on, an attempt had so much memory on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemoryStep {
    /// From when.
    pub at: UnixMillis,
    /// So much.
    pub memory: MiB,
}
