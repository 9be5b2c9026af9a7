//! Settings of GPUs: compute mode, persistence, displays.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::nvmlDevice_t;

use super::answer::{Code, finish, of_gpu_as_root};
use super::declare::{calls, device_values, gpu_values};

/// NVML's number of a mode that no GPU has any more: one thread at a time.
const EXCLUSIVE_THREAD: c_uint = 1;
const COMPUTE_MODES: c_uint = 4;

device_values! {
    nvmlDeviceGetComputeMode(c_uint) = |state, place| Ok(state.gpus[place.gpu].compute_mode);
    nvmlDeviceGetPersistenceMode(c_uint) = |state, place| Ok(state.gpus[place.gpu].persistence);
}

gpu_values! {
    nvmlDeviceGetDisplayMode(c_uint) = |state, gpu| Ok(state.gpus[gpu].display);
    nvmlDeviceGetDisplayActive(c_uint) = |state, gpu| Ok(state.gpus[gpu].display);
    nvmlDeviceGetAccountingMode(c_uint) = |_, _| Ok(0);
}

calls! {
    fn nvmlDeviceSetComputeMode(device: nvmlDevice_t, mode: c_uint) {
        finish(of_gpu_as_root(CALL, device, |state, gpu| match mode {
            EXCLUSIVE_THREAD => Err(Code::NOT_SUPPORTED),
            ..COMPUTE_MODES => {
                state.gpus[gpu].compute_mode = mode;
                Ok(())
            }
            _ => Err(Code::INVALID_ARGUMENT),
        }))
    }

    fn nvmlDeviceSetPersistenceMode(device: nvmlDevice_t, mode: c_uint) {
        finish(of_gpu_as_root(CALL, device, |state, gpu| {
            state.gpus[gpu].persistence = if mode < 2 { mode } else { return Err(Code::INVALID_ARGUMENT) };
            Ok(())
        }))
    }
}
