//! The usage of one GPU by an attempt so far.

use carma_core::{Fraction, Metric, MiB, PerMetric, Seconds, Time, Utilisation, Watts};
use serde::{Deserialize, Serialize};

use super::energy::Millijoules;
use super::over_time::OverTime;
use super::share::Basis;

/// The usage of a GPU by an attempt, measured or by its share.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// The peak memory.
    pub peak_memory: MiB,
    /// The sampled time.
    pub watched: Seconds,
    /// Its part of each metric.
    #[serde(flatten)]
    pub levels: PerMetric<Level>,
    /// Its part of SMACT in the last sample; unset if it was absent, or SMACT is unknown.
    #[serde(default)]
    pub smact_now: Option<Fraction>,
    /// Its part of each metric over time.
    #[serde(default)]
    pub over_time: OverTime,
    /// Its part of the energy.
    pub energy: Millijoules,
    /// The least reliable basis of its shares.
    pub basis: Basis,
}

/// A share of something over time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Level {
    /// The highest value.
    pub peak: Fraction,
    weighted: f64,
    over: Seconds,
}

impl Level {
    /// The mean; unset without values.
    pub fn mean(&self) -> Option<Fraction> {
        (self.over > Seconds::ZERO).then(|| Fraction::clamped(self.weighted / self.over.get()))
    }

    fn add(&mut self, value: Option<Fraction>, share: f64, span: Seconds) {
        let Some(value) = value.map(|value| Fraction::clamped(value.get() * share)) else { return };
        self.peak = self.peak.max(value);
        self.weighted += value.get() * span.get();
        self.over = self.over + span;
    }
}

impl Usage {
    /// Mean power; unset if unknown.
    pub fn power(&self) -> Option<Watts> {
        let known = self.watched > Seconds::ZERO && self.energy > Millijoules::default();
        known.then(|| Watts(self.energy.joules() / self.watched.get()))
    }

    /// The mean of each metric; unset if it was never known.
    pub fn means(&self) -> Utilisation {
        self.levels.map(|level| level.mean())
    }

    /// Adds its share of a GPU's activity in the time before a sample.
    pub(super) fn add(&mut self, at: Time, utilisation: &Utilisation, share: f64, span: Seconds) {
        self.over_time.add(at, utilisation, share);
        self.smact_now = utilisation[Metric::Smact].map(|smact| Fraction::clamped(smact.get() * share));
        for (metric, level) in self.levels.iter_mut() {
            level.add(utilisation[metric], share, span);
        }
    }
}
