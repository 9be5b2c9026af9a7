//! Training of the estimator of utilisation, with its spreads from held-out runs.

use carma_estimate::Family;
use carma_estimate::utilisation::{Counter, Learned};

use super::fit::fit;
use super::held_out::{self, HeldOut};
use super::rows::rows;
use super::solo::SoloRun;
use crate::data::Observation;

/// Trains on random networks and named workloads with counters. The same rows and seed give the same estimator.
pub fn train(observations: &[Observation], solo: &[SoloRun], seed: u64) -> Learned {
    train_and_evaluate(observations, solo, seed).0
}

/// [`train`] and [`super::evaluate`] in one: ranges and errors come from the same held-out runs.
pub fn train_and_evaluate(observations: &[Observation], solo: &[SoloRun], seed: u64) -> (Learned, Vec<HeldOut>) {
    let rows = rows(observations, solo);
    let answers = held_out::answers(&rows, seed);
    let spreads = Family::ALL.map(|family| Counter::ALL.map(|counter| held_out::spread(&rows, &answers, family, counter))).to_vec();
    let learned = Learned { predictors: fit(&rows.iter().collect::<Vec<_>>(), seed), spreads };
    (learned, held_out::errors(&rows, &answers, seed))
}
