//! Temperatures and fans.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlMarginTemperature_v1_t, nvmlTemperature_v1_t};

use super::answer::{Answer, Code, finish, of_gpu, put, put_pair, versioned};
use super::declare::{calls, gpu_values};
use crate::state::State;

/// The only sensor: the die.
const DIE: c_uint = 0;
/// Temperatures in degrees: shutdown, slowdown, and highest operating temperature.
const SHUTDOWN: u32 = 92;
const SLOWDOWN: u32 = 89;
const HOTTEST: u32 = 85;

fn temperature(state: &State<'_>, gpu: usize, sensor: c_uint) -> Answer<c_uint> {
    if sensor == DIE { Ok(state.readings(gpu).temperature) } else { Err(Code::INVALID_ARGUMENT) }
}

fn fan(state: &State<'_>, gpu: usize, fan: c_uint) -> Answer<c_uint> {
    let speed = state.readings(gpu).fan.ok_or(Code::NOT_SUPPORTED)?;
    if fan == 0 { Ok(speed) } else { Err(Code::INVALID_ARGUMENT) }
}

gpu_values! {
    nvmlDeviceGetFanSpeed(c_uint) = |state, gpu| fan(state, gpu, 0);
    nvmlDeviceGetNumFans(c_uint) = |state, gpu| Ok(state.profile(gpu).facts.fan.into());
}

calls! {
    fn nvmlDeviceGetFanSpeed_v2(device: nvmlDevice_t, which: c_uint, speed: *mut c_uint) {
        put(speed, of_gpu(CALL, device, |state, gpu| fan(state, gpu, which)))
    }

    fn nvmlDeviceGetTargetFanSpeed(device: nvmlDevice_t, which: c_uint, speed: *mut c_uint) {
        put(speed, of_gpu(CALL, device, |state, gpu| fan(state, gpu, which)))
    }

    fn nvmlDeviceGetMinMaxFanSpeed(device: nvmlDevice_t, least: *mut c_uint, most: *mut c_uint) {
        put_pair((least, most), of_gpu(CALL, device, |state, gpu| fan(state, gpu, 0).map(|_| (30, 100))))
    }

    fn nvmlDeviceGetTemperature(device: nvmlDevice_t, sensor: c_uint, degrees: *mut c_uint) {
        put(degrees, of_gpu(CALL, device, |state, gpu| temperature(state, gpu, sensor)))
    }

    fn nvmlDeviceGetTemperatureV(device: nvmlDevice_t, out: *mut nvmlTemperature_v1_t) {
        finish(versioned(out, 1).and_then(|out| {
            out.temperature = of_gpu(CALL, device, |state, gpu| temperature(state, gpu, out.sensorType))?.cast_signed();
            Ok(())
        }))
    }

    fn nvmlDeviceGetMarginTemperature(device: nvmlDevice_t, out: *mut nvmlMarginTemperature_v1_t) {
        finish(versioned(out, 1).and_then(|out| {
            out.marginTemperature = of_gpu(CALL, device, |state, gpu| Ok(SLOWDOWN.cast_signed() - temperature(state, gpu, DIE)?.cast_signed()))?;
            Ok(())
        }))
    }

    fn nvmlDeviceGetTemperatureThreshold(device: nvmlDevice_t, threshold: c_uint, degrees: *mut c_uint) {
        put(degrees, of_gpu(CALL, device, |_, _| match threshold {
            0 => Ok(SHUTDOWN),
            1 => Ok(SLOWDOWN),
            2 | 3 => Ok(HOTTEST),
            4..8 => Err(Code::NOT_SUPPORTED),
            _ => Err(Code::INVALID_ARGUMENT),
        }))
    }
}
