//! The calls about memory limits of control groups, made safe. nvml-wrapper does not have them yet.

#![expect(unsafe_code, reason = "NVML is a C interface")]

use std::ffi::{CString, OsStr, c_char, c_ulonglong};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libloading::Library;
use nvml_wrapper::Device;
use nvml_wrapper::error::{NvmlError, nvml_try};
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

pub(crate) const SET: &str = "nvmlDeviceSetMemoryLimits_v1";
pub(crate) const GET: &str = "nvmlDeviceGetMemoryLimits_v1";
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

pub(crate) fn set(calls: Calls, device: &Device<'_>, group: &Path, limits: MemoryLimits) -> Result<(), NvmlError> {
    let group = text(group)?;
    let mut given = SetLimits { group: group.as_ptr(), soft: limits.soft, hard: limits.hard.unwrap_or(NONE) };
    // SAFETY: the structure is the header's, and the text lives until the call returns.
    nvml_try(unsafe { (calls.set)(device.handle(), &raw mut given) })
}

pub(crate) fn get(calls: Calls, device: &Device<'_>, group: &Path) -> Result<Option<LimitedUse>, NvmlError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_borrows_memory_above_its_soft_limit() {
        let used = |used| LimitedUse { limits: MemoryLimits { soft: 4 << 30, hard: None }, used }.borrowed();
        assert_eq!([used(3 << 30), used(4 << 30), used(5 << 30)], [0, 0, 1 << 30]);
    }
}
