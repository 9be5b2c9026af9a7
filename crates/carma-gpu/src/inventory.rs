//! The GPUs of the machine, and those that training jobs can use.

use std::fmt;

use carma_core::{MiB, Watts};
use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;
use serde::Serialize;

use crate::allocation::{Allocation, Exclusion, FileAccess, Grant, Listed, NamedGpu};
use crate::compute_mode::ComputeAccess;
use crate::driver::{DeviceCall, Driver};
use crate::error::{DriverError, sensed};
use crate::identity::DeviceUuid;
use crate::left_out::{LeftOut, Unfit};
use crate::mig::named_instances;
use crate::pci::PciAddress;

/// The GPUs in the driver.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inventory {
    /// The driver's version.
    pub driver: String,
    /// The CUDA version it serves, as `12.4`.
    pub cuda: String,
    /// GPUs for training, in the order of their PCI addresses.
    pub gpus: Vec<Gpu>,
    /// GPUs that are there and not used.
    pub left_out: Vec<LeftOut>,
}

/// A GPU for training.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gpu {
    /// The driver's index, in PCI order over all GPUs, including those left out: the one in `nvidia-smi`.
    pub index: u32,
    /// Its UUID.
    pub uuid: DeviceUuid,
    /// The number of its device file `/dev/nvidiaN`, if the driver reports it.
    pub file: Option<u32>,
    /// Its PCI address.
    pub pci: PciAddress,
    /// The product's name.
    pub name: String,
    /// Its whole memory.
    pub memory: MiB,
    /// The part of it that the driver reserves.
    pub reserved: MiB,
    /// CUDA compute capability.
    pub capability: Capability,
    /// Whether it is in MIG mode; unset: it does not support MIG.
    pub mig: Option<bool>,
    /// Its compute mode.
    pub compute_mode: Option<ComputeAccess>,
    /// Whether it drives a display.
    pub display: bool,
    /// The most power it may draw.
    pub power_limit: Option<Watts>,
    /// Whether the driver stays loaded without clients; without it the first call after a pause takes seconds.
    pub persistence: Option<bool>,
    /// Its usable MIG instances; unset: all of it.
    pub usable_instances: Option<Vec<DeviceUuid>>,
}

impl Gpu {
    /// Whether one of its MIG instances may be used.
    pub fn may_use(&self, instance: &DeviceUuid) -> bool {
        self.usable_instances.as_ref().is_none_or(|usable| usable.contains(instance))
    }
}

/// A CUDA compute capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Capability {
    /// Before the point.
    pub major: i32,
    /// After it.
    pub minor: i32,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The answer of a GPU.
enum Answer {
    /// It is described.
    Described(Box<Gpu>, NamedGpu),
    /// Its device file cannot be opened.
    Refused { uuid: Option<DeviceUuid>, name: Option<String> },
}

impl Driver {
    /// Reads all GPUs. A failing GPU does not hide the others; GPUs that this process may not use are left out.
    pub fn inventory(&self) -> Result<Inventory, DriverError> {
        let (driver, cuda, count) = self.system("nvmlSystemGetDriverVersion", |nvml| {
            let cuda = nvml.sys_cuda_driver_version()?;
            Ok((nvml.sys_driver_version()?, format!("{}.{}", cuda / 1000, cuda % 1000 / 10), nvml.device_count()?))
        })?;
        // All are queried in parallel, so that hanging GPUs cost one deadline together.
        let file_access = self.limits().file_access;
        let ask = |index| self.begin_numbered(index, "nvmlDeviceGetHandleByIndex", move |device| answer(device, index, file_access));
        let calls: Vec<_> = (0..count).map(ask).collect();
        let answers: Vec<_> = calls.into_iter().map(|call| call.and_then(DeviceCall::wait)).collect();
        let grants = self.limits().allocation.grants(&answers.iter().map(listed).collect::<Vec<_>>());
        let memory =
            |answer: &Result<Answer, DriverError>| if let Ok(Answer::Described(gpu, _)) = answer { Some(gpu.memory) } else { None };
        let largest = answers.iter().filter_map(memory).max().unwrap_or_default();
        let (mut gpus, mut left_out) = (Vec::new(), Vec::new());
        for ((index, answer), grant) in (0..).zip(answers).zip(grants) {
            match fit(index, answer, grant, largest) {
                Ok(gpu) => gpus.push(gpu),
                Err(unfit) => left_out.push(unfit),
            }
        }
        gpus.sort_by_key(|gpu| gpu.pci);
        Ok(Inventory { driver, cuda, gpus, left_out })
    }
}

fn answer(device: &Device<'_>, index: u32, file_access: fn(u32) -> FileAccess) -> Result<Answer, NvmlError> {
    // If the driver does not report which file is the GPU's, it counts as granted.
    if sensed(device.minor_number())?.is_some_and(|minor| file_access(minor) == FileAccess::Refused) {
        return Ok(Answer::Refused { uuid: device.uuid().ok().and_then(|uuid| uuid.parse().ok()), name: device.name().ok() });
    }
    let gpu = describe(device, index)?;
    let instances = if gpu.mig == Some(true) { named_instances(device) } else { Vec::new() };
    let named = NamedGpu { uuid: Some(gpu.uuid.clone()), instances };
    Ok(Answer::Described(Box::new(gpu), named))
}

/// The facts that decide whether we may use a GPU.
fn listed(answer: &Result<Answer, DriverError>) -> Listed {
    let refused = Listed { gpu: NamedGpu::default(), file: FileAccess::Refused };
    match answer {
        Ok(Answer::Described(_, named)) => Listed { gpu: named.clone(), file: FileAccess::Granted },
        Ok(Answer::Refused { .. }) | Err(DriverError::NoPermission { .. }) => refused,
        Err(_) => Listed { gpu: NamedGpu::default(), file: FileAccess::Granted },
    }
}

/// A GPU for training, or why it is none.
fn fit(index: u32, answer: Result<Answer, DriverError>, grant: Grant, largest: MiB) -> Result<Gpu, LeftOut> {
    let gpu = match answer {
        Ok(Answer::Described(gpu, _)) => *gpu,
        Ok(Answer::Refused { uuid, name }) => {
            return Err(LeftOut { index, uuid, name, reason: Unfit::Excluded(Exclusion::CannotBeOpened) });
        }
        Err(error) => return Err(LeftOut { index, uuid: None, name: None, reason: Unfit::by(&error) }),
    };
    let (reason, usable_instances) = match grant {
        Grant::Excluded(why) => (Some(Unfit::Excluded(why)), None),
        Grant::Whole => (reason_against(&gpu, largest), None),
        Grant::Instances(instances) => (reason_against(&gpu, largest), Some(instances)),
    };
    match reason {
        None => Ok(Gpu { usable_instances, ..gpu }),
        Some(reason) => Err(LeftOut { index, uuid: Some(gpu.uuid), name: Some(gpu.name), reason }),
    }
}

fn describe(device: &Device<'_>, index: u32) -> Result<Gpu, NvmlError> {
    let memory = device.memory_info()?;
    let capability = device.cuda_compute_capability()?;
    Ok(Gpu {
        index,
        uuid: device.uuid()?.parse().map_err(|_| NvmlError::Unknown)?,
        file: sensed(device.minor_number())?,
        pci: device.pci_info()?.bus_id.parse().map_err(|_| NvmlError::GetPciInfoFailed)?,
        name: device.name()?,
        memory: MiB(memory.total >> 20),
        reserved: MiB(memory.reserved >> 20),
        capability: Capability { major: capability.major, minor: capability.minor },
        mig: sensed(device.mig_mode())?.map(|mode| mode.current != 0),
        compute_mode: sensed(device.compute_mode())?.map(ComputeAccess::from),
        display: sensed(device.is_display_active())?.unwrap_or(false),
        power_limit: sensed(device.enforced_power_limit())?.map(|milliwatts| Watts(f64::from(milliwatts) / 1000.0)),
        persistence: sensed(device.is_in_persistent_mode())?,
        usable_instances: None,
    })
}

/// Why training jobs should not use a GPU. A card with a display counts as a training card unless it is much smaller than the others.
fn reason_against(gpu: &Gpu, largest: MiB) -> Option<Unfit> {
    let small = gpu.memory.0 * 2 < largest.0;
    match gpu.compute_mode {
        Some(ComputeAccess::Prohibited) => Some(Unfit::ComputeProhibited),
        _ if gpu.name.contains("Display") || (gpu.display && small) => Some(Unfit::DisplayOnly),
        _ => None,
    }
}

impl Allocation {
    /// Warnings about the reading of the environment.
    pub fn warnings(&self, inventory: &Inventory) -> Vec<String> {
        let used = inventory.gpus.iter().map(|gpu| gpu.name.as_str());
        let left_out = inventory.left_out.iter().filter_map(|left_out| left_out.name.as_deref());
        self.warnings_among(used.chain(left_out).collect(), !inventory.gpus.is_empty())
    }
}

impl Inventory {
    /// Which GPUs are not used by choice, or not all of, in a line for each reason.
    ///
    /// ```
    /// # let gpu = |index| carma_gpu::LeftOut { index, uuid: None, name: None, reason: carma_gpu::Unfit::DisplayOnly };
    /// # let left_out = vec![gpu(2), gpu(5), gpu(6)];
    /// # let inventory = carma_gpu::Inventory { driver: String::new(), cuda: String::new(), gpus: Vec::new(), left_out };
    /// assert_eq!(inventory.exclusions(), ["GPUs 2, 5 and 6 are not used: for a display only"]);
    /// ```
    pub fn exclusions(&self) -> Vec<String> {
        let parts = self.gpus.iter().filter(|gpu| gpu.usable_instances.is_some());
        let parts = parts.map(|gpu| format!("GPU {} is used in part: its other MIG instances are {}", gpu.index, Exclusion::NotVisible));
        self.not_used(|reason| !reason.is_fault()).chain(parts).collect()
    }

    /// Which GPUs cannot be used because they or their driver are broken, in a line for each reason.
    pub fn failures(&self) -> Vec<String> {
        self.not_used(Unfit::is_fault).collect()
    }

    fn not_used(&self, which: impl Fn(&Unfit) -> bool) -> impl Iterator<Item = String> {
        let mut reasons: Vec<(&Unfit, Vec<String>)> = Vec::new();
        for LeftOut { index, reason, .. } in self.left_out.iter().filter(|left_out| which(&left_out.reason)) {
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, numbers)) => numbers.push(index.to_string()),
                None => reasons.push((reason, vec![index.to_string()])),
            }
        }
        reasons.into_iter().map(|(reason, numbers)| format!("{} not used: {reason}", subject(&numbers)))
    }
}

/// `GPU 2 is`, `GPUs 2, 5 and 6 are`.
fn subject(numbers: &[String]) -> String {
    match numbers {
        [only] => format!("GPU {only} is"),
        [others @ .., last] => format!("GPUs {} and {last} are", others.join(", ")),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str, memory: u64, display: bool) -> Gpu {
        Gpu {
            index: 0,
            uuid: "GPU-1".parse().unwrap(),
            file: Some(0),
            pci: "0000:07:00.0".parse().unwrap(),
            name: name.to_owned(),
            memory: MiB(memory),
            reserved: MiB::ZERO,
            capability: Capability { major: 8, minor: 0 },
            mig: None,
            compute_mode: Some(ComputeAccess::Shared),
            display,
            power_limit: None,
            persistence: None,
            usable_instances: None,
        }
    }

    #[test]
    fn display_cards_are_excluded_and_workstation_cards_are_not() {
        let largest = MiB(81_920);
        assert_eq!(reason_against(&gpu("NVIDIA A100-SXM4-80GB", 81_920, false), largest), None);
        assert_eq!(reason_against(&gpu("NVIDIA DGX Display", 4_096, false), largest), Some(Unfit::DisplayOnly));
        assert_eq!(reason_against(&gpu("NVIDIA T400", 4_096, true), largest), Some(Unfit::DisplayOnly));
        // The only card of a workstation draws the screen and trains.
        assert_eq!(reason_against(&gpu("NVIDIA GeForce RTX 4090", 24_576, true), MiB(24_576)), None);
        let closed = Gpu { compute_mode: Some(ComputeAccess::Prohibited), ..gpu("NVIDIA A100-SXM4-80GB", 81_920, false) };
        assert_eq!(reason_against(&closed, largest), Some(Unfit::ComputeProhibited));
    }
}
