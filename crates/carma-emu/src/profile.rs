//! What the driver says about each kind of GPU, as data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use carma_core::{Fraction, MiB};
use carma_sim::{GPU_TYPES, GpuType};
use serde::Deserialize;

/// Who offers a GPU's profiling counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profiling {
    /// NVML itself.
    Gpm,
    /// DCGM.
    Dcgm,
    /// Nobody.
    None,
}

/// A kind of GPU as its driver describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Memory, bandwidth and power.
    pub kind: &'static GpuType,
    /// What else there is.
    pub facts: Facts,
    /// The instances it can be cut into; none: it cannot.
    pub mig: Vec<MigProfile>,
}

/// Facts beyond those the simulator needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The product's name.
    pub product: String,
    /// CUDA compute capability.
    pub capability: [u32; 2],
    /// NVML's number of the architecture.
    pub architecture: u32,
    /// PCI device and vendor.
    pub device_id: u32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// CUDA cores.
    pub cores: u32,
    /// The highest clock of the multiprocessors in MHz.
    pub sm_clock: u32,
    /// The clock of the memory in MHz.
    pub memory_clock: u32,
    /// NVLink connections.
    #[serde(default)]
    pub nvlinks: u32,
    /// Who offers its counters.
    pub profiling: Profiling,
    /// Whether its memory corrects errors.
    #[serde(default)]
    pub ecc: bool,
    /// Whether it has a fan of its own.
    #[serde(default)]
    pub fan: bool,
    #[serde(default)]
    mig: Option<String>,
}

/// A kind of MIG instance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigProfile {
    /// As people write it: `1g.5gb`.
    pub name: String,
    /// NVML's number to ask for it by.
    pub slot: u32,
    /// The number the driver shows.
    pub id: u32,
    /// Compute slices.
    pub slices: u32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Memory in MiB.
    pub memory: u64,
    /// Memory slices it may begin at.
    pub starts: Vec<u32>,
    /// Memory slices it takes.
    pub span: u32,
}

static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(read);

#[expect(clippy::expect_used, reason = "the tables are part of the program, and a test reads them")]
fn read() -> Vec<Profile> {
    let mut facts: BTreeMap<String, Facts> = toml::from_str(include_str!("gpus.toml")).expect("the table of GPUs is well-formed");
    let mig: BTreeMap<String, Vec<MigProfile>> = toml::from_str(include_str!("mig.toml")).expect("the table of instances is well-formed");
    let profile = |kind: &'static GpuType| {
        let facts = facts.remove(kind.name).expect("every type of GPU is described");
        let instances = facts.mig.as_ref().map(|name| mig.get(name).expect("every table of instances is there").clone());
        Profile { kind, facts, mig: instances.unwrap_or_default() }
    };
    GPU_TYPES.iter().map(profile).collect()
}

impl Profile {
    /// All that can be emulated, in the order of the simulator's GPU types.
    pub fn all() -> &'static [Self] {
        &PROFILES
    }

    /// The place of a kind of GPU among [`Profile::all`].
    pub fn place(kind: &GpuType) -> usize {
        GPU_TYPES.iter().position(|other| other == kind).unwrap_or_default()
    }

    /// Slices of compute it is cut into: those of its largest instance.
    pub fn slices(&self) -> u32 {
        self.mig.iter().map(|profile| profile.slices).max().unwrap_or(1)
    }

    /// The share of its multiprocessors that an instance has.
    pub fn share(&self, instance: &MigProfile) -> Fraction {
        Fraction::clamped(f64::from(instance.slices) / f64::from(self.slices()))
    }

    /// Memory that no process can have.
    pub fn reserved(&self) -> MiB {
        self.kind.reserved()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gpu_of_the_simulator_can_be_emulated() {
        assert_eq!(Profile::all().len(), GPU_TYPES.len());
        for profile in Profile::all() {
            let memory = profile.kind.memory.0;
            assert!(profile.mig.iter().all(|instance| instance.memory < memory && instance.slices <= 7), "{}", profile.kind.name);
        }
    }
}
