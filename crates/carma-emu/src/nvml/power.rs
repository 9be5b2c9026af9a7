//! Power and energy.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlPowerValue_v2_t};

use super::answer::{Answer, Code, finish, of_gpu, of_gpu_as_root, put_pair, versioned};
use super::declare::{calls, gpu_values};
use crate::readings::power_limits;
use crate::state::State;

/// NVML's number of the first architecture that counts energy.
const VOLTA: u32 = 5;

/// Millijoules since the machine was made.
pub(super) fn energy(state: &State<'_>, gpu: usize) -> Answer<c_ulonglong> {
    let counts = state.profile(gpu).facts.architecture >= VOLTA;
    if counts { Ok((state.gpus[gpu].engine.joules * 1000.0) as c_ulonglong) } else { Err(Code::NOT_SUPPORTED) }
}

fn set_limit(state: &mut State<'_>, gpu: usize, milliwatts: c_uint) -> Answer<()> {
    if !power_limits(state.profile(gpu).kind).contains(&milliwatts) {
        return Err(Code::INVALID_ARGUMENT);
    }
    state.gpus[gpu].power_limit = milliwatts;
    state.touch();
    Ok(())
}

gpu_values! {
    nvmlDeviceGetPowerUsage(c_uint) = |state, gpu| Ok(state.readings(gpu).milliwatts);
    nvmlDeviceGetTotalEnergyConsumption(c_ulonglong) = |state, gpu| energy(state, gpu);
    nvmlDeviceGetPowerManagementMode(c_uint) = |_, _| Ok(1);
    nvmlDeviceGetPowerManagementLimit(c_uint) = |state, gpu| Ok(state.gpus[gpu].power_limit);
    nvmlDeviceGetEnforcedPowerLimit(c_uint) = |state, gpu| Ok(state.gpus[gpu].power_limit);
    nvmlDeviceGetPowerManagementDefaultLimit(c_uint) = |state, gpu| Ok(*power_limits(state.profile(gpu).kind).end());
}

calls! {
    fn nvmlDeviceGetPowerManagementLimitConstraints(device: nvmlDevice_t, least: *mut c_uint, most: *mut c_uint) {
        put_pair((least, most), of_gpu(CALL, device, |state, gpu| Ok(power_limits(state.profile(gpu).kind).into_inner())))
    }

    fn nvmlDeviceSetPowerManagementLimit(device: nvmlDevice_t, milliwatts: c_uint) {
        finish(of_gpu_as_root(CALL, device, |state, gpu| set_limit(state, gpu, milliwatts)))
    }

    fn nvmlDeviceSetPowerManagementLimit_v2(device: nvmlDevice_t, value: *mut nvmlPowerValue_v2_t) {
        let value = versioned(value, 2);
        finish(value.and_then(|value| of_gpu_as_root(CALL, device, |state, gpu| set_limit(state, gpu, value.powerValueMw))))
    }
}
