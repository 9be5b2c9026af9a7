//! Clocks, performance states, and throttle reasons.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlViolationTime_t};

use super::answer::{Answer, Code, of_gpu, put, put_list, put_pair};
use super::declare::{calls, gpu_values};
use crate::profile::Facts;
use crate::state::State;

/// NVML's bits for the reasons that happen here: idle, power cap, and those of faults.
const SUPPORTED: c_ulonglong = 0x1 | 0x4 | 0x8 | 0x20 | 0x80;

/// A clock by NVML's number of its kind; video runs with the multiprocessors.
const fn pick(kind: c_uint, sm: c_uint, memory: c_uint) -> Answer<c_uint> {
    match kind {
        0 | 1 | 3 => Ok(sm),
        2 => Ok(memory),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

fn now(state: &State<'_>, gpu: usize, kind: c_uint) -> Answer<c_uint> {
    let readings = state.readings(gpu);
    pick(kind, readings.sm_clock, readings.memory_clock)
}

const fn highest(facts: &Facts, kind: c_uint) -> Answer<c_uint> {
    pick(kind, facts.sm_clock, facts.memory_clock)
}

fn throttle(state: &State<'_>, gpu: usize) -> c_ulonglong {
    state.readings(gpu).throttle
}

gpu_values! {
    nvmlDeviceGetPerformanceState(c_uint) = |state, gpu| Ok(state.readings(gpu).performance_state);
    nvmlDeviceGetPowerState(c_uint) = |state, gpu| Ok(state.readings(gpu).performance_state);
    nvmlDeviceGetCurrentClocksThrottleReasons(c_ulonglong) = |state, gpu| Ok(throttle(state, gpu));
    nvmlDeviceGetCurrentClocksEventReasons(c_ulonglong) = |state, gpu| Ok(throttle(state, gpu));
    nvmlDeviceGetSupportedClocksThrottleReasons(c_ulonglong) = |_, _| Ok(SUPPORTED);
    nvmlDeviceGetSupportedClocksEventReasons(c_ulonglong) = |_, _| Ok(SUPPORTED);
    nvmlDeviceGetAdaptiveClockInfoStatus(c_uint) = |_, _| Ok(0);
}

calls! {
    fn nvmlDeviceGetClockInfo(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        put(clock, of_gpu(CALL, device, |state, gpu| now(state, gpu, kind)))
    }

    fn nvmlDeviceGetMaxClockInfo(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        put(clock, of_gpu(CALL, device, |state, gpu| highest(&state.profile(gpu).facts, kind)))
    }

    fn nvmlDeviceGetMaxCustomerBoostClock(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        put(clock, of_gpu(CALL, device, |state, gpu| highest(&state.profile(gpu).facts, kind)))
    }

    fn nvmlDeviceGetApplicationsClock(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        put(clock, of_gpu(CALL, device, |state, gpu| highest(&state.profile(gpu).facts, kind)))
    }

    fn nvmlDeviceGetDefaultApplicationsClock(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        put(clock, of_gpu(CALL, device, |state, gpu| highest(&state.profile(gpu).facts, kind)))
    }

    fn nvmlDeviceGetClock(device: nvmlDevice_t, kind: c_uint, which: c_uint, clock: *mut c_uint) {
        put(clock, of_gpu(CALL, device, |state, gpu| match which {
            0 => now(state, gpu, kind),
            1..=3 => highest(&state.profile(gpu).facts, kind),
            _ => Err(Code::INVALID_ARGUMENT),
        }))
    }

    fn nvmlDeviceGetSupportedMemoryClocks(device: nvmlDevice_t, count: *mut c_uint, clocks: *mut c_uint) {
        put_list(count, clocks, of_gpu(CALL, device, |state, gpu| Ok(vec![state.profile(gpu).facts.memory_clock])))
    }

    fn nvmlDeviceGetSupportedGraphicsClocks(device: nvmlDevice_t, memory: c_uint, count: *mut c_uint, clocks: *mut c_uint) {
        put_list(count, clocks, of_gpu(CALL, device, |state, gpu| match &state.profile(gpu).facts {
            facts if facts.memory_clock == memory => Ok(vec![facts.sm_clock]),
            _ => Err(Code::NOT_FOUND),
        }))
    }

    fn nvmlDeviceGetMinMaxClockOfPState(device: nvmlDevice_t, kind: c_uint, performance: c_uint, least: *mut c_uint, most: *mut c_uint) {
        let answer = of_gpu(CALL, device, |state, gpu| match performance {
            0 => highest(&state.profile(gpu).facts, kind).map(|clock| (clock, clock)),
            _ => Err(Code::INVALID_ARGUMENT),
        });
        put_pair((least, most), answer)
    }

    // The room is in bytes; the rest of it is filled with "unknown".
    fn nvmlDeviceGetSupportedPerformanceStates(device: nvmlDevice_t, states: *mut c_uint, room: c_uint) {
        const UNKNOWN: c_uint = 32;
        let mut count = room / 4;
        let known = of_gpu(CALL, device, |_, _| Ok([0, 8].into_iter().chain(std::iter::repeat(UNKNOWN)).take(count.max(2) as usize).collect()));
        put_list(&raw mut count, states, known)
    }

    fn nvmlDeviceGetViolationStatus(device: nvmlDevice_t, policy: c_uint, out: *mut nvmlViolationTime_t) {
        let nothing = |state: &mut State<'_>, _| Ok(nvmlViolationTime_t { referenceTime: (state.header.now * 1e6) as c_ulonglong, violationTime: 0 });
        put(out, of_gpu(CALL, device, |state, gpu| if policy < 12 { nothing(state, gpu) } else { Err(Code::INVALID_ARGUMENT) }))
    }
}
