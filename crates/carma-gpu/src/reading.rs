//! One reading of a device from NVML.

use std::collections::BTreeSet;

use carma_core::{Fraction, Metric, MiB, Sample, Time, Utilisation, Watts};
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use serde::{Deserialize, Serialize};

use crate::error::sensed;
use crate::processes::{GpuProcess, processes};
use crate::profiling::Counters;
use crate::throttling::{Throttling, throttling};

/// A reading of a device. Values that the device does not offer are absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Memory in use by all processes, without the driver's reserve.
    pub memory_used: MiB,
    /// The whole memory, with the driver's reserve.
    pub memory_total: MiB,
    /// Share of time at least one kernel ran.
    pub utilisation: Option<Fraction>,
    /// Power drawn.
    pub power: Option<Watts>,
    /// Energy since the driver was loaded, in joules.
    pub energy: Option<f64>,
    /// Degrees Celsius.
    pub temperature: Option<u32>,
    /// Clock of the multiprocessors in MHz.
    pub clock: Option<u32>,
    /// Uncorrected memory errors since the driver was loaded.
    pub uncorrected: Option<u64>,
    /// Why it runs below its clocks, if it does.
    #[serde(default)]
    pub throttling: BTreeSet<Throttling>,
    /// Processes on it.
    pub processes: Vec<GpuProcess>,
}

/// Reads a GPU or an instance of one. Instances have no own power or utilisation.
pub(crate) fn read(device: &Device<'_>) -> Result<Reading, NvmlError> {
    let memory = device.memory_info()?;
    Ok(Reading {
        memory_used: MiB(memory.used >> 20),
        memory_total: MiB(memory.total >> 20),
        utilisation: sensed(device.utilization_rates())?.map(|rates| Fraction::clamped(f64::from(rates.gpu) / 100.0)),
        power: sensed(device.power_usage())?.map(|milliwatts| Watts(f64::from(milliwatts) / 1000.0)),
        energy: sensed(device.total_energy_consumption())?.map(|millijoules| millijoules as f64 / 1000.0),
        temperature: sensed(device.temperature(TemperatureSensor::Gpu))?,
        clock: sensed(device.clock_info(Clock::SM))?,
        uncorrected: sensed(device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile))?,
        throttling: throttling(device)?.unwrap_or_default(),
        processes: processes(device)?,
    })
}

impl Reading {
    /// Memory in use that no listed process holds: contexts that the driver does not list, or leaked memory. Unset if the driver does not
    /// report the memory of processes.
    pub fn unaccounted(&self) -> Option<MiB> {
        let held = self.processes.iter().map(|process| process.memory).sum::<Option<MiB>>()?;
        Some(self.memory_used - held)
    }

    /// The sample for the decision core, with the profiling counters of the same moment if there are any.
    pub fn sample(&self, at: Time, counters: Option<&Counters>) -> Sample {
        let profiled = counters.map_or(Utilisation::NONE, Counters::utilisation);
        let utilisation = profiled.with(Metric::Utilisation, self.utilisation);
        Sample { at, memory_used: self.memory_used, utilisation, power: self.power }
    }
}
