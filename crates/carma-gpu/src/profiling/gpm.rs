//! NVML's own counters (GPM), from Hopper on: the difference of two samples.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nvml_wrapper::Device;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};

use super::counters::{Counters, Unit};
use super::fields::{Field, Measure, profiling};
use super::problem::Problem;
use crate::driver::Driver;
use crate::error::DriverError;
use crate::lane::held;

/// The least time between two samples; NVML requires it.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
const CALL: &str = "nvmlGpmSampleGet";

type Sample = GpmSample<'static>;

/// The last sample of a device, and the counters up to it.
#[derive(Debug, Default)]
struct Last {
    sample: Option<(Sample, Instant)>,
    counters: Option<Counters>,
}

/// The devices that have GPM.
#[derive(Debug)]
pub(super) struct Gpm {
    driver: Arc<Driver>,
    devices: HashMap<Unit, Mutex<Last>>,
    refusals: Vec<Problem>,
}

impl Gpm {
    /// Takes a first sample of each of these devices that has GPM.
    pub(super) fn start(driver: Arc<Driver>, units: impl IntoIterator<Item = Unit>) -> Self {
        let mut gpm = Self { driver, devices: HashMap::new(), refusals: Vec::new() };
        for unit in units {
            match gpm.first_sample(&unit) {
                Ok(sample) => {
                    gpm.devices.insert(unit, Mutex::new(Last { sample: Some((sample, Instant::now())), counters: None }));
                }
                Err(problem) => gpm.refusals.push(problem),
            }
        }
        gpm
    }

    /// A source without devices, because another one is forced.
    pub(super) fn unused(driver: Arc<Driver>) -> Self {
        Self { driver, devices: HashMap::new(), refusals: vec![Problem::NotAsked] }
    }

    /// Whether a device supports GPM.
    pub(super) fn covers(&self, unit: &Unit) -> bool {
        self.devices.contains_key(unit)
    }

    /// Why a device was refused: the most serious reason.
    pub(super) fn problem(&self) -> Option<Problem> {
        let serious = self.refusals.iter().find(|problem| **problem != Problem::NoGpm);
        serious.or(self.refusals.first()).cloned()
    }

    /// The counters of a device since the last call.
    pub(super) fn counters(&self, unit: &Unit) -> Option<Counters> {
        let mut last = held(self.devices.get(unit)?);
        if last.sample.as_ref().is_some_and(|(_, taken)| taken.elapsed() < MIN_INTERVAL) {
            return last.counters.filter(Counters::is_fresh);
        }
        let before = last.sample.take().map(|(sample, _)| sample);
        let answer = self.driver.device(&unit.gpu, CALL, {
            let instance = unit.instance;
            move |device| {
                let after = sample(device, instance)?;
                let counters = before.map(|before| between(&before, &after)).transpose()?;
                Ok((after, counters))
            }
        });
        let (sample, counters) = answer.ok()?;
        *last = Last { sample: Some((sample, Instant::now())), counters };
        last.counters
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
    let fields = profiling().iter().filter_map(|field| Some((field, field.counter.as_ref()?.gpm)));
    let (fields, wanted): (Vec<&Field>, Vec<GpmMetricId>) = fields.unzip();
    let metrics = gpm_metrics_get(after.nvml(), before, after, &wanted)?;
    let mut counters = Counters::new(Instant::now());
    for (field, metric) in fields.into_iter().zip(metrics) {
        if let Ok(metric) = metric {
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
    use super::super::fields::by_id;
    use super::*;

    #[test]
    fn values_are_converted_to_the_units_of_dcgm() {
        let converted = |id, value| as_dcgm(by_id(id).unwrap(), value);
        assert_eq!((converted(1008, 50.0), converted(1012, 50.0)), (0.5, f64::from(50 << 20)));
    }
}
