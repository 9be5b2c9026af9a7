//! A look at the host.

use std::path::PathBuf;

use carma_core::{Fraction, MiB};
use serde::Serialize;

use super::proc::Pressure;

/// What the host has, and has left. In a container: what the container may use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostReading {
    /// Cores we may use.
    pub cores: u32,
    /// Share of time that CPUs were busy since the last look; unset at the first.
    pub busy: Option<Fraction>,
    /// Processes that ran or wanted to, over the last minute.
    pub load: f64,
    /// Waiting for CPUs, where the kernel tells.
    pub cpu_pressure: Option<Pressure>,
    /// All memory.
    pub memory_total: MiB,
    /// Memory that can be had without swapping.
    pub memory_available: MiB,
    /// Waiting for memory, where the kernel tells.
    pub memory_pressure: Option<Pressure>,
    /// All swap space.
    pub swap_total: MiB,
    /// Swap space that is free.
    pub swap_free: MiB,
    /// Disks of the folders that are watched.
    pub disks: Vec<Disk>,
}

/// The disk that a folder is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// The folder.
    pub folder: PathBuf,
    /// All there is.
    pub total: MiB,
    /// What may be written by whoever is not root.
    pub free: MiB,
}
