//! A learner over the layer graph in the manner of `DNNPerf`: features of nodes and edges, and a regression of the logarithm of memory.
//!
//! Boosted trees stand in for the graph network: they learn how far memory lies from a plain count of weights and activations.

mod graph;

pub use graph::{GraphFeatures, NAMES};

use serde::{Deserialize, Serialize};

use crate::data::Observation;
use crate::learning::boosted_trees::{BoostedTrees, Loss, Options, quantile};
use crate::learning::evaluate::{Folds, k_fold};
use crate::learning::on_all_cores;
use crate::model::Model;
use crate::training::Training;

/// Share of runs that should lie below the bound.
const BOUND: f64 = 0.95;

/// Trees for the likely peak, and for a bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DnnPerf {
    likely: BoostedTrees,
    bound: BoostedTrees,
    /// What the bound is lifted by, as a logarithm.
    lift: f32,
}

impl DnnPerf {
    /// Learns from features and memories in MiB.
    pub fn train(rows: &[(&GraphFeatures, f64)], seed: u64) -> Self {
        let rows: Vec<(&GraphFeatures, f64)> = rows.iter().map(|(features, memory)| (*features, (memory / features.plain).ln())).collect();
        let grow = |rows: &[&(&GraphFeatures, f64)], loss: Loss, trees: usize| {
            let features: Vec<Vec<f32>> = rows.iter().map(|(features, _)| features.values.clone()).collect();
            let values: Vec<f64> = rows.iter().map(|(_, value)| *value).collect();
            BoostedTrees::grow(&features, &values, Options { loss, trees, seed, depth: 4, rate: 0.08, ..Options::default() })
        };
        let all: Vec<_> = rows.iter().collect();
        let bound = |rows: &[&(&GraphFeatures, f64)]| grow(rows, Loss::Quantile(BOUND), BOUND_TREES);
        // Trees know the rows they were grown from too well: how far a bound must be lifted is told by rows that it has not seen.
        let unseen = Folds { count: 4, seed };
        let mut short = k_fold(&rows, unseen, |seen, _| bound(seen), |trees, (features, value)| value - trees.predict(&features.values));
        let lift = quantile(&mut short, BOUND).max(0.0);
        Self { likely: grow(&all, Loss::Squared, LIKELY_TREES), bound: bound(&all), lift: lift as f32 }
    }

    /// Likely peak, and a bound that is no lower, in MiB.
    pub fn predict(&self, features: &GraphFeatures) -> (f64, f64) {
        let of = |trees: &BoostedTrees, lift: f32| features.plain * (trees.predict(&features.values) + f64::from(lift)).exp();
        let likely = of(&self.likely, 0.0);
        (likely, of(&self.bound, self.lift).max(likely))
    }

    /// The same for a model as it is trained.
    pub fn predict_model(&self, model: &Model, training: &Training) -> (f64, f64) {
        self.predict(&GraphFeatures::of(model, training))
    }
}

/// Trees for the likely peak.
const LIKELY_TREES: usize = 300;
/// Trees for the bound.
const BOUND_TREES: usize = 100;

/// Features of each observation that has layers and a measured peak; crashed runs have none.
pub fn measured(observations: &[Observation]) -> Vec<(&Observation, GraphFeatures, f64)> {
    let row = |observation: &&Observation| {
        let features = GraphFeatures::of(&observation.model()?, &observation.training());
        Some(features).zip(observation.measured.filter(|memory| *memory > 0.0 && !observation.crashed))
    };
    let all: Vec<&Observation> = observations.iter().collect();
    let rows = on_all_cores(&all, row);
    all.into_iter().zip(rows).filter_map(|(observation, row)| row.map(|(features, memory)| (observation, features, memory))).collect()
}
