//! MIG's calls: the mode, the instances, and the devices they make.

mod compute_instance;
mod gpu_instance;
mod handle;

use std::ffi::{c_char, c_uint};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlDeviceAttributes_t, nvmlReturn_enum_NVML_ERROR_IN_USE, nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES,
    nvmlReturn_t,
};

use super::answer::{Answer, Code, finish, handle as device_handle, of_device, of_gpu, of_gpu_as_root, put, put_pair, versioned};
use super::declare::{aliases, calls, device_values};
use crate::profile::MigProfile;
use crate::state::{MigError, Place, State};

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

/// The kinds of instances of a GPU.
fn profiles(state: &State<'_>, gpu: usize) -> Answer<&'static [MigProfile]> {
    let profiles = &state.profile(gpu).mig;
    if profiles.is_empty() { Err(Code::NOT_SUPPORTED) } else { Ok(profiles) }
}

/// The instance that a device is.
fn instance(place: Place) -> Answer<usize> {
    place.instance.ok_or(Code::INVALID_ARGUMENT)
}

/// Writes all items of an answer and their number. Without room for the items, only the number.
unsafe fn put_all<T>(items: *mut T, count: *mut c_uint, answer: Answer<Vec<T>>) -> nvmlReturn_t {
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

/// Writes an answer into the second version of a structure, if the caller gives that; its version stays.
unsafe fn put_second<T>(out: *mut T, write: impl FnOnce(&mut T) -> Answer<()>) -> nvmlReturn_t {
    // SAFETY: as NVML demands of its callers.
    finish(unsafe { versioned(out, 2) }.and_then(write))
}

/// A name as NVML keeps it.
fn name(profile: &MigProfile) -> [c_char; 96] {
    let mut name = [0; 96];
    let text = format!("MIG {}", profile.name);
    name[..95].iter_mut().zip(text.bytes()).for_each(|(room, byte)| *room = c_char::from_ne_bytes([byte]));
    name
}

calls! {
    fn nvmlDeviceSetMigMode(device: nvmlDevice_t, mode: c_uint, activation: *mut nvmlReturn_t) {
        if activation.is_null() { return Code::INVALID_ARGUMENT.0; }
        put(activation, of_gpu_as_root(CALL, device, |state, gpu| {
            profiles(state, gpu)?;
            // The call succeeds even if the mode could not be changed: the result is a separate value.
            if mode > 1 { Err(Code::INVALID_ARGUMENT) } else { Ok(finish(state.set_mig(gpu, mode == 1).map_err(Code::from))) }
        }))
    }

    fn nvmlDeviceGetMigMode(device: nvmlDevice_t, current: *mut c_uint, pending: *mut c_uint) {
        // It changes at once or not at all, so no change is ever pending.
        put_pair((current, pending), of_gpu(CALL, device, |state, gpu| profiles(state, gpu).map(|_| (state.gpus[gpu].mig, state.gpus[gpu].mig))))
    }

    fn nvmlDeviceGetMigDeviceHandleByIndex(device: nvmlDevice_t, index: c_uint, out: *mut nvmlDevice_t) {
        put(out, of_gpu(CALL, device, |state, gpu| {
            profiles(state, gpu)?;
            let ready = state.places().into_iter().filter(|place| place.gpu == gpu && place.instance.is_some());
            ready.map(device_handle).nth(index as usize).ok_or(Code::NOT_FOUND)
        }))
    }

    fn nvmlDeviceGetAttributes_v2(device: nvmlDevice_t, out: *mut nvmlDeviceAttributes_t) {
        // Emulated GPUs have no media engines.
        put(out, of_device(CALL, device, |state, place| {
            let profile = state.instance_profile(place.gpu, place.instance.ok_or(Code::NOT_SUPPORTED)?);
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
        }))
    }
}

aliases! {
    nvmlDeviceGetAttributes(device: nvmlDevice_t, out: *mut nvmlDeviceAttributes_t) = nvmlDeviceGetAttributes_v2;
}

device_values! {
    nvmlDeviceIsMigDeviceHandle(c_uint) = |_, place| Ok(u32::from(place.instance.is_some()));
    nvmlDeviceGetGpuInstanceId(c_uint) = |state, place| Ok(state.gpus[place.gpu].instances[instance(place)?].id);
    // There is at most one, so its number is 0.
    nvmlDeviceGetComputeInstanceId(c_uint) = |_, place| instance(place).map(|_| 0);
    nvmlDeviceGetMaxMigDeviceCount(c_uint) = |state, place| Ok(match state.gpus[place.gpu].mig {
        0 => 0,
        _ => state.profile(place.gpu).slices(),
    });
    nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t) = |_, place| instance(place).map(|_| device_handle(Place::gpu(place.gpu)));
}
