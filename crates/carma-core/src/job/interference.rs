//! The observed interference of a job, beyond the prediction from its counters.

use serde::{Deserialize, Serialize};

/// Observed divided by predicted interference of an attempt: factors on its pressure and its sensitivity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Interference {
    /// On what it does to others.
    pub pressure: f64,
    /// On what others do to it.
    pub sensitivity: f64,
}

/// Smaller differences between slowdowns are noise: nothing is learned from them.
const LEAST: f64 = 0.05;
/// Whatever was seen, a forecast is not changed by a smaller or a larger factor.
const FACTORS: std::ops::RangeInclusive<f64> = 0.5..=4.0;

impl Default for Interference {
    fn default() -> Self {
        Self { pressure: 1.0, sensitivity: 1.0 }
    }
}

impl Interference {
    /// The least that others do to any job, as a share of the prediction from its counters.
    pub(crate) const LEAST_SENSITIVITY: f64 = *FACTORS.start();

    /// As forecasts were right.
    pub fn is_as_predicted(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the factors are such as can be learned.
    pub fn is_sensible(&self) -> bool {
        [self.pressure, self.sensitivity].iter().all(|factor| FACTORS.contains(factor))
    }

    /// The factor by which the predictions for both sides were wrong: half of what is left to explain lies with the one that was slowed
    /// down, half with those that slowed it.
    ///
    /// ```
    /// use carma_core::Interference;
    /// assert!((Interference::misjudged(1.4, 1.4) - 1.0).abs() < 1e-9);
    /// assert!((Interference::misjudged(1.9, 1.1) - 3.0).abs() < 1e-9);
    /// assert!(Interference::misjudged(1.1, 1.5) < 0.6);
    /// ```
    pub fn misjudged(seen: f64, predicted: f64) -> f64 {
        let lost = |slowdown: f64| (slowdown - 1.0).max(LEAST);
        (lost(seen) / lost(predicted)).sqrt().clamp(*FACTORS.start(), *FACTORS.end())
    }

    /// Corrects a factor by another, within bounds.
    pub(crate) fn correct(factor: &mut f64, by: f64) {
        *factor = (*factor * by).clamp(*FACTORS.start(), *FACTORS.end());
    }

    /// What these factors are of others.
    pub(crate) fn over(self, others: Self) -> Self {
        Self { pressure: self.pressure / others.pressure, sensitivity: self.sensitivity / others.sensitivity }
    }
}
