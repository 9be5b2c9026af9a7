//! Accounting: the GPU usage of attempts, sample by sample.

mod ends;
mod gaps;
pub(crate) mod minutes;
pub(crate) mod recent;
mod samples;
mod steps;
pub(crate) mod tallies;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use carma_core::{AttemptId, DeviceId, Granted, Placement, Time, Utilisation};

pub(crate) use self::ends::ToldEnd;
use self::gaps::Gaps;
use self::minutes::Minutes;
use self::recent::Recent;
use self::steps::MemorySteps;
use crate::executor::Adopted;
use crate::measure::{DeviceEnergy, Measurement, Meter, Millijoules, Usage};
use crate::saved;
use crate::store::{AttemptUtilisation, Change, Joules, Measured, MemoryStep, StoredAttempt, UnixMillis};

/// How often the meter is saved: the most that a crash loses of the division among jobs.
const SAVE_PERIOD: Duration = Duration::from_secs(10);
/// The same where attempts have come or gone.
const SAVE_CHANGED: Duration = Duration::from_secs(1);

/// The usage of attempts, and the samples of each GPU.
#[derive(Debug)]
pub(crate) struct Accounting {
    meter: Meter,
    /// The meter as it was last saved. Counters are shown as saved, so that they never go back after a crash.
    saved: Meter,
    save: SaveTime,
    /// When the last samples came.
    sampled: Option<SystemTime>,
    gaps: Gaps,
    minutes: Minutes,
    recent: Arc<Recent>,
    steps: MemorySteps,
    /// The file of the meter.
    file: PathBuf,
}

/// When the meter is saved next.
#[derive(Debug)]
struct SaveTime {
    last: Option<Instant>,
    /// The samples that are saved.
    samples: Option<SystemTime>,
    /// Attempts have come or gone since.
    changed: bool,
}

impl SaveTime {
    fn is_due(&self) -> bool {
        let period = if self.changed { SAVE_CHANGED } else { SAVE_PERIOD };
        self.last.is_none_or(|last| last.elapsed() >= period)
    }
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
        let meter: Meter = saved::read(&file);
        // It is saved with the last samples.
        let sampled = fs::metadata(&file).and_then(|data| data.modified()).ok();
        Self {
            saved: meter.clone(),
            meter,
            save: SaveTime { last: None, samples: sampled, changed: false },
            sampled,
            gaps: Gaps::default(),
            minutes: Minutes::default(),
            recent,
            steps: MemorySteps::default(),
            file,
        }
    }

    /// Restarts with these attempts.
    pub(crate) fn begin(&mut self, attempts: &[(&StoredAttempt, Adopted)], speed: f64) {
        self.meter.retain(|attempt| attempts.iter().any(|(stored, _)| stored.attempt == attempt));
        if let Some(sampled) = self.sampled {
            self.gaps = Gaps::since(sampled, self.meter.devices(), attempts, speed);
        }
        // Steps that were not written are seen again.
        self.steps = MemorySteps::default();
    }

    /// The counter of a GPU after a time without samples: its energy since the last is divided among the attempts that were there.
    pub(crate) fn bridge(&mut self, device: DeviceId, now: Time, counter: Option<Millijoules>) {
        if let Some(gap) = self.gaps.take(device) {
            self.meter.bridge(device, now, counter, &gap);
        }
    }

    /// An attempt has ended: its usage. It is kept until the end is on the disk.
    pub(crate) fn finish(&mut self, attempt: AttemptId) -> Used {
        Used { measurement: self.meter.so_far(attempt), last: self.steps.last(attempt) }
    }

    /// The end of an attempt is on the disk.
    pub(crate) fn forget(&mut self, attempt: AttemptId) {
        self.meter.forget(attempt);
        self.save.changed = true;
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

    /// The usage of GPUs as it was last saved.
    pub(crate) const fn saved(&self) -> &Meter {
        &self.saved
    }

    /// Saves the meter, so that it continues after a restart. On a full disk, the division of the energy since the last time is lost.
    pub(crate) fn save(&mut self) {
        // Without new samples, the time of the file stays that of the last.
        if self.sampled == self.save.samples {
            return;
        }
        self.save = SaveTime { last: Some(Instant::now()), samples: self.sampled, changed: false };
        if saved::write(&self.file, &self.meter).is_ok() {
            self.saved = self.meter.clone();
        }
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
