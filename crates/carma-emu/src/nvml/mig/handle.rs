//! Handles of instances, and how calls about them are answered.

use nvml_wrapper_sys::bindings::{nvmlComputeInstance_t, nvmlDevice_t, nvmlGpuInstance_t};

use crate::nvml::answer::{Answer, Code, handle as device_handle, of_device};
use crate::state::{InstanceRecord, Place, State};

/// Set in the handle of a GPU instance, beside the place that [`device_handle`] makes; nobody follows it as a pointer.
const GPU_INSTANCE: usize = 1 << 16;
/// Set in the handle of a compute instance.
const COMPUTE_INSTANCE: usize = 1 << 17;

/// Something that calls are about.
pub(super) trait Handle: Copy {
    /// Answers a call about it.
    fn ask<T>(self, call: &str, act: impl FnOnce(&mut State<'_>, Place) -> Answer<T>) -> Answer<T>;
}

impl Handle for nvmlDevice_t {
    fn ask<T>(self, call: &str, act: impl FnOnce(&mut State<'_>, Place) -> Answer<T>) -> Answer<T> {
        of_device(call, self, act)
    }
}

impl Handle for nvmlGpuInstance_t {
    fn ask<T>(self, call: &str, act: impl FnOnce(&mut State<'_>, Place) -> Answer<T>) -> Answer<T> {
        of_instance(call, self.addr() ^ GPU_INSTANCE, |record| record.used, act)
    }
}

impl Handle for nvmlComputeInstance_t {
    fn ask<T>(self, call: &str, act: impl FnOnce(&mut State<'_>, Place) -> Answer<T>) -> Answer<T> {
        of_instance(call, self.addr() ^ COMPUTE_INSTANCE, |record| record.computes, act)
    }
}

/// The faults are those of the GPU, and so is the loss of it.
fn of_instance<T>(
    call: &str,
    number: usize,
    is_there: impl FnOnce(&InstanceRecord) -> u32,
    act: impl FnOnce(&mut State<'_>, Place) -> Answer<T>,
) -> Answer<T> {
    let gpu = device_handle(Place::gpu((number & 0xFF).wrapping_sub(1)));
    of_device(call, gpu, |state, place| {
        let instance = (number >> 8).wrapping_sub(1);
        match state.gpus[place.gpu].instances.get(instance).map_or(0, is_there) {
            0 => Err(Code::INVALID_ARGUMENT),
            _ => act(state, Place { instance: Some(instance), ..place }),
        }
    })
}

pub(super) fn gpu_instance(gpu: usize, instance: usize) -> nvmlGpuInstance_t {
    std::ptr::without_provenance_mut(device_handle(Place { gpu, instance: Some(instance) }).addr() | GPU_INSTANCE)
}

pub(super) fn compute_instance(gpu: usize, instance: usize) -> nvmlComputeInstance_t {
    std::ptr::without_provenance_mut(device_handle(Place { gpu, instance: Some(instance) }).addr() | COMPUTE_INSTANCE)
}

/// Calls about something: `how to put the answer: name(handle: type, arguments; where to put it) = |state, place| answer;`
macro_rules! calls {
    ($($put:ident: $name:ident($handle:ident: $kind:ty $(, $argument:ident: $type:ty)*; $($out:ident: $room:ty),*) = $act:expr;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($handle: $kind $(, $argument: $type)* $(, $out: $room)*) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            let answer = $crate::nvml::mig::handle::Handle::ask($handle, stringify!($name), $act);
            // SAFETY: as NVML demands of its callers.
            unsafe { $put($($out,)* answer) }
        }
    )* };
}
pub(super) use calls;
