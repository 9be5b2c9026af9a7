//! MIG: a GPU that is partitioned into instances.
//!
//! ```text
//!  list ──► MigState ──┐
//!  profiles ───────────┼──► plan ──► Plan: steps ──► apply: carried out, undone where one fails, and read again
//!  Layout, as written ─┘
//! ```

mod apply;
mod layout;
mod list;
mod plan;
mod profile;
mod raw;
mod step;

use std::fmt;

use carma_core::MiB;
use serde::{Deserialize, Serialize};

use crate::identity::DeviceUuid;
pub use apply::{MigError, apply, prepare};
pub use layout::{Layout, LayoutError};
pub(crate) use list::named_instances;
pub use list::{list, profiles};
pub use plan::{PlanError, plan};
pub use profile::{NotAProfile, Profile, ProfileName, Variant};
pub use step::{Part, Plan, Step};

/// The MIG mode of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It cannot be.
    Unsupported,
    /// MIG is off.
    Off,
    /// MIG is on, maybe without any instances.
    On,
}

/// The memory slices of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Placement {
    /// The first.
    pub start: u32,
    /// Number of slices.
    pub size: u32,
}

impl Placement {
    /// Whether both have a slice in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.start < other.start + other.size && other.start < self.start + self.size
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.start, self.size)
    }
}

/// A GPU instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// Its number within the GPU.
    pub gpu_instance: u32,
    /// Its kind.
    pub profile: ProfileName,
    /// Its placement; only root can read it.
    pub placement: Option<Placement>,
    /// Its memory.
    pub memory: MiB,
    /// Its compute slices.
    pub slices: u32,
    /// Its compute instances: one with all of it, or several that share its memory.
    pub compute: Vec<ComputeInstance>,
}

/// A compute instance: a device to CUDA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComputeInstance {
    /// Its number within the GPU instance.
    pub id: u32,
    /// Its UUID, `MIG-...`.
    pub uuid: DeviceUuid,
    /// Its compute slices.
    pub slices: u32,
}

impl Instance {
    /// The device that spans the whole instance, if any.
    pub fn whole(&self) -> Option<&ComputeInstance> {
        self.compute.first().filter(|compute| self.compute.len() == 1 && compute.slices == self.slices)
    }
}

/// A process on a GPU or one of its instances.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name, if visible.
    pub name: Option<String>,
    /// The GPU instance it runs on.
    pub gpu_instance: Option<u32>,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " ({name})"))
    }
}

/// The partition of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MigState {
    /// The present mode.
    pub mode: Mode,
    /// The mode after a reset.
    pub pending: Mode,
    /// Its instances, in the order of their numbers.
    pub instances: Vec<Instance>,
    /// The processes on it.
    pub processes: Vec<Process>,
}

impl MigState {
    /// The processes on an instance.
    pub fn processes_on(&self, instance: &Instance) -> impl Iterator<Item = &Process> {
        let number = instance.gpu_instance;
        self.processes.iter().filter(move |process| process.gpu_instance == Some(number))
    }
}
