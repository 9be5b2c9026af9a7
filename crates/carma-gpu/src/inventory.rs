//! Which GPUs there are, and which of them training jobs can use.

use std::fmt;
use std::str::FromStr;

use carma_core::{MiB, Watts};
use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;
use serde::Serialize;
use thiserror::Error;

use crate::compute_mode::ComputeAccess;
use crate::driver::{DeviceCall, Driver};
use crate::error::{DriverError, sensed};
use crate::identity::DeviceUuid;

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
    /// It does not answer as it should.
    Silent(String),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DisplayOnly => f.write_str("it is there to drive a display"),
            Self::ComputeProhibited => f.write_str("its compute mode is PROHIBITED"),
            Self::Silent(why) => f.write_str(why),
        }
    }
}

/// Where a GPU sits: domain, bus, device, function.
///
/// ```
/// use carma_gpu::PciAddress;
/// let address: PciAddress = "00000000:07:00.0".parse().unwrap();
/// assert_eq!(address, "0000:07:00.0".parse().unwrap());
/// assert_eq!(address.to_string(), "0000:07:00.0");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// A text that is no PCI address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is no PCI address: one looks like 0000:07:00.0")]
pub struct NotAnAddress(String);

impl FromStr for PciAddress {
    type Err = NotAnAddress;
    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let parse = || {
            let (rest, function) = text.rsplit_once('.')?;
            let mut parts = rest.split(':');
            let domain = u32::from_str_radix(parts.next()?, 16).ok()?;
            let (bus, device) = (u8::from_str_radix(parts.next()?, 16).ok()?, u8::from_str_radix(parts.next()?, 16).ok()?);
            parts.next().is_none().then_some(Self { domain, bus, device, function: function.parse().ok()? })
        };
        parse().ok_or_else(|| NotAnAddress(text.to_owned()))
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{}", self.domain, self.bus, self.device, self.function)
    }
}

impl From<PciAddress> for String {
    fn from(address: PciAddress) -> Self {
        address.to_string()
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
        let begun: Vec<_> = (0..count).map(|index| self.begin_numbered(index, "nvmlDeviceGetHandleByIndex", describe)).collect();
        for (index, begun) in (0..).zip(begun) {
            match begun.and_then(DeviceCall::wait) {
                Ok(gpu) => gpus.push((index, gpu)),
                Err(error) => left_out.push(LeftOut { index, name: None, reason: Unfit::Silent(error.to_string()) }),
            }
        }
        let largest = gpus.iter().map(|(_, gpu)| gpu.memory).max().unwrap_or_default();
        let (fit, unfit): (Vec<_>, Vec<_>) =
            gpus.into_iter().map(|(index, gpu)| (index, unfit(&gpu, largest), gpu)).partition(|(_, unfit, _)| unfit.is_none());
        left_out
            .extend(unfit.into_iter().filter_map(|(index, reason, gpu)| Some(LeftOut { index, name: Some(gpu.name), reason: reason? })));
        left_out.sort_by_key(|left_out| left_out.index);
        let mut gpus: Vec<Gpu> = fit.into_iter().map(|(_, _, gpu)| gpu).collect();
        gpus.sort_by_key(|gpu| gpu.pci);
        Ok(Inventory { driver, cuda, gpus, left_out })
    }
}

fn describe(device: &Device<'_>) -> Result<Gpu, NvmlError> {
    let memory = device.memory_info()?;
    let capability = device.cuda_compute_capability()?;
    Ok(Gpu {
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
fn unfit(gpu: &Gpu, largest: MiB) -> Option<Unfit> {
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
        assert_eq!(unfit(&gpu("NVIDIA A100-SXM4-80GB", 81_920, false), largest), None);
        assert_eq!(unfit(&gpu("NVIDIA DGX Display", 4_096, false), largest), Some(Unfit::DisplayOnly));
        assert_eq!(unfit(&gpu("NVIDIA T400", 4_096, true), largest), Some(Unfit::DisplayOnly));
        // The only card of a workstation draws the screen and trains.
        assert_eq!(unfit(&gpu("NVIDIA GeForce RTX 4090", 24_576, true), MiB(24_576)), None);
        let closed = Gpu { compute_mode: Some(ComputeAccess::Prohibited), ..gpu("NVIDIA A100-SXM4-80GB", 81_920, false) };
        assert_eq!(unfit(&closed, largest), Some(Unfit::ComputeProhibited));
    }

    #[test]
    fn addresses_sort_by_bus() {
        let address = |text: &str| text.parse::<PciAddress>().unwrap();
        assert!(address("00000000:07:00.0") < address("00000000:0F:00.0") && address("00000000:B7:00.0") < address("00000001:07:00.0"));
        assert!(["", "07:00.0", "0000:07:00", "0000:07:00:00.0", "0000:0g:00.0"].iter().all(|bad| bad.parse::<PciAddress>().is_err()));
    }
}
