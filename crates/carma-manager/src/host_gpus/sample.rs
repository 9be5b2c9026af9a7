//! A sample of a device.

use std::collections::HashMap;

use carma_core::{AttemptId, DeviceId, Metric, Time, Utilisation};
use carma_gpu::profiling::{Counters, Source};
use carma_gpu::{DriverError, ProcessActivity, Reading};

/// A sample of a device.
#[derive(Debug)]
pub(crate) struct GpuSample {
    pub(crate) device: DeviceId,
    pub(crate) at: Time,
    pub(crate) reading: Result<Reading, DriverError>,
    pub(crate) counters: Option<Counters>,
    /// Activity of each process; unset if it was not requested.
    pub(crate) activity: Option<ProcessActivity>,
    pub(crate) source: Source,
    /// The attempts of its processes, where an agent looked them up; unset: they are looked up on this host.
    pub(crate) owners: Option<HashMap<u32, AttemptId>>,
    /// The MPS server on it. It belongs to no job, and is no foreign process.
    pub(crate) mps_server: Option<u32>,
}

impl GpuSample {
    /// The utilisation in this sample.
    pub(crate) fn utilisation(&self) -> Utilisation {
        let profiled = self.counters.as_ref().map_or(Utilisation::NONE, Counters::utilisation);
        profiled.with(Metric::Utilisation, self.reading.as_ref().ok().and_then(|reading| reading.utilisation))
    }
}
