//! A reading of the host.

use std::path::PathBuf;

use carma_core::{Fraction, MiB};
use serde::{Deserialize, Serialize};

use super::proc::Pressure;

/// Resources of the host and what is left of them. In a container: of the container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostReading {
    /// Usable cores.
    pub cores: u32,
    /// Share of time that CPUs were busy since the last reading; unset in the first.
    pub busy: Option<Fraction>,
    /// Load average of the last minute.
    pub load: f64,
    /// Waiting for CPUs, where the kernel reports it.
    pub cpu_pressure: Option<Pressure>,
    /// All memory.
    pub memory_total: MiB,
    /// Memory that is available without swapping.
    pub memory_available: MiB,
    /// Waiting for memory, where the kernel reports it.
    pub memory_pressure: Option<Pressure>,
    /// All swap space.
    pub swap_total: MiB,
    /// Swap space that is free.
    pub swap_free: MiB,
    /// Disks of the folders that are watched.
    pub disks: Vec<Disk>,
}

/// The disk that a folder is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The folder.
    pub folder: PathBuf,
    /// Its size.
    pub total: MiB,
    /// What users other than root may write.
    pub free: MiB,
}
