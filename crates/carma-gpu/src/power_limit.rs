//! Power limits: the most that a GPU may draw.

use carma_core::Watts;
use serde::{Deserialize, Serialize};

use crate::driver::Driver;
use crate::error::{DriverError, offered};
use crate::identity::DeviceUuid;

impl Driver {
    /// The default limit of a GPU; unset if it has none.
    pub fn default_power_limit(&self, gpu: &DeviceUuid) -> Result<Option<Watts>, DriverError> {
        let limit =
            self.device(gpu, "nvmlDeviceGetPowerManagementDefaultLimit", |device| offered(device.power_management_limit_default()))?;
        Ok(limit.map(|milliwatts| Watts(f64::from(milliwatts) / 1000.0)))
    }

    /// The least and the most power limit that a GPU accepts.
    pub fn power_limit_range(&self, gpu: &DeviceUuid) -> Result<(Watts, Watts), DriverError> {
        let watts = |milliwatts: u32| Watts(f64::from(milliwatts) / 1000.0);
        self.limits_in_milliwatts(gpu).map(|(least, most)| (watts(least), watts(most)))
    }

    fn limits_in_milliwatts(&self, gpu: &DeviceUuid) -> Result<(u32, u32), DriverError> {
        self.device(gpu, "nvmlDeviceGetPowerManagementLimitConstraints", |device| {
            device.power_management_limit_constraints().map(|allowed| (allowed.min_limit, allowed.max_limit))
        })
    }

    fn power_limit(&self, gpu: &DeviceUuid) -> Result<u32, DriverError> {
        self.device(gpu, "nvmlDeviceGetPowerManagementLimit", |device| device.power_management_limit())
    }

    /// Needs root's rights.
    fn set_power_limit(&self, gpu: &DeviceUuid, milliwatts: u32) -> Result<(), DriverError> {
        self.device(gpu, "nvmlDeviceSetPowerManagementLimit", move |device| device.set_power_management_limit(milliwatts))
    }
}

/// A power limit that was set, and the limit before, in milliwatts: enough to restore it, by a later process too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[must_use = "the limit stays set until it is restored"]
pub struct PowerLimitChange {
    gpu: DeviceUuid,
    before: u32,
    set: u32,
}

impl PowerLimitChange {
    /// Reads the present limit of a GPU, for a change to this one or the nearest it accepts. Persist the result before it is
    /// [made](Self::make). In the end, the limit from before the earlier change is restored.
    pub fn plan(driver: &Driver, gpu: &DeviceUuid, limit: Watts, earlier: Option<&Self>) -> Result<Self, DriverError> {
        let (least, most) = driver.limits_in_milliwatts(gpu)?;
        let set = ((limit.0 * 1000.0) as u32).clamp(least, most);
        let before = earlier.map_or_else(|| driver.power_limit(gpu), |earlier| Ok(earlier.before))?;
        Ok(Self { gpu: gpu.clone(), before, set })
    }

    /// The GPU.
    pub const fn gpu(&self) -> &DeviceUuid {
        &self.gpu
    }

    /// The limit while it is set.
    pub fn limit(&self) -> Watts {
        Watts(f64::from(self.set) / 1000.0)
    }

    /// Whether the GPU has this limit now.
    pub fn is_in_force(&self, driver: &Driver) -> Result<bool, DriverError> {
        Ok(driver.power_limit(&self.gpu)? == self.set)
    }

    /// Sets the limit.
    pub fn make(&self, driver: &Driver) -> Result<(), DriverError> {
        if self.is_in_force(driver)? { Ok(()) } else { driver.set_power_limit(&self.gpu, self.set) }
    }

    /// Restores the former limit, unless it was changed by another program since.
    pub fn restore(&self, driver: &Driver) -> Result<(), DriverError> {
        if self.before == self.set || !self.is_in_force(driver)? {
            return Ok(());
        }
        driver.set_power_limit(&self.gpu, self.before)
    }
}
