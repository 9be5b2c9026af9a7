//! Handles of instances, and how calls about them are answered.

use nvml_wrapper_sys::bindings::{nvmlComputeInstance_t, nvmlGpuInstance_t};

use crate::nvml::answer::{Answer, Code, handle as device_handle, of_gpu};
use crate::state::{InstanceRecord, Place, State};

/// Set in the handle of a GPU instance, beside the place that [`device_handle`] makes; it is never followed as a pointer.
const GPU_INSTANCE: usize = 1 << 16;
/// Set in the handle of a compute instance.
const COMPUTE_INSTANCE: usize = 1 << 17;

pub(super) fn gpu_instance(gpu: usize, instance: usize) -> nvmlGpuInstance_t {
    std::ptr::without_provenance_mut(device_handle(Place { gpu, instance: Some(instance) }).addr() | GPU_INSTANCE)
}

pub(super) fn compute_instance(gpu: usize, instance: usize) -> nvmlComputeInstance_t {
    std::ptr::without_provenance_mut(device_handle(Place { gpu, instance: Some(instance) }).addr() | COMPUTE_INSTANCE)
}

/// Answers a call about a GPU instance: `act` gets the places of its GPU and of itself.
pub(super) fn of_gpu_instance<T>(
    call: &str,
    handle: nvmlGpuInstance_t,
    act: impl FnOnce(&mut State<'_>, usize, usize) -> Answer<T>,
) -> Answer<T> {
    of_instance(call, handle.addr() ^ GPU_INSTANCE, |record| record.used, act)
}

/// Answers a call about a compute instance, which has the place of its GPU instance.
pub(super) fn of_compute_instance<T>(
    call: &str,
    handle: nvmlComputeInstance_t,
    act: impl FnOnce(&mut State<'_>, usize, usize) -> Answer<T>,
) -> Answer<T> {
    of_instance(call, handle.addr() ^ COMPUTE_INSTANCE, |record| record.computes, act)
}

/// Faults and loss are those of the GPU.
fn of_instance<T>(
    call: &str,
    number: usize,
    is_there: impl FnOnce(&InstanceRecord) -> u32,
    act: impl FnOnce(&mut State<'_>, usize, usize) -> Answer<T>,
) -> Answer<T> {
    // Its place without the instance is its GPU's handle.
    let gpu = std::ptr::without_provenance_mut(number & 0xFF);
    let instance = (number >> 8).wrapping_sub(1);
    of_gpu(call, gpu, |state, gpu| match state.gpus[gpu].instances.get(instance).map_or(0, is_there) {
        0 => Err(Code::INVALID_ARGUMENT),
        _ => act(state, gpu, instance),
    })
}
