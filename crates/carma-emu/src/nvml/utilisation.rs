//! Utilisation of GPUs.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlSample_t, nvmlUtilization_t, nvmlValue_t, nvmlValueType_t};

use super::answer::{Answer, Code, of_gpu, put, put_list, put_pair};
use super::declare::{calls, gpu_values};
use super::processes::timestamp;
use crate::readings::Readings;
use crate::state::State;

/// The driver's averaging period in microseconds.
const PERIOD: c_uint = 167_000;
/// NVML's number of a value that is a whole number.
const UNSIGNED: nvmlValueType_t = 1;

/// The driver's counters of a whole GPU; a partitioned one has none.
fn busyness(state: &State<'_>, gpu: usize) -> Answer<Readings> {
    if state.gpus[gpu].mig == 0 { Ok(state.readings(gpu)) } else { Err(Code::NOT_SUPPORTED) }
}

/// Video engines, which are always idle here.
macro_rules! video {
    ($($name:ident)*) => { calls! { $(
        fn $name(device: nvmlDevice_t, utilisation: *mut c_uint, period: *mut c_uint) {
            put_pair((utilisation, period), of_gpu(CALL, device, |state, gpu| busyness(state, gpu).map(|_| (0, PERIOD))))
        }
    )* } };
}
video! { nvmlDeviceGetEncoderUtilization nvmlDeviceGetDecoderUtilization nvmlDeviceGetJpgUtilization nvmlDeviceGetOfaUtilization }

gpu_values! {
    nvmlDeviceGetUtilizationRates(nvmlUtilization_t) = |state, gpu| {
        let readings = busyness(state, gpu)?;
        Ok(nvmlUtilization_t { gpu: readings.utilisation, memory: readings.memory_utilisation })
    };
}

calls! {
    fn nvmlDeviceGetEncoderStats(device: nvmlDevice_t, sessions: *mut c_uint, frames: *mut c_uint, latency: *mut c_uint) {
        match put(sessions, of_gpu(CALL, device, |_, _| Ok(0))) {
            0 => put_pair((frames, latency), Ok((0, 0))),
            error => error,
        }
    }

    // The driver keeps many; here there is only the latest, since values change only at events.
    fn nvmlDeviceGetSamples(
        device: nvmlDevice_t, kind: c_uint, since: c_ulonglong, value_type: *mut nvmlValueType_t, count: *mut c_uint, samples: *mut nvmlSample_t,
    ) {
        let answer = of_gpu(CALL, device, |state, gpu| {
            let readings = busyness(state, gpu)?;
            let value = match kind {
                0 => readings.milliwatts,
                1 => readings.utilisation,
                2 => readings.memory_utilisation,
                5 => readings.sm_clock,
                6 => readings.memory_clock,
                _ => return Err(Code::NOT_SUPPORTED),
            };
            let now = timestamp();
            if since >= now { Err(Code::NOT_FOUND) } else { Ok(vec![nvmlSample_t { timeStamp: now, sampleValue: nvmlValue_t { uiVal: value } }]) }
        });
        match put(value_type, answer.as_ref().map(|_| UNSIGNED).map_err(|code| *code)) {
            0 if samples.is_null() => put(count, answer.map(|samples| samples.len() as c_uint)),
            0 => put_list(count, samples, answer),
            error => error,
        }
    }
}
