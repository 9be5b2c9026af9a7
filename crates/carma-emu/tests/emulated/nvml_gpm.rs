//! Counters of Hopper and later, through NVML itself.

use std::time::{Duration, Instant};

use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::gpm_metrics_get;

use crate::support::{Emulated, MIB, Sleeper, training};

const METRICS: [GpmMetricId; 5] =
    [GpmMetricId::SmUtil, GpmMetricId::SmOccupancy, GpmMetricId::DramBwUtil, GpmMetricId::GraphicsUtil, GpmMetricId::AnyTensorUtil];

#[test]
fn counters_are_the_levels_of_the_state_in_percent() {
    let emulated = Emulated::new("1xH100-80GB,1xA100-40GB");
    let (nvml, job) = (emulated.nvml(), Sleeper::new());
    let device = nvml.device_by_index(0).unwrap();
    assert!(device.gpm_support().unwrap());
    emulated.attach(training(job.pid(), 0, 1000 * MIB));
    let sample = device.gpm_sample().unwrap();
    let levels = emulated.with(|state| state.gpus[0].engine.levels);
    let metrics = gpm_metrics_get(&nvml, &sample, &device.gpm_sample().unwrap(), &METRICS).unwrap();
    for (metric, level) in metrics.iter().zip(levels) {
        let value = metric.as_ref().unwrap().value;
        assert!((value - 100.0 * level).abs() < 1e-3 && level > 0.0, "{metric:?} is not {level}");
    }
    assert!(matches!(metrics[4], Err(NvmlError::NotSupported)), "no model gives it");
    let other = nvml.device_by_index(1).unwrap();
    assert!(!other.gpm_support().unwrap());
    assert!(matches!(other.gpm_sample(), Err(NvmlError::NotSupported)));
}

#[test]
fn an_instance_has_counters_of_its_own() {
    let emulated = Emulated::new("1xH100-80GB");
    let (nvml, job) = (emulated.nvml(), Sleeper::new());
    emulated.partition(0, &["1g.10gb", "1g.10gb"]);
    emulated.attach(carma_emu::state::ContextRecord { instance: 1, ..training(job.pid(), 0, 1000 * MIB) });
    let device = nvml.device_by_index(0).unwrap();
    let value = |id: u32| {
        let sample = device.gpm_mig_sample(id).unwrap();
        let patience = Instant::now() + Duration::from_secs(20);
        loop {
            let metrics = gpm_metrics_get(&nvml, &sample, &device.gpm_mig_sample(id).unwrap(), &METRICS[..1]).unwrap();
            match &metrics[0] {
                Ok(metric) => return metric.value,
                Err(error) => assert!(Instant::now() < patience, "{error}"),
            }
        }
    };
    let level = emulated.with(|state| state.gpus[0].instances[1].engine.levels[0]);
    assert!(value(7).abs() < 1e-9 && (value(8) - 100.0 * level).abs() < 1e-3 && level > 0.0);
    assert!(matches!(device.gpm_mig_sample(3), Err(NvmlError::NotFound)));
}
