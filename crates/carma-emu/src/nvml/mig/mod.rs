//! MIG's calls: the mode, the instances, and the devices they make.

mod compute_instance;
mod gpu_instance;
mod handle;

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlDeviceAttributes_t, nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nvmlReturn_enum_NVML_ERROR_IN_USE,
    nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES, nvmlReturn_t,
};

use super::answer::{Answer, Code, finish, handle as device_handle, put};
use crate::profile::MigProfile;
use crate::state::{MigError, Place, State};
use handle::calls;

impl From<MigError> for Code {
    fn from(error: MigError) -> Self {
        match error {
            MigError::Unsupported | MigError::Off => Self::NOT_SUPPORTED,
            MigError::InUse => Self(nvmlReturn_enum_NVML_ERROR_IN_USE),
            MigError::NoRoom => Self(nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES),
            MigError::NoSuchProfile => Self::INVALID_ARGUMENT,
            MigError::NoSuchInstance => Self::NOT_FOUND,
        }
    }
}

/// The kinds of instances of a whole GPU.
fn profiles(state: &State<'_>, place: Place) -> Answer<&'static [MigProfile]> {
    match (place.instance, &state.profile(place.gpu).mig) {
        (Some(_), _) => Err(Code::INVALID_ARGUMENT),
        (None, profiles) if profiles.is_empty() => Err(Code::NOT_SUPPORTED),
        (None, profiles) => Ok(profiles),
    }
}

/// The instance that a device is.
fn instance(place: Place) -> Answer<usize> {
    place.instance.ok_or(Code::INVALID_ARGUMENT)
}

/// Writes all items of an answer and their number. Without room for the items, only the number is wanted.
unsafe fn put_list<T>(items: *mut T, count: *mut c_uint, answer: Answer<Vec<T>>) -> nvmlReturn_t {
    let length = answer.map(|list| {
        if !items.is_null() {
            // SAFETY: the caller gives room for as many as there can be, as NVML demands.
            unsafe { std::ptr::copy_nonoverlapping(list.as_ptr(), items, list.len()) };
        }
        list.len() as c_uint
    });
    // SAFETY: as NVML demands of its callers.
    unsafe { put(count, length) }
}

/// The second version of a layout, as the first field of an answer in it says.
const fn second_version<T>() -> c_uint {
    size_of::<T>() as c_uint | 2 << 24
}

/// Writes an answer in the second version of its layout, if it is the one that the caller has set.
unsafe fn put_v2<T>(out: *mut T, answer: Answer<T>) -> nvmlReturn_t {
    // SAFETY: the caller gives null or such a value, as NVML demands.
    match unsafe { out.cast::<c_uint>().as_ref() } {
        Some(wanted) if *wanted != second_version::<T>() => nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        // SAFETY: as above.
        _ => unsafe { put(out, answer) },
    }
}

/// Writes the mode. It changes at once or not at all, so no other is ever pending.
unsafe fn put_mode(current: *mut c_uint, pending: *mut c_uint, answer: Answer<c_uint>) -> nvmlReturn_t {
    // SAFETY: as NVML demands of its callers.
    unsafe {
        match put(current, answer) {
            0 => put(pending, answer),
            code => code,
        }
    }
}

calls! {
    put: nvmlDeviceSetMigMode(device: nvmlDevice_t, mode: c_uint; activation: *mut nvmlReturn_t) = |state, place| {
        profiles(state, place)?;
        // The call succeeds even where the mode could not be changed: that is told apart.
        if mode > 1 { Err(Code::INVALID_ARGUMENT) } else { Ok(finish(state.set_mig(place.gpu, mode == 1).map_err(Code::from))) }
    };
    put_mode: nvmlDeviceGetMigMode(device: nvmlDevice_t; current: *mut c_uint, pending: *mut c_uint) =
        |state, place| profiles(state, place).map(|_| state.gpus[place.gpu].mig);
    put: nvmlDeviceIsMigDeviceHandle(device: nvmlDevice_t; out: *mut c_uint) = |_, place| Ok(u32::from(place.instance.is_some()));
    put: nvmlDeviceGetGpuInstanceId(device: nvmlDevice_t; id: *mut c_uint) =
        |state, place| Ok(state.gpus[place.gpu].instances[instance(place)?].id);
    // There is one at most, so its number is 0.
    put: nvmlDeviceGetComputeInstanceId(device: nvmlDevice_t; id: *mut c_uint) = |_, place| instance(place).map(|_| 0);
    put: nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t; count: *mut c_uint) = |state, place| Ok(match state.gpus[place.gpu].mig {
        0 => 0,
        _ => state.profile(place.gpu).slices(),
    });
    put: nvmlDeviceGetMigDeviceHandleByIndex(device: nvmlDevice_t, index: c_uint; out: *mut nvmlDevice_t) = |state, place| {
        profiles(state, place)?;
        let instances = state.instances(place.gpu);
        let ready = instances.iter().filter(|(_, instance)| instance.computes != 0).nth(index as usize);
        ready.map(|(instance, _)| device_handle(Place { gpu: place.gpu, instance: Some(*instance) })).ok_or(Code::NOT_FOUND)
    };
    put: nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device: nvmlDevice_t; out: *mut nvmlDevice_t) =
        |_, place| instance(place).map(|_| device_handle(Place::gpu(place.gpu)));
    put: nvmlDeviceGetAttributes(device: nvmlDevice_t; out: *mut nvmlDeviceAttributes_t) = attributes;
    put: nvmlDeviceGetAttributes_v2(device: nvmlDevice_t; out: *mut nvmlDeviceAttributes_t) = attributes;
}

/// What an instance has. There are no engines for video and pictures in emulated GPUs.
fn attributes(state: &mut State<'_>, place: Place) -> Answer<nvmlDeviceAttributes_t> {
    let instance = place.instance.ok_or(Code::NOT_SUPPORTED)?;
    let profile = state.instance_profile(place.gpu, instance);
    Ok(nvmlDeviceAttributes_t {
        multiprocessorCount: profile.multiprocessors,
        sharedCopyEngineCount: profile.slices,
        sharedDecoderCount: 0,
        sharedEncoderCount: 0,
        sharedJpegCount: 0,
        sharedOfaCount: 0,
        gpuInstanceSliceCount: profile.slices,
        computeInstanceSliceCount: profile.slices,
        memorySizeMB: profile.memory,
    })
}
