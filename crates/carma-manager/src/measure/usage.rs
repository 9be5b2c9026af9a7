//! What an attempt took of one GPU so far.

use carma_core::{Fraction, MiB, Seconds, Watts};
use serde::{Deserialize, Serialize};

use super::energy::Millijoules;
use super::look::Activity;
use super::share::Basis;

/// What an attempt took of a GPU, or what is taken to be its part.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// The most memory that was seen.
    pub peak_memory: MiB,
    /// Time that was watched.
    pub watched: Seconds,
    /// Time that multiprocessors had work.
    pub smact: Level,
    /// Its part of that time when last seen; unset where it was not there, or nothing was told.
    #[serde(default)]
    pub smact_now: Option<Fraction>,
    /// Warps resident on multiprocessors.
    pub smocc: Level,
    /// Time that the memory was read or written.
    pub drama: Level,
    /// Time that a kernel ran.
    pub utilisation: Level,
    /// Its part of the energy.
    pub energy: Millijoules,
    /// The least sure of what its parts go by.
    pub basis: Basis,
}

/// A share of something over time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Level {
    /// The highest that was seen.
    pub peak: Fraction,
    weighted: f64,
    over: Seconds,
}

impl Level {
    /// The mean; unset where nothing was seen.
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
    /// Mean power; unset where nothing was seen of it.
    pub fn power(&self) -> Option<Watts> {
        let known = self.watched > Seconds::ZERO && self.energy > Millijoules::default();
        known.then(|| Watts(self.energy.joules() / self.watched.get()))
    }

    /// Adds its share of what a GPU did in the time before a look.
    pub(super) fn add(&mut self, activity: &Activity, share: f64, span: Seconds) {
        self.smact_now = activity.smact.map(|smact| Fraction::clamped(smact.get() * share));
        self.smact.add(activity.smact, share, span);
        self.smocc.add(activity.smocc, share, span);
        self.drama.add(activity.drama, share, span);
        self.utilisation.add(activity.utilisation, share, span);
    }
}
