//! A job's part in interference, as far as it is known.

use serde::{Deserialize, Serialize};

use crate::job::{Interference, JobSpec, PerRank};
use crate::telemetry::Metric;
use crate::units::MiB;

/// The interference of a rank with others on its GPU, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct InterferenceProfile {
    /// What it adds to the slowdown of a job of sensitivity 1.
    pub pressure: f64,
    /// How much of others' pressure it feels.
    pub sensitivity: f64,
    /// SM activity when alone.
    pub smact: f64,
    /// DRAM activity when alone.
    pub drama: f64,
    /// By what share its pressure may be higher than that, because nothing was seen or estimated.
    pub doubt: f64,
}

/// SM activity of a job without an estimate: the mean of published workloads, weighted by runtime.
const UNKNOWN_SMACT: f64 = 0.6;
/// Relative uncertainty of the pressure of such a job.
const UNKNOWN_DOUBT: f64 = 0.5;
/// Memory of a job without an estimate.
const UNKNOWN_MEMORY: MiB = MiB(8192);

// Fitted to published pairs with counters blurred by 30 % and memory by 10 %, as estimates are. Then memory predicts the
// pressure best, since larger batches make longer kernels, and nothing predicts the sensitivity.
/// The logarithm of the pressure of a job of 4 GiB that keeps no SM busy.
const BASE_PRESSURE: f64 = -2.62;
/// What SM activity adds to it.
const SMACT_WEIGHT: f64 = 1.39;
/// The exponent of memory.
const SIZE_EXPONENT: f64 = 0.78;
/// No job was measured to press harder.
const MAX_PRESSURE: f64 = 1.0;

impl InterferenceProfile {
    /// A job that does nothing.
    pub const IDLE: Self = Self { pressure: 0.0, sensitivity: 0.0, smact: 0.0, drama: 0.0, doubt: 0.0 };

    /// The expected load of a job's largest rank, from its estimates and from earlier runs.
    ///
    /// ```
    /// use carma_core::{InterferenceProfile, JobId, JobSpec, MemoryNeed, Metric, MiB, Utilisation};
    /// let job = |smact, memory| JobSpec {
    ///     utilisation: Utilisation::of([(Metric::Smact, smact)]),
    ///     memory: MemoryNeed::known(MiB(memory)),
    ///     ..JobSpec::new(JobId(1))
    /// };
    /// assert!(InterferenceProfile::of(&job(0.9, 20_000)).pressure > 5.0 * InterferenceProfile::of(&job(0.2, 3_000)).pressure);
    /// ```
    pub fn of(spec: &JobSpec) -> Self {
        let known = spec.memory.known.iter().flat_map(PerRank::values).copied().max();
        let estimated = spec.memory.estimated.iter().flat_map(PerRank::values).map(|estimate| estimate.expected).max();
        let memory = known.or(estimated).unwrap_or(UNKNOWN_MEMORY);
        let utilisation = spec.utilisation;
        let activity = utilisation[Metric::Smact].or(utilisation[Metric::Utilisation]);
        let doubt = if activity.is_some() { 0.0 } else { UNKNOWN_DOUBT };
        let smact = activity.map_or(UNKNOWN_SMACT, f64::from);
        let drama = utilisation[Metric::Drama].map_or(0.4 * smact, f64::from);
        let size = (memory.0.max(256) as f64 / 4096.0).ln();
        let pressure = (BASE_PRESSURE + SMACT_WEIGHT * smact + SIZE_EXPONENT * size).min(MAX_PRESSURE).exp();
        Self { pressure, sensitivity: 1.0, smact, drama, doubt }.times(spec.interference)
    }

    /// Its contribution to sums of activity: an unknown activity does not keep other jobs off.
    pub(super) fn known(&self, activity: f64) -> f64 {
        if self.doubt > 0.0 { 0.0 } else { activity }
    }

    /// The same with what was seen of its part in interference.
    #[must_use]
    pub fn times(self, seen: Interference) -> Self {
        Self { pressure: self.pressure * seen.pressure, sensitivity: self.sensitivity * seen.sensitivity, ..self }
    }
}
