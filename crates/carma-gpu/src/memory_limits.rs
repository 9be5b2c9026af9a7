//! Memory limits of control groups that the driver enforces (615 on, cgroup v2, root). nvml-wrapper does not have these calls yet.

#![expect(unsafe_code, reason = "NVML is a C interface")]

use std::ffi::{CString, OsStr, c_char, c_ulonglong};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libloading::Library;
use nvml_wrapper::Device;
use nvml_wrapper::error::{NvmlError, nvml_try};
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use crate::driver::Driver;
use crate::error::DriverError;
use crate::identity::DeviceUuid;

const SET: &str = "nvmlDeviceSetMemoryLimits_v1";
const GET: &str = "nvmlDeviceGetMemoryLimits_v1";
/// The value for no hard limit.
const NONE: u64 = u64::MAX;

/// The memory limits of a control group on a GPU, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Guaranteed. Memory above it is borrowed: the driver may evict the group for another that is below its own.
    pub soft: u64,
    /// Never exceeded: an allocation beyond it fails. Unset: no limit.
    pub hard: Option<u64>,
}

impl MemoryLimits {
    /// Limits that limit nothing: setting them clears those before.
    pub const NONE: Self = Self { soft: 0, hard: None };
}

/// The limits of a group, and the bytes that it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitedUse {
    /// The limits.
    pub limits: MemoryLimits,
    /// The bytes in use.
    pub used: u64,
}

impl LimitedUse {
    /// Bytes above the soft limit.
    pub const fn borrowed(&self) -> u64 {
        self.used.saturating_sub(self.limits.soft)
    }
}

/// `nvmlSetMemoryLimits_v1_t`.
#[repr(C)]
struct SetLimits {
    group: *const c_char,
    soft: c_ulonglong,
    hard: c_ulonglong,
}

/// `nvmlGetMemoryLimits_v1_t`.
#[repr(C)]
struct GetLimits {
    group: *const c_char,
    soft: c_ulonglong,
    hard: c_ulonglong,
    used: c_ulonglong,
}

/// The calls, as far as the library has them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calls {
    set: unsafe extern "C" fn(nvmlDevice_t, *mut SetLimits) -> nvmlReturn_t,
    get: unsafe extern "C" fn(nvmlDevice_t, *mut GetLimits) -> nvmlReturn_t,
}

impl Calls {
    /// Looks the calls up in the library at this path, which is loaded already.
    pub(crate) fn find(library: &OsStr) -> Option<Self> {
        // SAFETY: the library was loaded before, so nothing of it runs now; it is never unloaded, so its functions stay.
        unsafe {
            let library: &'static Library = Box::leak(Box::new(Library::new(library).ok()?));
            Some(Self { set: *library.get(SET.as_bytes()).ok()?, get: *library.get(GET.as_bytes()).ok()? })
        }
    }
}

fn text(group: &Path) -> Result<CString, NvmlError> {
    CString::new(group.as_os_str().as_bytes()).map_err(|_| NvmlError::InvalidArg)
}

fn set(calls: Calls, device: &Device<'_>, group: &Path, limits: MemoryLimits) -> Result<(), NvmlError> {
    let group = text(group)?;
    let mut given = SetLimits { group: group.as_ptr(), soft: limits.soft, hard: limits.hard.unwrap_or(NONE) };
    // SAFETY: the structure is the header's, and the text lives until the call returns.
    nvml_try(unsafe { (calls.set)(device.handle(), &raw mut given) })
}

fn get(calls: Calls, device: &Device<'_>, group: &Path) -> Result<Option<LimitedUse>, NvmlError> {
    let group = text(group)?;
    let mut found = GetLimits { group: group.as_ptr(), soft: 0, hard: 0, used: 0 };
    // SAFETY: as above.
    match nvml_try(unsafe { (calls.get)(device.handle(), &raw mut found) }) {
        Ok(()) => {
            let limits = MemoryLimits { soft: found.soft, hard: (found.hard != NONE).then_some(found.hard) };
            Ok(Some(LimitedUse { limits, used: found.used }))
        }
        Err(NvmlError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_borrows_what_is_above_its_soft_limit() {
        let used = |used| LimitedUse { limits: MemoryLimits { soft: 4 << 30, hard: None }, used }.borrowed();
        assert_eq!([used(3 << 30), used(4 << 30), used(5 << 30)], [0, 0, 1 << 30]);
    }
}
