//! Training of the boosted trees over features of the layer graph.

use carma_estimate::learned::{GraphFeatures, GraphTrees};

use crate::data::Observation;
use crate::evaluate::{Folds, k_fold};
use crate::on_all_cores;
use crate::trees::{Loss, Options, grow, quantile};

/// Share of runs that should be below the bound.
const BOUND: f64 = 0.95;
/// Trees for the likely peak.
const LIKELY_TREES: usize = 300;
/// Trees for the bound.
const BOUND_TREES: usize = 100;

/// Trains on features and memories in MiB.
pub fn train(rows: &[(&GraphFeatures, f64)], seed: u64) -> GraphTrees {
    let rows: Vec<(&GraphFeatures, f64)> = rows.iter().map(|(features, memory)| (*features, (memory / features.plain).ln())).collect();
    let grown = |rows: &[&(&GraphFeatures, f64)], loss: Loss, trees: usize| {
        let features: Vec<Vec<f32>> = rows.iter().map(|(features, _)| features.values.clone()).collect();
        let values: Vec<f64> = rows.iter().map(|(_, value)| *value).collect();
        grow(&features, &values, Options { loss, trees, seed, depth: 4, rate: 0.08, ..Options::default() })
    };
    let all: Vec<_> = rows.iter().collect();
    let bound = |rows: &[&(&GraphFeatures, f64)]| grown(rows, Loss::Quantile(BOUND), BOUND_TREES);
    // Trees overfit to their training rows: held-out rows show by how much the bound must be raised.
    let folds = Folds { count: 4, seed };
    let mut short = k_fold(&rows, folds, |seen, _| bound(seen), |trees, (features, value)| value - trees.predict(&features.values));
    let lift = quantile(&mut short, BOUND).max(0.0);
    GraphTrees { likely: grown(&all, Loss::Squared, LIKELY_TREES), bound: bound(&all), lift: lift as f32 }
}

/// Features and measured peak of each observation that has layers. Crashed runs have no peak.
pub fn measured(observations: &[Observation]) -> Vec<(&Observation, GraphFeatures, f64)> {
    let row = |observation: &&Observation| {
        let features = GraphFeatures::of(&observation.model()?, &observation.training());
        Some(features).zip(observation.measured.filter(|memory| *memory > 0.0 && !observation.crashed))
    };
    let all: Vec<&Observation> = observations.iter().collect();
    let rows = on_all_cores(&all, row);
    all.into_iter().zip(rows).filter_map(|(observation, row)| row.map(|(features, memory)| (observation, features, memory))).collect()
}
