//! GPU performance monitoring: counters between two samples, from Hopper on.

use std::ffi::{CStr, c_char, c_uint};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlGpmMetric_t, nvmlGpmMetricsGet_t, nvmlGpmSample_t, nvmlGpmSupport_t};

use super::answer::{Answer, Code, finish, of_device, of_gpu, of_system, put};
use super::declare::calls;
use super::held::HandleTable;
use crate::profile::Profiling;
use crate::state::{Place, State};

/// The version of its structures, as in their first field.
const VERSION: c_uint = 1;

/// A metric that the models give.
struct Metric {
    id: c_uint,
    /// Its place among an engine's levels.
    level: usize,
    name: &'static CStr,
    description: &'static CStr,
}

/// SMACT, SMOCC, DRAMA and GRACT. Pipes, PCIe and NVLink are in no model, and not made up.
const METRICS: [Metric; 4] = [
    Metric { id: 1, level: 3, name: c"Graphics Util", description: c"Percentage of time any compute or graphics app was active" },
    Metric { id: 2, level: 0, name: c"SM Util", description: c"Percentage of SMs that were busy" },
    Metric { id: 3, level: 1, name: c"SM Occupancy", description: c"Percentage of warps that were active against the theoretical maximum" },
    Metric { id: 10, level: 2, name: c"DRAM BW Util", description: c"Percentage of DRAM bandwidth used" },
];

/// Counters of a device up to a time.
#[derive(Debug, Clone, Copy)]
struct Sample {
    place: Place,
    /// Emulated seconds.
    at: f64,
    level_seconds: [f64; 4],
}

/// Samples that callers hold; empty until they are taken.
static SAMPLES: HandleTable<Option<Sample>> = HandleTable::new();

/// Frees all samples: their handles become invalid.
pub(super) fn forget() {
    SAMPLES.clear();
}

fn monitored(state: &State<'_>, gpu: usize) -> bool {
    state.profile(gpu).facts.profiling == Profiling::Gpm
}

fn sample(state: &State<'_>, place: Place, out: nvmlGpmSample_t) -> Answer<()> {
    if !monitored(state, place.gpu) {
        return Err(Code::NOT_SUPPORTED);
    }
    let taken = Sample { place, at: state.header.now, level_seconds: state.engine(place).level_seconds };
    SAMPLES.with(out, |sample| *sample = Some(taken))
}

/// A metric in percent between two samples of the same device.
fn between(first: &Sample, second: &Sample, level: usize) -> Answer<f64> {
    let span = second.at - first.at;
    if first.place != second.place {
        return Err(Code::INVALID_ARGUMENT);
    }
    // Counters that went backwards are of an instance that was made again.
    let done = second.level_seconds[level] - first.level_seconds[level];
    if span > 0.0 && done >= 0.0 { Ok((100.0 * done / span).clamp(0.0, 100.0)) } else { Err(Code::NO_DATA) }
}

fn fill(out: &mut nvmlGpmMetric_t, first: &Sample, second: &Sample) {
    let metric = METRICS.iter().find(|metric| metric.id == out.metricId);
    let value = metric.ok_or(Code::NOT_SUPPORTED).and_then(|metric| between(first, second, metric.level));
    out.nvmlReturn = finish(value.map(drop));
    out.value = value.unwrap_or_default();
    if let Some(metric) = metric {
        // Callers only read them.
        let [name, description, unit] = [metric.name, metric.description, c"%"].map(|text| text.as_ptr().cast_mut().cast::<c_char>());
        (out.metricInfo.shortName, out.metricInfo.longName, out.metricInfo.unit) = (name, description, unit);
    }
}

calls! {
    fn nvmlGpmQueryDeviceSupport(device: nvmlDevice_t, out: *mut nvmlGpmSupport_t) {
        finish(of_device(CALL, device, |state, place| Ok(monitored(state, place.gpu))).and_then(|monitored| {
            let out = out.as_mut().ok_or(Code::INVALID_ARGUMENT)?;
            if out.version != VERSION {
                return Err(Code::ARGUMENT_VERSION_MISMATCH);
            }
            out.isSupportedDevice = monitored.into();
            Ok(())
        }))
    }

    fn nvmlGpmSampleAlloc(out: *mut nvmlGpmSample_t) {
        if out.is_null() { return Code::INVALID_ARGUMENT.0; }
        put(out, of_system(CALL, |_| Ok(SAMPLES.keep(None))))
    }

    fn nvmlGpmSampleFree(given: nvmlGpmSample_t) { finish(of_system(CALL, |_| Ok(())).and_then(|()| SAMPLES.free(given))) }

    fn nvmlGpmSampleGet(device: nvmlDevice_t, out: nvmlGpmSample_t) {
        finish(of_gpu(CALL, device, |state, gpu| sample(state, Place::gpu(gpu), out)))
    }

    fn nvmlGpmMigSampleGet(device: nvmlDevice_t, id: c_uint, out: nvmlGpmSample_t) {
        finish(of_gpu(CALL, device, |state, gpu| {
            let instances = &state.gpus[gpu].instances;
            let instance = instances.iter().position(|instance| instance.used != 0 && instance.id == id).ok_or(Code::NOT_FOUND)?;
            sample(state, Place { gpu, instance: Some(instance) }, out)
        }))
    }

    fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) {
        finish(of_system(CALL, |_| Ok(())).and_then(|()| {
            // The number of metrics depends on the driver version, so the caller's room may differ from ours: only requested metrics are touched.
            if request.is_null() {
                return Err(Code::INVALID_ARGUMENT);
            }
            let (version, count) = ((*request).version, (*request).numMetrics as usize);
            if version != VERSION {
                return Err(Code::ARGUMENT_VERSION_MISMATCH);
            }
            let taken = |given| SAMPLES.get(given)?.ok_or(Code::INVALID_ARGUMENT);
            let (first, second) = (taken((*request).sample1)?, taken((*request).sample2)?);
            let metrics = (&raw mut (*request).metrics).cast::<nvmlGpmMetric_t>();
            (0..count).for_each(|place| fill(&mut *metrics.add(place), &first, &second));
            Ok(())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_means_between_samples() {
        let at = |at: f64, seconds: f64| Sample { place: Place::gpu(0), at, level_seconds: [seconds, 0.0, 0.0, 0.0] };
        assert_eq!(between(&at(10.0, 3.0), &at(14.0, 4.0), 0), Ok(25.0));
        assert_eq!(between(&at(10.0, 3.0), &at(10.0, 3.0), 0), Err(Code::NO_DATA));
        let other = Sample { place: Place::gpu(1), ..at(14.0, 4.0) };
        assert_eq!(between(&at(10.0, 3.0), &other, 0), Err(Code::INVALID_ARGUMENT));
    }
}
