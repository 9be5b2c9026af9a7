//! The driver's facts about each kind of GPU, as data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use carma_core::{Fraction, MiB};
use carma_sim::{GPU_TYPES, GpuType};
use serde::Deserialize;

/// Source of a GPU's profiling counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profiling {
    /// NVML itself.
    Gpm,
    /// DCGM.
    Dcgm,
    /// No source.
    None,
}

/// A kind of GPU as its driver describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Memory, bandwidth and power.
    pub kind: &'static GpuType,
    /// Other facts.
    pub facts: Facts,
    /// Its MIG profiles; none: no MIG.
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
    /// Source of its counters.
    pub profiling: Profiling,
    /// Whether its memory has ECC.
    #[serde(default)]
    pub ecc: bool,
    /// Whether it has its own fan.
    #[serde(default)]
    pub fan: bool,
    #[serde(default)]
    mig: Option<String>,
}

/// A kind of MIG instance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigProfile {
    /// Its usual name: `1g.5gb`.
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
    /// Its memory slices.
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
    /// All GPUs that can be emulated, in the order of the simulator's GPU types.
    pub fn all() -> &'static [Self] {
        &PROFILES
    }

    /// The index of a kind of GPU in [`Profile::all`].
    pub fn place(kind: &GpuType) -> usize {
        GPU_TYPES.iter().position(|other| other == kind).unwrap_or_default()
    }

    /// Its compute slices: those of its largest instance.
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
