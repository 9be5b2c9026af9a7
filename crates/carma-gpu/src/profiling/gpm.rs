//! NVML's own counters (GPM), from Hopper on: what happened between two samples.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nvml_wrapper::Device;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};

use super::counters::{Counters, Unit};
use super::fields::{Field, Measure, by_id};
use super::problem::Problem;
use crate::driver::Driver;
use crate::error::DriverError;
use crate::lane::held;

/// Samples nearer to each other than this say little; NVML wants at least as much.
const NEAREST: Duration = Duration::from_millis(100);
const CALL: &str = "nvmlGpmSampleGet";

/// NVML's metrics for DCGM's fields.
const METRICS: [(GpmMetricId, u16); 12] = [
    (GpmMetricId::GraphicsUtil, 1001),
    (GpmMetricId::SmUtil, 1002),
    (GpmMetricId::SmOccupancy, 1003),
    (GpmMetricId::AnyTensorUtil, 1004),
    (GpmMetricId::DramBwUtil, 1005),
    (GpmMetricId::Fp64Util, 1006),
    (GpmMetricId::Fp32Util, 1007),
    (GpmMetricId::Fp16Util, 1008),
    (GpmMetricId::PcieTxPerSec, 1009),
    (GpmMetricId::PcieRxPerSec, 1010),
    (GpmMetricId::NvlinkTotalTxPerSec, 1011),
    (GpmMetricId::NvlinkTotalRxPerSec, 1012),
];

type Sample = GpmSample<'static>;

/// What is known of a device: its last sample, and the counters up to it.
#[derive(Debug, Default)]
struct Seen {
    sample: Option<(Sample, Instant)>,
    counters: Option<Counters>,
}

/// The devices that offer them.
#[derive(Debug)]
pub(super) struct Gpm {
    driver: Arc<Driver>,
    devices: HashMap<Unit, Mutex<Seen>>,
    refusals: Vec<Problem>,
}

impl Gpm {
    /// Takes a first sample of each of these devices that has GPM.
    pub(super) fn start(driver: Arc<Driver>, units: impl IntoIterator<Item = Unit>) -> Self {
        let mut gpm = Self { driver, devices: HashMap::new(), refusals: Vec::new() };
        for unit in units {
            match gpm.first_sample(&unit) {
                Ok(sample) => {
                    gpm.devices.insert(unit, Mutex::new(Seen { sample: Some((sample, Instant::now())), counters: None }));
                }
                Err(problem) => gpm.refusals.push(problem),
            }
        }
        gpm
    }

    /// A source without devices: nobody wishes for it.
    pub(super) fn unused(driver: Arc<Driver>) -> Self {
        Self { driver, devices: HashMap::new(), refusals: vec![Problem::NotAsked] }
    }

    /// Whether a device has them.
    pub(super) fn covers(&self, unit: &Unit) -> bool {
        self.devices.contains_key(unit)
    }

    /// Why a device was refused, the gravest first.
    pub(super) fn problem(&self) -> Option<Problem> {
        let grave = self.refusals.iter().find(|problem| **problem != Problem::NoGpm);
        grave.or(self.refusals.first()).cloned()
    }

    /// What happened on a device since it was asked for before.
    pub(super) fn counters(&self, unit: &Unit) -> Option<Counters> {
        let mut seen = held(self.devices.get(unit)?);
        if seen.sample.as_ref().is_some_and(|(_, taken)| taken.elapsed() < NEAREST) {
            return seen.counters.filter(Counters::is_fresh);
        }
        let before = seen.sample.take().map(|(sample, _)| sample);
        let answer = self.driver.device(&unit.gpu, CALL, {
            let instance = unit.instance;
            move |device| {
                let after = sample(device, instance)?;
                let counters = before.map(|before| between(&before, &after)).transpose()?;
                Ok((after, counters))
            }
        });
        let (sample, counters) = answer.ok()?;
        *seen = Seen { sample: Some((sample, Instant::now())), counters };
        seen.counters
    }

    fn first_sample(&self, unit: &Unit) -> Result<Sample, Problem> {
        let instance = unit.instance;
        let first = self.driver.device(&unit.gpu, CALL, move |device| {
            if device.gpm_support()? { sample(device, instance) } else { Err(NvmlError::NotSupported) }
        });
        first.map_err(|error| match error {
            DriverError::NotSupported { .. } => Problem::NoGpm,
            DriverError::NoPermission { .. } => Problem::AdministratorsOnly,
            error => Problem::Driver(error.to_string()),
        })
    }
}

fn sample(device: &Device<'static>, instance: Option<u32>) -> Result<Sample, NvmlError> {
    instance.map_or_else(|| device.gpm_sample(), |instance| device.gpm_mig_sample(instance))
}

fn between(before: &Sample, after: &Sample) -> Result<Counters, NvmlError> {
    let metrics = gpm_metrics_get(after.nvml(), before, after, &METRICS.map(|(metric, _)| metric))?;
    let mut counters = Counters::new(Instant::now());
    for (metric, (_, id)) in metrics.into_iter().zip(METRICS) {
        if let (Ok(metric), Some(field)) = (metric, by_id(id)) {
            counters.set(field, as_dcgm(field, metric.value));
        }
    }
    Ok(counters)
}

/// NVML counts in percent and MiB a second, where DCGM counts in fractions and bytes a second.
fn as_dcgm(field: &Field, value: f64) -> f64 {
    match field.measure {
        Measure::Fraction => value / 100.0,
        _ => value * f64::from(1 << 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_its_metric_in_its_unit() {
        let mut counters = Counters::new(Instant::now());
        for (_, id) in METRICS {
            let field = by_id(id).unwrap();
            counters.set(field, as_dcgm(field, 50.0));
        }
        assert_eq!(counters.fp16, Some(carma_core::Fraction::clamped(0.5)));
        assert_eq!(counters.nvlink_rx.unwrap().0, 50 << 20);
        assert_eq!(METRICS.map(|(_, id)| id).to_vec(), super::super::fields::profiling().map(|field| field.id).collect::<Vec<_>>());
    }
}
