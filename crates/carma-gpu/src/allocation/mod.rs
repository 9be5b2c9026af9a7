//! Which of the GPUs that the driver lists this process may use.
//!
//! ```text
//!  GPUs as NVML lists them ──────────────────┐
//!  device files that can be opened ──────────┼──► grants: all of a GPU, some of its MIG instances, or why it is excluded
//!  CUDA_VISIBLE_DEVICES, SLURM_JOB_GPUS ─────┘
//! ```
//!
//! Numbers count GPUs in the order of NVML, which is that of the PCI bus, of `nvidia-smi` and of Slurm. CUDA's own default order, fastest first,
//! differs from it only on machines with different kinds of GPUs, and is nowhere documented; so it is not imitated, and [`Allocation::warnings`]
//! says where it could matter. CUDA counts only the GPUs that it can open, and so do we.

mod device_file;
mod slurm;
mod visible;

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::identity::DeviceUuid;
pub use device_file::{FileAccess, open_device_file};
use slurm::SlurmGpus;
pub use visible::{Named, NamedGpu, NamedInstance, VisibleDevices};

/// The GPUs that the environment grants to this process. The default is all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allocation {
    visible: Option<VisibleDevices>,
    slurm: Option<SlurmGpus>,
    in_slurm_job: bool,
    by_pci_order: bool,
}

/// Limits on the GPUs that a [`crate::Driver`] shows. The default is none.
#[derive(Debug, Clone)]
pub struct Limits {
    /// From the environment.
    pub allocation: Allocation,
    /// Whether the device file with this minor number may be opened.
    pub file_access: fn(u32) -> FileAccess,
}

impl Default for Limits {
    fn default() -> Self {
        Self { allocation: Allocation::default(), file_access: |_| FileAccess::Granted }
    }
}

/// Why a GPU is not for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exclusion {
    /// Its device file cannot be opened.
    CannotBeOpened,
    /// Slurm gave it to another job, or to none.
    NotInSlurmJob,
    /// Slurm gave it to another step of the job, or to none.
    NotInSlurmStep,
    /// `CUDA_VISIBLE_DEVICES` does not name it.
    NotVisible,
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CannotBeOpened => "cannot be opened: permission denied",
            Self::NotInSlurmJob => "not in this Slurm job (SLURM_JOB_GPUS)",
            Self::NotInSlurmStep => "not in this Slurm step (SLURM_STEP_GPUS)",
            Self::NotVisible => "not in CUDA_VISIBLE_DEVICES",
        })
    }
}

/// A GPU as the driver lists it, with the facts that decide about its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) gpu: NamedGpu,
    pub(crate) file: FileAccess,
}

/// The usable part of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Grant {
    /// All of it, with all its present and later MIG instances.
    Whole,
    /// Some of its MIG instances.
    Instances(Vec<DeviceUuid>),
    /// Nothing.
    Excluded(Exclusion),
}

impl Allocation {
    /// From the variables of an environment.
    ///
    /// ```
    /// use carma_gpu::Allocation;
    /// assert_eq!(Allocation::from_variables(|_| None), Allocation::default());
    /// ```
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let visible = variable("CUDA_VISIBLE_DEVICES").map(|value| VisibleDevices::parse(&value));
        Self {
            slurm: SlurmGpus::read(&variable, visible.is_some()),
            visible,
            in_slurm_job: slurm::is_job(&variable),
            by_pci_order: variable("CUDA_DEVICE_ORDER").as_deref() == Some("PCI_BUS_ID"),
        }
    }

    /// The allocation of this process.
    pub fn of_process() -> Self {
        // A value that is no text names no GPU; it is not the same as no value.
        Self::from_variables(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// The usable part of each GPU that the driver lists.
    pub(crate) fn grants(&self, listed: &[Listed]) -> Vec<Grant> {
        let openable: Vec<usize> = (0..listed.len()).filter(|gpu| listed[*gpu].file == FileAccess::Granted).collect();
        let of_slurm = self.slurm.as_ref().and_then(|slurm| self.slurm_places(slurm, listed, &openable));
        let counted = match &of_slurm {
            Some(places) if self.counts_within(places) => openable.iter().copied().filter(|gpu| places.contains(gpu)).collect(),
            _ => openable,
        };
        let visible = self.visible.as_ref().map(|visible| {
            let gpus: Vec<NamedGpu> = counted.iter().map(|gpu| listed[*gpu].gpu.clone()).collect();
            let named = visible.resolve(&gpus).into_iter();
            named.map(|named| Named { gpu: counted[named.gpu], ..named }).collect::<Vec<_>>()
        });
        let grant = |(place, Listed { gpu, file }): (usize, &Listed)| match (&self.slurm, &of_slurm, &visible) {
            _ if *file == FileAccess::Refused => Grant::Excluded(Exclusion::CannotBeOpened),
            (Some(slurm), Some(places), _) if !places.contains(&place) => Grant::Excluded(slurm.otherwise),
            (_, _, Some(named)) => visible_part(gpu, named.iter().filter(|named| named.gpu == place)),
            _ => Grant::Whole,
        };
        listed.iter().enumerate().map(grant).collect()
    }

    /// The places of the GPUs that Slurm gave us; unset if its numbers need not or cannot be compared with the driver's.
    fn slurm_places(&self, slurm: &SlurmGpus, listed: &[Listed], openable: &[usize]) -> Option<BTreeSet<usize>> {
        // A device cgroup leaves us exactly the GPUs that Slurm gave us. If it hides the others from NVML too, NVML's numbers are not Slurm's.
        let by_cgroup = slurm.numbers.len() == openable.len();
        // Slurm numbers instances along with GPUs, in its own order; but it names them by their UUIDs in CUDA_VISIBLE_DEVICES.
        let by_uuid = matches!(self.visible, Some(VisibleDevices::Instances(_)));
        let numbers_differ = listed.iter().any(|listed| !listed.gpu.instances.is_empty());
        if by_cgroup || by_uuid {
            return None;
        }
        let comparable = |number: &usize| !numbers_differ && *number < listed.len();
        Some(slurm.numbers.iter().copied().filter(comparable).collect())
    }

    /// Whether numbers in `CUDA_VISIBLE_DEVICES` count these GPUs from 0: with `ConstrainDevices` Slurm writes `0,1` for every job with two GPUs.
    fn counts_within(&self, places: &BTreeSet<usize>) -> bool {
        let Some(VisibleDevices::Numbers(numbers)) = &self.visible else { return false };
        !numbers.iter().all(|number| places.contains(number)) && numbers.iter().all(|number| *number < places.len())
    }

    /// Warnings about the reading of the environment, on a machine with these kinds of GPUs; `used`: any of them is used.
    pub(crate) fn warnings_among(&self, mut kinds: Vec<&str>, used: bool) -> Vec<String> {
        kinds.sort_unstable();
        kinds.dedup();
        let by_number = matches!(&self.visible, Some(VisibleDevices::Numbers(numbers)) if !numbers.is_empty());
        let order = (by_number && kinds.len() > 1 && !self.by_pci_order).then_some(
            "numbers in CUDA_VISIBLE_DEVICES are read in the order of nvidia-smi, and CUDA may count different kinds of GPUs in another: \
             use UUIDs, or set CUDA_DEVICE_ORDER=PCI_BUS_ID",
        );
        let unnamed = (self.in_slurm_job && self.slurm.is_none() && self.visible.is_none() && used).then_some(
            "this Slurm job names no GPUs (neither SLURM_JOB_GPUS nor CUDA_VISIBLE_DEVICES is set): all GPUs that can be opened are used",
        );
        order.into_iter().chain(unnamed).map(str::to_owned).collect()
    }
}

/// The part of a GPU that its entries grant. A number or a GPU's UUID means the GPU with all its instances: we may partition it ourselves.
fn visible_part<'a>(gpu: &NamedGpu, named: impl Iterator<Item = &'a Named>) -> Grant {
    let parts: Vec<Option<&NamedInstance>> = named.map(|named| named.instance.and_then(|instance| gpu.instances.get(instance))).collect();
    match parts.iter().copied().collect::<Option<Vec<_>>>() {
        Some(instances) if instances.is_empty() => Grant::Excluded(Exclusion::NotVisible),
        Some(instances) => Grant::Instances(instances.into_iter().map(|instance| instance.uuid.clone()).collect()),
        None => Grant::Whole,
    }
}

#[cfg(test)]
mod tests;
