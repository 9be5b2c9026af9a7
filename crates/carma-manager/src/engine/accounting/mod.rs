//! Accounting: the GPU usage of attempts, sample by sample.

mod ends;
pub(crate) mod minutes;
pub(crate) mod recent;
mod samples;
mod steps;
pub(crate) mod tallies;

use std::path::PathBuf;
use std::sync::Arc;

use carma_core::{AttemptId, DeviceId, Granted, Placement, Time, Utilisation};

pub(crate) use self::ends::ToldEnd;
use self::minutes::Minutes;
use self::recent::Recent;
use self::steps::MemorySteps;
use crate::measure::{DeviceEnergy, Measurement, Meter, Usage};
use crate::saved;
use crate::store::{AttemptUtilisation, Change, Joules, Measured, MemoryStep, UnixMillis};

/// The usage of attempts, and the samples of each GPU.
#[derive(Debug)]
pub(crate) struct Accounting {
    meter: Meter,
    minutes: Minutes,
    recent: Arc<Recent>,
    steps: MemorySteps,
    /// The file of the meter.
    file: PathBuf,
}

/// The total usage of an attempt.
pub(crate) struct Used {
    pub(crate) measurement: Measurement,
    /// Its last memory on each device, if it is not written yet.
    pub(crate) last: Vec<(DeviceId, MemoryStep)>,
}

impl Used {
    /// The changes that write its utilisation over time.
    pub(crate) fn over_time(&self, attempt: AttemptId, now: Time, wall: UnixMillis) -> impl Iterator<Item = Change> {
        let kept = over_time(attempt, &self.measurement, now, wall);
        kept.into_iter().map(move |utilisation| Change::UtilisationKept { utilisation: Box::new(utilisation), ended: wall })
    }

    /// The changes that write its last memory.
    pub(crate) fn last_steps(&self, attempt: AttemptId) -> impl Iterator<Item = Change> + '_ {
        self.last.iter().map(move |(device, step)| Change::MemoryChanged { attempt, device: *device, step: *step })
    }
}

impl Accounting {
    /// Continues from the saved state in this file.
    pub(crate) fn new(file: PathBuf, recent: Arc<Recent>) -> Self {
        Self { meter: saved::read(&file), minutes: Minutes::default(), recent, steps: MemorySteps::default(), file }
    }

    /// Restarts with these attempts.
    pub(crate) fn begin(&mut self, running: &[AttemptId]) {
        self.meter.retain(|attempt| running.contains(&attempt));
        // Steps that were not written are seen again.
        self.steps = MemorySteps::default();
    }

    /// An attempt has ended: takes its usage.
    pub(crate) fn finish(&mut self, attempt: AttemptId) -> Used {
        Used { measurement: self.meter.finish(attempt), last: self.steps.last(attempt) }
    }

    /// The usage of an attempt so far.
    pub(crate) fn so_far(&self, attempt: AttemptId) -> Measurement {
        self.meter.so_far(attempt)
    }

    /// The usage of a device by an attempt so far.
    pub(crate) fn usage(&self, attempt: AttemptId, device: DeviceId) -> Option<&Usage> {
        self.meter.usage(attempt, device)
    }

    /// The split of a device's energy.
    pub(crate) fn energy(&self, device: DeviceId) -> Option<DeviceEnergy> {
        self.meter.energy(device)
    }

    /// Saves the meter, so that it continues after a restart. On a full disk, a part of the energy is lost.
    pub(crate) fn save(&self) {
        let _ = saved::write(&self.file, &self.meter);
    }
}

/// The utilisation of each device by an attempt over time, dated by the wall clock.
pub(crate) fn over_time(attempt: AttemptId, measurement: &Measurement, now: Time, wall: UnixMillis) -> Vec<AttemptUtilisation> {
    let known = measurement.gpus.iter().filter(|(_, usage)| !usage.over_time.is_empty());
    known
        .map(|(device, Usage { over_time, .. })| {
            let since = UnixMillis(wall.0.saturating_sub((now - over_time.since()).milliseconds()));
            AttemptUtilisation { attempt, device: *device, since, span: over_time.span(), utilisation: over_time.columns() }
        })
        .collect()
}

/// The part of a measurement that the store keeps.
pub(crate) fn measured(measurement: &Measurement, placement: &Placement) -> Measured {
    let usage = |granted: &Granted| measurement.gpus.get(&granted.device);
    let fullest = measurement.gpus.values().max_by_key(|usage| usage.peak_memory);
    Measured {
        peaks: placement.devices.iter().map(|granted| usage(granted).map(|usage| usage.peak_memory).unwrap_or_default()).collect(),
        utilisation: fullest.map_or(Utilisation::NONE, Usage::means),
        energy: (!measurement.gpus.is_empty()).then(|| Joules(measurement.energy().joules())),
    }
}
