//! Memory limits of control groups (driver 615 on).

use std::ffi::{CStr, c_char, c_ulonglong};
use std::path::{Path, PathBuf};

use nvml_wrapper_sys::bindings::nvmlDevice_t;
use rustix::fs::statfs;

use super::answer::{Answer, Code, finish, of_gpu, of_gpu_as_root};
use super::declare::calls;
use crate::driver_version::DriverVersion;
use crate::state::{MAX_GROUP, MemoryLimits, NO_HARD_LIMIT, Place, State};

/// The file systems of control groups. NVIDIA's driver takes version 2 only; version 1 lets the emulation run on older hosts.
const FILESYSTEMS: [rustix::fs::FsWord; 2] = [0x6367_7270, 0x0027_e0eb];

/// `nvmlSetMemoryLimits_v1_t` of nvml.h 13.4.
#[repr(C)]
pub struct SetMemoryLimits {
    group: *const c_char,
    soft: c_ulonglong,
    hard: c_ulonglong,
}

/// `nvmlGetMemoryLimits_v1_t` of nvml.h 13.4.
#[repr(C)]
pub struct GetMemoryLimits {
    group: *const c_char,
    soft: c_ulonglong,
    hard: c_ulonglong,
    used: c_ulonglong,
}

/// An older driver does not have the function.
fn supported(state: &State<'_>) -> Answer<()> {
    let version = DriverVersion::from_number(state.header.driver);
    if version.limits_memory() { Ok(()) } else { Err(Code::FUNCTION_NOT_FOUND) }
}

/// The group at a path of the caller.
unsafe fn group(path: *const c_char) -> Answer<PathBuf> {
    if path.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's text ends with a zero.
    let path = Path::new(unsafe { CStr::from_ptr(path) }.to_str().map_err(|_| Code::INVALID_ARGUMENT)?);
    let is_group = statfs(path).is_ok_and(|found| FILESYSTEMS.contains(&found.f_type)) && path.join("cgroup.procs").exists();
    let fits = path.as_os_str().len() < MAX_GROUP;
    if is_group && fits { Ok(path.to_owned()) } else { Err(Code::OPERATING_SYSTEM) }
}

fn set(state: &mut State<'_>, gpu: usize, group: &Path, limits: MemoryLimits) -> Answer<()> {
    let total = state.memory(Place::gpu(gpu)).total;
    let exceeds = |limit: u64| limit > total;
    if limits.soft > limits.hard || exceeds(limits.soft) || (limits.hard != NO_HARD_LIMIT && exceeds(limits.hard)) {
        return Err(Code::INVALID_ARGUMENT);
    }
    state.set_memory_limits(gpu, group, limits).map_err(|_| Code::UNKNOWN)
}

calls! {
    fn nvmlDeviceSetMemoryLimits_v1(device: nvmlDevice_t, given: *mut SetMemoryLimits) {
        let given = given.as_ref().ok_or(Code::INVALID_ARGUMENT);
        finish(of_gpu_as_root(CALL, device, |state, gpu| {
            supported(state)?;
            let given = given?;
            set(state, gpu, &group(given.group)?, MemoryLimits { soft: given.soft, hard: given.hard })
        }))
    }

    fn nvmlDeviceGetMemoryLimits_v1(device: nvmlDevice_t, out: *mut GetMemoryLimits) {
        let out = out.as_mut().ok_or(Code::INVALID_ARGUMENT);
        finish(of_gpu(CALL, device, |state, gpu| {
            supported(state)?;
            let out = out?;
            let group = group(out.group)?;
            let limits = state.memory_limits(gpu, &group).ok_or(Code::NOT_FOUND)?;
            (out.soft, out.hard, out.used) = (limits.soft, limits.hard, state.used_by_group(gpu, &group));
            Ok(())
        }))
    }
}
