//! Memory limits of control groups that the driver enforces (615 on, cgroup v2, root).

use std::path::Path;

use nvml_wrapper::error::NvmlError;

use crate::driver::Driver;
use crate::error::DriverError;
use crate::identity::DeviceUuid;
use crate::limit_calls::{GET, LimitedUse, MemoryLimits, SET, get, set};

impl Driver {
    /// Sets the memory limits of a control group on a GPU, and reads them back; [`MemoryLimits::NONE`] clears them. Needs root.
    pub fn set_memory_limits(&self, gpu: &DeviceUuid, group: &Path, limits: MemoryLimits) -> Result<(), DriverError> {
        let calls = self.limit_calls().ok_or(DriverError::NotSupported { call: SET })?;
        let group = group.to_owned();
        self.device(gpu, SET, move |device| {
            set(calls, device, &group, limits)?;
            let now = get(calls, device, &group)?.map_or(MemoryLimits::NONE, |found| found.limits);
            // A driver that takes limits and keeps others would give a false promise.
            if now == limits { Ok(()) } else { Err(NvmlError::Unknown) }
        })
    }

    /// The memory limits of a control group on a GPU, and its use; unset if it has none.
    pub fn memory_limits(&self, gpu: &DeviceUuid, group: &Path) -> Result<Option<LimitedUse>, DriverError> {
        let calls = self.limit_calls().ok_or(DriverError::NotSupported { call: GET })?;
        let group = group.to_owned();
        self.device(gpu, GET, move |device| get(calls, device, &group))
    }

    /// Whether the driver has memory limits for control groups on this GPU. The question changes nothing.
    pub fn limits_memory(&self, gpu: &DeviceUuid) -> bool {
        let answer = self.memory_limits(gpu, Path::new("/sys/fs/cgroup"));
        // If the folder is not a control group here, the driver looked for it: it has the call.
        matches!(answer, Ok(_) | Err(DriverError::Call { error: NvmlError::OperatingSystem, .. }))
    }
}
