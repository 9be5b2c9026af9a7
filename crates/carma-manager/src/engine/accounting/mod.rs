//! Accounting: what attempts use of their GPUs, sample by sample, and what is kept of it.

pub(crate) mod minutes;
pub(crate) mod recent;
mod samples;
mod steps;
pub(crate) mod tallies;

use std::path::PathBuf;
use std::sync::Arc;

use carma_core::{AttemptId, DeviceId, Granted, Placement, Utilisation};

use self::minutes::Minutes;
use self::recent::Recent;
use self::steps::MemorySteps;
use super::saved;
use crate::measure::{DeviceEnergy, Measurement, Meter, Usage};
use crate::store::{Change, Joules, Measured, MemoryStep};

/// What attempts use, and what was seen of each GPU.
#[derive(Debug)]
pub(crate) struct Accounting {
    meter: Meter,
    minutes: Minutes,
    recent: Arc<Recent>,
    steps: MemorySteps,
    /// Where the meter is saved.
    file: PathBuf,
}

/// What an attempt has used in all.
pub(crate) struct Used {
    pub(crate) measurement: Measurement,
    /// Its last memory on each device, where that is not written yet.
    pub(crate) last: Vec<(DeviceId, MemoryStep)>,
}

impl Used {
    /// The changes that write down the last of it.
    pub(crate) fn last_steps(&self, attempt: AttemptId) -> impl Iterator<Item = Change> + '_ {
        self.last.iter().map(move |(device, step)| Change::MemoryChanged { attempt, device: *device, step: *step })
    }
}

impl Accounting {
    /// Goes on from what was saved in this file.
    pub(crate) fn new(file: PathBuf, recent: Arc<Recent>) -> Self {
        Self { meter: saved::read(&file), minutes: Minutes::default(), recent, steps: MemorySteps::default(), file }
    }

    /// Restarts with these attempts.
    pub(crate) fn begin(&mut self, running: &[AttemptId]) {
        self.meter.retain(|attempt| running.contains(&attempt));
        // Steps that were not written are seen again.
        self.steps = MemorySteps::default();
    }

    /// An attempt has ended: what it used, which is forgotten here.
    pub(crate) fn finish(&mut self, attempt: AttemptId) -> Used {
        Used { measurement: self.meter.finish(attempt), last: self.steps.last(attempt) }
    }

    /// What an attempt has used so far.
    pub(crate) fn so_far(&self, attempt: AttemptId) -> Measurement {
        self.meter.so_far(attempt)
    }

    /// What an attempt has used of a device so far.
    pub(crate) fn usage(&self, attempt: AttemptId, device: DeviceId) -> Option<&Usage> {
        self.meter.usage(attempt, device)
    }

    /// Where a device's energy went.
    pub(crate) fn energy(&self, device: DeviceId) -> Option<DeviceEnergy> {
        self.meter.energy(device)
    }

    /// Saves the meter, so that it goes on after a restart. On a full disk, a part of the energy is forgotten.
    pub(crate) fn save(&self) {
        let _ = saved::write(&self.file, &self.meter);
    }
}

/// What is kept of what an attempt used.
pub(crate) fn measured(measurement: &Measurement, placement: &Placement) -> Measured {
    let usage = |granted: &Granted| measurement.gpus.get(&granted.device);
    let fullest = measurement.gpus.values().max_by_key(|usage| usage.peak_memory);
    Measured {
        peaks: placement.devices.iter().map(|granted| usage(granted).map(|usage| usage.peak_memory).unwrap_or_default()).collect(),
        utilisation: fullest.map_or(Utilisation::NONE, Usage::means),
        energy: (!measurement.gpus.is_empty()).then(|| Joules(measurement.energy().joules())),
    }
}
