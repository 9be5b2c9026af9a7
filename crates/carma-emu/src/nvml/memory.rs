//! Memory of GPUs and instances.

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlMemory_t, nvmlMemory_v2_t};

use super::answer::{finish, of_device, versioned};
use super::declare::{calls, device_values};
use crate::state::{Memory, Place, State};

/// Memory at a place; used memory is capped at the total, as an injected leak may be larger.
fn memory(state: &State<'_>, place: Place) -> Memory {
    let memory = state.memory(place);
    Memory { used: memory.used.min(memory.total - memory.reserved), ..memory }
}

device_values! {
    // The first version counts the driver's reserve as used.
    nvmlDeviceGetMemoryInfo(nvmlMemory_t) = |state, place| {
        let memory = memory(state, place);
        Ok(nvmlMemory_t { total: memory.total, free: memory.free(), used: memory.used + memory.reserved })
    };
}

calls! {
    fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, out: *mut nvmlMemory_v2_t) {
        let answer = of_device(CALL, device, |state, place| Ok(memory(state, place)));
        finish(answer.and_then(|memory| {
            let out = versioned(out, 2)?;
            let Memory { total, reserved, used } = memory;
            *out = nvmlMemory_v2_t { version: out.version, total, reserved, free: memory.free(), used };
            Ok(())
        }))
    }
}
