//! The learned estimator of utilisation: trees for SMACT and SMOCC, linear regressions for memory and power.

use std::sync::OnceLock;

use carma_core::{Fraction, Watts};
use serde::{Deserialize, Serialize};

use super::estimate::{Counter, Estimated, Utilisation};
use super::features::Features;
use super::ridge::Ridge;
use crate::family::Family;
use crate::learned::BoostedTrees;

/// Predictors of the four counters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Predictors {
    /// Share of time that multiprocessors are active.
    pub smact: BoostedTrees,
    /// Share of warp slots in use.
    pub smocc: BoostedTrees,
    /// Share of time that memory is busy.
    pub drama: Ridge,
    /// Power in watts.
    pub power: Ridge,
}

impl Predictors {
    /// Likely values in the order of [`Counter::ALL`].
    pub fn predict(&self, features: &Features) -> [f64; 4] {
        let values = features.values();
        let share = |value: f64| value.clamp(0.0, 1.0);
        let smact = share(self.smact.predict(&values));
        // Occupancy is at most activity: a multiprocessor with warps is active.
        let smocc = share(self.smocc.predict(&values)).min(smact);
        let activity = activity(features, smact, smocc);
        [smact, smocc, share(self.drama.predict(&activity)), self.power.predict(&activity).max(0.0)]
    }
}

/// Inputs of the regressions for memory traffic and power: activity of the device, and its memory-bound share.
pub fn activity(features: &Features, smact: f64, smocc: f64) -> [f64; 3] {
    [smact, smocc, smact * features.memory_busy]
}

/// Range around a prediction that contains nine of ten measured values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Downwards.
    pub below: f64,
    /// Upwards.
    pub above: f64,
}

/// A trained estimator of utilisation. Without training, its ranges cover all values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Predictors of the counters.
    pub predictors: Predictors,
    /// By family, then by counter.
    pub spreads: Vec<[Spread; 4]>,
}

impl Learned {
    /// The shipped estimator.
    pub fn shipped() -> &'static Self {
        static READ: OnceLock<Learned> = OnceLock::new();
        // A test reads the same file, so the default never applies.
        READ.get_or_init(|| Self::read(include_str!("../../weights/utilisation.json")).unwrap_or_default())
    }

    /// Reads a file of weights.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Writes a file of weights.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self).map(|text| text + "\n")
    }

    /// The estimate for a network of this family and these features.
    pub fn estimate(&self, features: &Features, kind: Family) -> Utilisation {
        let likely = self.predictors.predict(features);
        let spreads = Family::ALL.iter().position(|known| *known == kind).and_then(|place| self.spreads.get(place));
        let around = |counter: Counter| {
            let point = likely[counter as usize];
            let spread = spreads.map_or(Spread::unknown(counter), |spreads| spreads[counter as usize]);
            (point, point - spread.below, point + spread.above)
        };
        let share = |counter: Counter| {
            let (point, low, high) = around(counter);
            Estimated { point, low, high }.map(Fraction::clamped)
        };
        let (point, low, high) = around(Counter::Power);
        Utilisation {
            smact: share(Counter::Smact),
            smocc: share(Counter::Smocc),
            drama: share(Counter::Drama),
            power: Estimated { point, low, high }.map(|watts| Watts(watts.max(0.0))),
        }
    }
}

impl Spread {
    /// The whole range, for an unknown value.
    pub fn unknown(counter: Counter) -> Self {
        let most = if counter == Counter::Power { 400.0 } else { 1.0 };
        Self { below: most, above: most }
    }
}
