//! Which devices there are, and which is which.

use std::ffi::{c_char, c_uint};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use super::answer::{Code, device_values, handle, of_device, of_system, put, put_text};
use crate::state::Place;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> nvmlReturn_t {
    // SAFETY: as NVML demands of its callers.
    unsafe { put(count, of_system("nvmlDeviceGetCount_v2", |state| Ok(state.gpus.len() as c_uint))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t) -> nvmlReturn_t {
    let find = of_system("nvmlDeviceGetHandleByIndex_v2", |state| match state.gpus.get(index as usize) {
        None => Err(Code::INVALID_ARGUMENT),
        Some(gpu) if gpu.lost != 0 => Err(Code::GPU_IS_LOST),
        Some(_) => Ok(handle(Place::gpu(index as usize))),
    });
    // SAFETY: as NVML demands of its callers.
    unsafe { put(device, find) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: c_uint) -> nvmlReturn_t {
    let answer = of_device("nvmlDeviceGetName", device, |state, place| {
        let profile = state.profile(place.gpu);
        let product = &profile.facts.product;
        Ok(place
            .instance
            .map_or_else(|| product.clone(), |instance| format!("{product} MIG {}", state.instance_profile(place.gpu, instance).name)))
    });
    // SAFETY: as NVML demands of its callers.
    unsafe { put_text(name, length, answer) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(device: nvmlDevice_t, uuid: *mut c_char, length: c_uint) -> nvmlReturn_t {
    let answer = of_device("nvmlDeviceGetUUID", device, |state, place| {
        let gpu = &state.gpus[place.gpu];
        Ok(place.instance.map_or(gpu.uuid.get(), |instance| gpu.instances[instance].uuid.get()).to_owned())
    });
    // SAFETY: as NVML demands of its callers.
    unsafe { put_text(uuid, length, answer) }
}

device_values! {
    nvmlDeviceGetIndex(c_uint) = |_, place| Ok(place.gpu as c_uint);
    nvmlDeviceGetMinorNumber(c_uint) = |_, place| Ok(place.gpu as c_uint);
}
