//! What was learned: trees for the counters of multiprocessors, straight lines for memory and power.

use std::sync::OnceLock;

use carma_core::{Fraction, Watts};
use serde::{Deserialize, Serialize};

use super::estimate::{Estimated, Utilisation};
use super::features::Features;
use super::ridge::Ridge;
use super::rows::{Row, Set, rows};
use super::solo::SoloRun;
use super::{Counter, HeldOut, held_out};
use crate::data::{Family, Observation};
use crate::learning::boosted_trees::{BoostedTrees, Loss, Options};

/// How often a named workload counts against a random network: there are few of them, and they are what users run.
const COPIES: usize = 5;

/// Predictors of the four counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Predictors {
    smact: BoostedTrees,
    smocc: BoostedTrees,
    drama: Ridge,
    power: Ridge,
}

impl Predictors {
    /// Learns from some rows.
    pub(super) fn fit(rows: &[&Row], seed: u64) -> Self {
        let copies = |row: &Row| if row.set == Set::Solo { COPIES } else { 1 };
        let trees = |counter: Counter| {
            let known = rows.iter().filter_map(|row| row.measured[counter as usize].map(|value| (row, value)));
            let (inputs, values): (Vec<Vec<f32>>, Vec<f64>) =
                known.flat_map(|(row, value)| std::iter::repeat_n((row.features.values(), value), copies(row))).unzip();
            let options = Options { loss: Loss::Squared, trees: 200, rate: 0.06, depth: 4, seed, ..Options::default() };
            BoostedTrees::grow(&inputs, &values, options)
        };
        // Lines are drawn over what was measured: what activity means for memory and power does not depend on how well it is foreseen.
        let line = |counter: Counter| {
            let (inputs, values): (Vec<_>, Vec<_>) = rows
                .iter()
                .filter_map(|row| match (row.measured[0], row.measured[1], row.measured[counter as usize]) {
                    (Some(smact), Some(smocc), Some(value)) => Some((activity(&row.features, smact, smocc), value)),
                    _ => None,
                })
                .unzip();
            Ridge::fit(&inputs, &values)
        };
        Self { smact: trees(Counter::Smact), smocc: trees(Counter::Smocc), drama: line(Counter::Drama), power: line(Counter::Power) }
    }

    /// Likely values in the order of [`Counter::ALL`].
    pub(super) fn predict(&self, features: &Features) -> [f64; 4] {
        let values = features.values();
        let share = |value: f64| value.clamp(0.0, 1.0);
        let smact = share(self.smact.predict(&values));
        // A multiprocessor with warps has work.
        let smocc = share(self.smocc.predict(&values)).min(smact);
        let activity = activity(features, smact, smocc);
        [smact, smocc, share(self.drama.predict(&activity)), self.power.predict(&activity).max(0.0)]
    }
}

/// What memory traffic and power follow: how active the device is, and how much of that is waiting for memory.
fn activity(features: &Features, smact: f64, smocc: f64) -> [f64; 3] {
    [smact, smocc, smact * features.memory_busy]
}

/// How far measured values lie from likely ones: nine of ten between these.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Spread {
    pub(super) below: f64,
    pub(super) above: f64,
}

/// A learned estimator of utilisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    predictors: Predictors,
    /// By kind of network, then by counter.
    spreads: Vec<[Spread; 4]>,
}

/// Learns from random networks and named workloads with counters. The same rows and seed give the same estimator.
pub fn train(observations: &[Observation], solo: &[SoloRun], seed: u64) -> Learned {
    train_and_evaluate(observations, solo, seed).0
}

/// [`train`] and [`super::evaluate`] in one: the ranges of the first are told by the same held-out runs as the errors of the second.
pub fn train_and_evaluate(observations: &[Observation], solo: &[SoloRun], seed: u64) -> (Learned, Vec<HeldOut>) {
    let rows = rows(observations, solo);
    let answers = held_out::answers(&rows, seed);
    let spreads = Family::ALL.map(|kind| Counter::ALL.map(|counter| held_out::spread(&rows, &answers, kind, counter))).to_vec();
    let learned = Learned { predictors: Predictors::fit(&rows.iter().collect::<Vec<_>>(), seed), spreads };
    (learned, held_out::errors(&rows, &answers, seed))
}

impl Learned {
    /// The one that ships.
    pub fn shipped() -> &'static Self {
        static READ: OnceLock<Learned> = OnceLock::new();
        // A test reads the same file: what cannot be read never ships. One that knows nothing would answer with all there is.
        READ.get_or_init(|| Self::read(include_str!("../../weights/utilisation.json")).unwrap_or_else(|_| train(&[], &[], 0)))
    }

    /// Reads what [`Self::write`] wrote.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// As the file of weights.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self).map(|text| text + "\n")
    }

    /// The estimate for a kind of network with these features.
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
    /// Where nothing is known: all there is.
    pub(super) fn unknown(counter: Counter) -> Self {
        let most = if counter == Counter::Power { 400.0 } else { 1.0 };
        Self { below: most, above: most }
    }
}
