//! Speeds of jobs that share a GPU.

use super::InterferenceProfile;
use crate::sharing::CollocationMode;

/// By how much several co-runners add more than their sum: the exponent of their number.
const CO_RUNNER_EXPONENT: f64 = 0.11;
/// What each further job costs all: cores, host memory and disks are shared too.
const HOST_COST_PER_JOB: f64 = 0.03;
/// The share of interference that remains between clients of an MPS server: published gains show only that there is less.
const MPS: f64 = 0.7;

/// Jobs that share a GPU, summed up: what one more would meet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CoRunners {
    jobs: u32,
    pressure: f64,
    squares: f64,
    /// What may be added to the pressure.
    doubted: f64,
    /// The sum of SM activities when alone, as far as they are known.
    pub smact: f64,
    /// The sum of DRAM activities when alone, likewise.
    pub drama: f64,
}

impl CoRunners {
    /// Sums over these jobs.
    pub fn of(jobs: impl IntoIterator<Item = InterferenceProfile>) -> Self {
        jobs.into_iter().fold(Self::default(), Self::with)
    }

    /// With one more.
    #[must_use]
    pub fn with(self, job: InterferenceProfile) -> Self {
        Self {
            jobs: self.jobs + 1,
            pressure: self.pressure + job.pressure,
            squares: self.squares + job.pressure * job.pressure,
            doubted: self.doubted + job.pressure * job.doubt,
            smact: self.smact + job.known(job.smact),
            drama: self.drama + job.known(job.drama),
        }
    }

    /// Without one of them.
    #[must_use]
    pub fn without(self, job: InterferenceProfile) -> Self {
        Self {
            jobs: self.jobs.saturating_sub(1),
            pressure: (self.pressure - job.pressure).max(0.0),
            squares: (self.squares - job.pressure * job.pressure).max(0.0),
            doubted: (self.doubted - job.pressure * job.doubt).max(0.0),
            smact: (self.smact - job.known(job.smact)).max(0.0),
            drama: (self.drama - job.known(job.drama)).max(0.0),
        }
    }

    /// How much longer a step of a job takes beside these.
    pub fn slowdown(&self, job: InterferenceProfile, mode: CollocationMode) -> f64 {
        self.slowdown_by(self.pressure, job, mode)
    }

    /// The same if jobs without an estimate have a higher pressure than assumed.
    pub fn worst_slowdown(&self, job: InterferenceProfile, mode: CollocationMode) -> f64 {
        self.slowdown_by(self.pressure + self.doubted, job, mode)
    }

    fn slowdown_by(&self, pressure: f64, job: InterferenceProfile, mode: CollocationMode) -> f64 {
        let host = 1.0 + HOST_COST_PER_JOB * f64::from(self.jobs);
        // A sum minus its last term is not exactly zero.
        if self.squares <= 1e-9 {
            return host;
        }
        let several = (self.pressure * self.pressure / self.squares).max(1.0).powf(CO_RUNNER_EXPONENT);
        let mode = if matches!(mode, CollocationMode::Mps { .. }) { MPS } else { 1.0 };
        host * (1.0 + mode * job.sensitivity * pressure * several)
    }
}

/// The speed of each of these jobs on one GPU, 1 being its speed alone.
///
/// ```
/// use carma_core::{InterferenceProfile, CollocationMode, speeds};
/// let heavy = InterferenceProfile { pressure: 0.8, sensitivity: 1.0, smact: 0.9, drama: 0.4, doubt: 0.0 };
/// let light = InterferenceProfile { pressure: 0.1, ..heavy };
/// let together = speeds(&[heavy, light], CollocationMode::Streams);
/// assert!(together[0] > 0.85 && together[1] < 0.6);
/// ```
pub fn speeds(jobs: &[InterferenceProfile], mode: CollocationMode) -> Vec<f64> {
    let all = CoRunners::of(jobs.iter().copied());
    jobs.iter().map(|job| 1.0 / all.without(*job).slowdown(*job, mode)).collect()
}
