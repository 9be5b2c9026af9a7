//! Which GPUs there are, and which of them training jobs can use.

use std::fmt;

use carma_core::{MiB, Watts};
use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;
use serde::Serialize;

use crate::compute_mode::ComputeAccess;
use crate::driver::{DeviceCall, Driver};
use crate::error::{DriverError, sensed};
use crate::identity::DeviceUuid;
use crate::pci::PciAddress;

/// What the driver knows of.
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
    /// The driver's number of it, in PCI order over all GPUs, those left out included: the one `nvidia-smi` shows.
    pub index: u32,
    /// Its UUID.
    pub uuid: DeviceUuid,
    /// Where it sits.
    pub pci: PciAddress,
    /// The product's name.
    pub name: String,
    /// Its whole memory.
    pub memory: MiB,
    /// What the driver keeps of it.
    pub reserved: MiB,
    /// CUDA compute capability.
    pub capability: Capability,
    /// Whether it is cut into MIG instances; unset: it cannot be.
    pub mig: Option<bool>,
    /// Who may open it.
    pub compute_mode: Option<ComputeAccess>,
    /// Whether a display is drawn by it.
    pub display: bool,
    /// The most power it may draw.
    pub power_limit: Option<Watts>,
    /// Whether the driver stays loaded without clients; without it the first call after a pause takes seconds.
    pub persistence: Option<bool>,
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

/// A GPU that is there and not used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// The driver's number of it.
    pub index: u32,
    /// Its name, where it still tells.
    pub name: Option<String>,
    /// Why.
    pub reason: Unfit,
}

/// Why a GPU is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    /// It is there to drive a display.
    DisplayOnly,
    /// Nobody may compute on it.
    ComputeProhibited,
    /// It fell off the bus, or needs a reset.
    Lost,
    /// It does not answer as it should.
    Silent(String),
}

impl Unfit {
    fn by(error: &DriverError) -> Self {
        match error {
            DriverError::Lost(_) | DriverError::Call { error: NvmlError::GpuLost | NvmlError::ResetRequired, .. } => Self::Lost,
            error => Self::Silent(error.to_string()),
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DisplayOnly => f.write_str("it is there to drive a display"),
            Self::ComputeProhibited => f.write_str("its compute mode is PROHIBITED"),
            Self::Lost => f.write_str("it fell off the bus or needs a reset"),
            Self::Silent(why) => f.write_str(why),
        }
    }
}

impl Driver {
    /// Looks at all GPUs. One that is sick does not keep the others from being seen.
    pub fn inventory(&self) -> Result<Inventory, DriverError> {
        let (driver, cuda, count) = self.system("nvmlSystemGetDriverVersion", |nvml| {
            let cuda = nvml.sys_cuda_driver_version()?;
            Ok((nvml.sys_driver_version()?, format!("{}.{}", cuda / 1000, cuda % 1000 / 10), nvml.device_count()?))
        })?;
        let mut gpus = Vec::new();
        let mut left_out = Vec::new();
        // All are asked at once, so that those that hang cost one deadline together.
        let ask = |index| self.begin_numbered(index, "nvmlDeviceGetHandleByIndex", move |device| describe(device, index));
        let begun: Vec<_> = (0..count).map(ask).collect();
        for (index, begun) in (0..).zip(begun) {
            match begun.and_then(DeviceCall::wait) {
                Ok(gpu) => gpus.push(gpu),
                Err(error) => left_out.push(LeftOut { index, name: None, reason: Unfit::by(&error) }),
            }
        }
        let largest = gpus.iter().map(|gpu| gpu.memory).max().unwrap_or_default();
        let (mut fit, mut unfit) = (Vec::new(), Vec::new());
        for gpu in gpus {
            match reason_against(&gpu, largest) {
                None => fit.push(gpu),
                Some(reason) => unfit.push(LeftOut { index: gpu.index, name: Some(gpu.name), reason }),
            }
        }
        left_out.append(&mut unfit);
        left_out.sort_by_key(|left_out| left_out.index);
        fit.sort_by_key(|gpu| gpu.pci);
        Ok(Inventory { driver, cuda, gpus: fit, left_out })
    }
}

fn describe(device: &Device<'_>, index: u32) -> Result<Gpu, NvmlError> {
    let memory = device.memory_info()?;
    let capability = device.cuda_compute_capability()?;
    Ok(Gpu {
        index,
        uuid: device.uuid()?.parse().map_err(|_| NvmlError::Unknown)?,
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
    })
}

/// Why training jobs should not use a GPU. A card that draws a screen is taken for a training card unless it is much smaller than the others.
fn reason_against(gpu: &Gpu, largest: MiB) -> Option<Unfit> {
    let small = gpu.memory.0 * 2 < largest.0;
    match gpu.compute_mode {
        Some(ComputeAccess::Prohibited) => Some(Unfit::ComputeProhibited),
        _ if gpu.name.contains("Display") || (gpu.display && small) => Some(Unfit::DisplayOnly),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str, memory: u64, display: bool) -> Gpu {
        Gpu {
            index: 0,
            uuid: "GPU-1".parse().unwrap(),
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
        }
    }

    #[test]
    fn cards_for_displays_are_left_out_and_workstation_cards_are_not() {
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
