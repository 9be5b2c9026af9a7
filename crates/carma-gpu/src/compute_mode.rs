//! Compute modes: how many processes may open a GPU.

use nvml_wrapper::enum_wrappers::device::ComputeMode;
use serde::{Deserialize, Serialize};

use crate::driver::Driver;
use crate::error::DriverError;
use crate::identity::DeviceUuid;

/// Which processes may open a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComputeAccess {
    /// Any number of processes.
    Shared,
    /// One process: the recommended mode for MPS, so that only its server opens the GPU.
    ExclusiveProcess,
    /// No process.
    Prohibited,
}

impl From<ComputeMode> for ComputeAccess {
    fn from(mode: ComputeMode) -> Self {
        match mode {
            ComputeMode::Default => Self::Shared,
            ComputeMode::ExclusiveThread | ComputeMode::ExclusiveProcess => Self::ExclusiveProcess,
            ComputeMode::Prohibited => Self::Prohibited,
        }
    }
}

impl From<ComputeAccess> for ComputeMode {
    fn from(access: ComputeAccess) -> Self {
        match access {
            ComputeAccess::Shared => Self::Default,
            ComputeAccess::ExclusiveProcess => Self::ExclusiveProcess,
            ComputeAccess::Prohibited => Self::Prohibited,
        }
    }
}

impl Driver {
    /// The compute mode of a GPU.
    pub fn compute_mode(&self, gpu: &DeviceUuid) -> Result<ComputeAccess, DriverError> {
        self.device(gpu, "nvmlDeviceGetComputeMode", |device| device.compute_mode()).map(Into::into)
    }

    /// Sets the compute mode of a GPU, which needs root's rights.
    pub fn set_compute_mode(&self, gpu: &DeviceUuid, mode: ComputeAccess) -> Result<(), DriverError> {
        self.device(gpu, "nvmlDeviceSetComputeMode", move |device| device.set_compute_mode(mode.into()))
    }
}

/// A compute mode that was set, and the mode before: enough to restore it, by a later process too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[must_use = "the mode stays set until it is restored"]
pub struct ComputeModeChange {
    gpu: DeviceUuid,
    before: ComputeAccess,
    set: ComputeAccess,
}

impl ComputeModeChange {
    /// Reads the present mode of a GPU, for a change to this one. Persist the result before it is [made](Self::make).
    pub fn plan(driver: &Driver, gpu: &DeviceUuid, mode: ComputeAccess) -> Result<Self, DriverError> {
        Ok(Self { gpu: gpu.clone(), before: driver.compute_mode(gpu)?, set: mode })
    }

    /// Sets the mode.
    pub fn make(&self, driver: &Driver) -> Result<(), DriverError> {
        if self.before == self.set { Ok(()) } else { driver.set_compute_mode(&self.gpu, self.set) }
    }

    /// Restores the former mode, unless it was changed by another program since.
    pub fn restore(&self, driver: &Driver) -> Result<(), DriverError> {
        if self.before == self.set || driver.compute_mode(&self.gpu)? != self.set {
            return Ok(());
        }
        driver.set_compute_mode(&self.gpu, self.before)
    }
}
