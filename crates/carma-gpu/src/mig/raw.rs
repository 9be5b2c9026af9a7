//! The calls about instances that nvml-wrapper lacks, made safe. No handle of an instance leaves this file: they are found by number.

#![expect(unsafe_code, reason = "NVML is a C interface")]

use std::ffi::c_uint;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use nvml_wrapper::Device;
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper_sys::bindings::{
    NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, NVML_COMPUTE_INSTANCE_PROFILE_COUNT, nvmlComputeInstance_t,
    nvmlComputeInstanceProfileInfo_t, nvmlDevice_t, nvmlGpuInstance_t, nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t, nvmlReturn_t,
};

use super::Placement;

/// The driver's record of a GPU instance.
#[derive(Debug)]
pub(super) struct GpuInstance {
    pub(super) id: u32,
    pub(super) placement: Placement,
}

/// Runs a call that returns one value.
fn value<T>(call: impl FnOnce(*mut T) -> nvmlReturn_t) -> Result<T, NvmlError> {
    let mut value = MaybeUninit::zeroed();
    nvml_try(call(value.as_mut_ptr()))?;
    // SAFETY: NVML's types are plain numbers and pointers, which may be all zeros, and the call has written it.
    Ok(unsafe { value.assume_init() })
}

/// Calls a function that returns at most this many values.
fn values<T>(most: u32, call: impl FnOnce(*mut T, *mut c_uint) -> nvmlReturn_t) -> Result<Vec<T>, NvmlError> {
    let mut values = Vec::with_capacity(most as usize);
    let mut count = most;
    nvml_try(call(values.as_mut_ptr(), &raw mut count))?;
    // SAFETY: the call has written this many values, and there was room for them.
    unsafe { values.set_len(count.min(most) as usize) };
    Ok(values)
}

fn handle(device: &Device<'_>) -> nvmlDevice_t {
    // SAFETY: it is used for calls only while the device is there.
    unsafe { device.handle() }
}

const fn placement(raw: nvmlGpuInstancePlacement_t) -> Placement {
    Placement { start: raw.start, size: raw.size }
}

/// Possible placements of instances of a profile. nvml-wrapper's own call always returns an empty list.
pub(super) fn placements(device: &Device<'_>, profile: u32) -> Result<Vec<Placement>, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetGpuInstancePossiblePlacements_v2.as_ref())?;
    // SAFETY: without room the call only counts, and then it has the room it asked for.
    unsafe {
        let count = value(|count| call(handle(device), profile, null_mut(), count))?;
        let found = values(count, |items, count| call(handle(device), profile, items, count))?;
        Ok(found.into_iter().map(placement).collect())
    }
}

/// The instances of a kind, at most this many.
pub(super) fn gpu_instances(device: &Device<'_>, profile: u32, most: u32) -> Result<Vec<GpuInstance>, NvmlError> {
    let lib = device.nvml().lib();
    let (list, info) = (nvml_sym(lib.nvmlDeviceGetGpuInstances.as_ref())?, nvml_sym(lib.nvmlGpuInstanceGetInfo.as_ref())?);
    // SAFETY: there is room for as many as there can be, and the handles are fresh.
    unsafe {
        let found = values(most, |items, count| list(handle(device), profile, items, count))?;
        let describe = |instance: nvmlGpuInstance_t| {
            let nvmlGpuInstanceInfo_t { id, placement: at, .. } = value(|out| info(instance, out))?;
            Ok(GpuInstance { id, placement: placement(at) })
        };
        found.into_iter().map(describe).collect()
    }
}

/// The numbers of the GPU instance and the compute instance that a device is.
pub(super) fn numbers(device: &Device<'_>) -> Result<(u32, u32), NvmlError> {
    let lib = device.nvml().lib();
    let (gpu, compute) = (nvml_sym(lib.nvmlDeviceGetGpuInstanceId.as_ref())?, nvml_sym(lib.nvmlDeviceGetComputeInstanceId.as_ref())?);
    // SAFETY: the device is there, and each call writes one number.
    unsafe { Ok((value(|id| gpu(handle(device), id))?, value(|id| compute(handle(device), id))?)) }
}

/// Creates a GPU instance with a compute instance that spans it, and returns the number of the former.
pub(super) fn create(device: &Device<'_>, profile: u32, slices: u32, at: Placement) -> Result<u32, NvmlError> {
    let lib = device.nvml().lib();
    let make = nvml_sym(lib.nvmlDeviceCreateGpuInstanceWithPlacement.as_ref())?;
    let (compute, info) = (nvml_sym(lib.nvmlGpuInstanceCreateComputeInstance.as_ref())?, nvml_sym(lib.nvmlGpuInstanceGetInfo.as_ref())?);
    let at = nvmlGpuInstancePlacement_t { start: at.start, size: at.size };
    // SAFETY: the device is there, the instance is fresh, and each call writes one value.
    unsafe {
        let instance = value(|out| make(handle(device), profile, &raw const at, out))?;
        let finish = || {
            let kinds = compute_profiles(device, instance)?;
            let all = kinds.iter().find(|kind| kind.sliceCount == slices).ok_or(NvmlError::NotSupported)?;
            value(|out: *mut nvmlComputeInstance_t| compute(instance, all.id, out))?;
            value(|out| info(instance, out)).map(|info| info.id)
        };
        finish().inspect_err(|_| drop(take_down(device, instance)))
    }
}

/// Destroys a GPU instance with its compute instances.
pub(super) fn destroy(device: &Device<'_>, id: u32) -> Result<(), NvmlError> {
    let find = nvml_sym(device.nvml().lib().nvmlDeviceGetGpuInstanceById.as_ref())?;
    // SAFETY: the device is there, and the call writes one handle.
    unsafe {
        let instance = value(|out| find(handle(device), id, out))?;
        take_down(device, instance)
    }
}

/// The kinds of compute instances that a GPU instance can have.
unsafe fn compute_profiles(device: &Device<'_>, instance: nvmlGpuInstance_t) -> Result<Vec<nvmlComputeInstanceProfileInfo_t>, NvmlError> {
    let info = nvml_sym(device.nvml().lib().nvmlGpuInstanceGetComputeInstanceProfileInfo.as_ref())?;
    // SAFETY: the caller's instance is there, and the call writes one value.
    let ask = |slot| match value(|out| unsafe { info(instance, slot, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, out) }) {
        Err(NvmlError::NotSupported | NvmlError::InvalidArg) => None,
        kind => Some(kind),
    };
    (0..NVML_COMPUTE_INSTANCE_PROFILE_COUNT).filter_map(ask).collect()
}

unsafe fn take_down(device: &Device<'_>, instance: nvmlGpuInstance_t) -> Result<(), NvmlError> {
    let lib = device.nvml().lib();
    let (list, again) =
        (nvml_sym(lib.nvmlGpuInstanceGetComputeInstances.as_ref())?, nvml_sym(lib.nvmlGpuInstanceCreateComputeInstance.as_ref())?);
    let (end_compute, end) = (nvml_sym(lib.nvmlComputeInstanceDestroy.as_ref())?, nvml_sym(lib.nvmlGpuInstanceDestroy.as_ref())?);
    let mut ended = Vec::new();
    // SAFETY: the caller's instance is there, there is room for as many as there can be, and the handles are fresh.
    let mut all = || unsafe {
        for kind in compute_profiles(device, instance)? {
            for compute in values(kind.instanceCount, |items, count| list(instance, kind.id, items, count))? {
                nvml_try(end_compute(compute))?;
                ended.push(kind.id);
            }
        }
        nvml_try(end(instance))
    };
    all().inspect_err(|_| {
        // A monitor may hold the GPU instance open: then its compute instance is made again.
        for kind in ended {
            // SAFETY: the instance is still there, and the call writes one handle.
            let _ = value(|out: *mut nvmlComputeInstance_t| unsafe { again(instance, kind, out) });
        }
    })
}
