//! Fits the model to measured pairs and crowds, and evaluates it on held-out data.

use std::collections::BTreeMap;

use super::least_squares::minimise;
use super::model::{Effect, InterferenceModel, PressureExponents, SensitivityExponents};
use super::observations::{CrowdTrial, PairRun};
use super::score::{Scored, mean_absolute_error};
use crate::catalogue::{Catalogue, WorkloadId};

/// Regularization per unit of each kind of parameter, beside a relative error of 1: weak for exponents, stronger for effects of a
/// family or a workload, so that few observations move them little.
const OF_EXPONENTS: f64 = 0.02;
const OF_FAMILIES: f64 = 0.07;
const OF_WORKLOADS: f64 = 0.15;
/// Published gains show MPS ahead of time slices (up to 5.35 times the throughput with 7 copies of a small model). The pairs do not
/// show by how much.
const MPS: f64 = 0.7;
/// Value without crowds to fit it to; the shipped constants use it.
const CROWD: f64 = 0.11;
const FOLDS: usize = 10;

/// Mean absolute errors of pair times on held-out data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldOut {
    /// A tenth of the pairs held out at a time.
    pub rows: f64,
    /// All pairs of one workload held out at a time.
    pub workloads: f64,
    /// All pairs of one family held out at a time.
    pub families: f64,
}

/// A fitted model and its errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The constants.
    pub model: InterferenceModel,
    /// Mean absolute error on the training data.
    pub fitted: f64,
    /// Errors on held-out data.
    pub held_out: HeldOut,
    /// The mean slowdowns of the crowds.
    pub crowds: Vec<Scored>,
}

/// Positions of the model's parameters in a vector.
struct Layout {
    families: Vec<String>,
    workloads: Vec<WorkloadId>,
}

impl Layout {
    fn of(pairs: &[PairRun], catalogue: &Catalogue) -> Self {
        let mut workloads: Vec<WorkloadId> = pairs.iter().flat_map(|pair| pair.workloads).collect();
        workloads.sort_unstable();
        workloads.dedup();
        let mut families: Vec<String> = workloads.iter().map(|id| catalogue.get(*id).family.clone()).collect();
        families.sort_unstable();
        families.dedup();
        Self { families, workloads }
    }

    const EXPONENTS: usize = 5;

    fn len(&self) -> usize {
        Self::EXPONENTS + 2 * self.families.len() + 2 * self.workloads.len()
    }

    fn weight(&self, place: usize) -> f64 {
        match place {
            0 => 0.0,
            place if place < Self::EXPONENTS => OF_EXPONENTS,
            place if place < Self::EXPONENTS + 2 * self.families.len() => OF_FAMILIES,
            _ => OF_WORKLOADS,
        }
    }

    fn model(&self, parameters: &[f64], catalogue: &Catalogue) -> InterferenceModel {
        let (exponents, effects) = parameters.split_at(Self::EXPONENTS);
        let mut effects = effects.chunks_exact(2).map(|two| Effect { pressure: two[0], sensitivity: two[1] });
        let names = self.workloads.iter().map(|id| catalogue.get(*id).name.clone());
        InterferenceModel {
            level: exponents[0],
            crowd: CROWD,
            mps: MPS,
            pair_deviation: 0.0,
            pressure: PressureExponents { smact_odds: exponents[1], memory: exponents[2] },
            sensitivity: SensitivityExponents { utilisation: exponents[3], memory: exponents[4] },
            families: self.families.iter().cloned().zip(effects.by_ref()).collect(),
            workloads: names.zip(effects).collect(),
        }
    }
}

fn score(model: &InterferenceModel, pairs: &[PairRun], catalogue: &Catalogue) -> Vec<Scored> {
    pairs.iter().flat_map(|pair| model.score_pair(catalogue, pair)).collect()
}

fn fit(pairs: &[PairRun], catalogue: &Catalogue) -> InterferenceModel {
    let layout = Layout::of(pairs, catalogue);
    let mut start = vec![0.0; layout.len()];
    start[0] = -1.0;
    let residuals = |parameters: &[f64]| {
        let model = layout.model(parameters, catalogue);
        let misses = score(&model, pairs, catalogue).into_iter().map(|scored| (scored.predicted / scored.measured).ln());
        misses.chain(parameters.iter().enumerate().map(|(place, value)| layout.weight(place) * value)).collect()
    };
    // Rounded: more digits than the data have only make the constants hard to read.
    let found: Vec<f64> = minimise(start, residuals).into_iter().map(|value| (value * 1e4).round() / 1e4).collect();
    layout.model(&found, catalogue)
}

/// The groups to hold out in turn, as indices of pairs.
fn left_out<Group: Ord>(pairs: &[PairRun], groups: impl Fn(&PairRun) -> Vec<Group>) -> Vec<Vec<usize>> {
    let mut members: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (place, pair) in pairs.iter().enumerate() {
        for group in groups(pair) {
            members.entry(group).or_default().push(place);
        }
    }
    members.into_values().collect()
}

/// The distinct pairings: a pairing measured twice must not be held out and kept at the same time.
fn pairings(pairs: &[PairRun]) -> Vec<[WorkloadId; 2]> {
    let mut pairings: Vec<_> = pairs.iter().map(PairRun::sorted).collect();
    pairings.sort_unstable();
    pairings.dedup();
    pairings
}

fn fold(pairings: &[[WorkloadId; 2]], pair: &PairRun) -> usize {
    pairings.binary_search(&pair.sorted()).unwrap_or_default() % FOLDS
}

/// The crowd exponent that predicts the mean slowdowns best.
fn fit_crowd(model: &InterferenceModel, crowds: &[CrowdTrial], catalogue: &Catalogue) -> f64 {
    let squares = |crowd: f64| -> f64 {
        let model = InterferenceModel { crowd, ..model.clone() };
        crowds.iter().map(|trial| model.score_crowd(catalogue, trial).error().powi(2)).sum()
    };
    let candidates = (0..=100).map(|hundredth| f64::from(hundredth) / 100.0);
    candidates.map(|crowd| (crowd, squares(crowd))).min_by(|a, b| a.1.total_cmp(&b.1)).map_or(CROWD, |(crowd, _)| crowd)
}

/// Deviation of single pairs from the model: the spread of the added slowdown, where it exceeds noise.
fn deviation(scored: &[Scored], alone: impl Iterator<Item = f64>) -> f64 {
    let added = scored.iter().zip(alone).filter_map(|(scored, alone)| {
        let (measured, predicted) = (scored.measured / alone - 1.0, scored.predicted / alone - 1.0);
        (measured > 0.15 && predicted > 0.15).then(|| (measured / predicted).ln())
    });
    let added: Vec<f64> = added.collect();
    if added.is_empty() { 0.0 } else { (added.iter().map(|value| value * value).sum::<f64>() / added.len() as f64).sqrt() }
}

/// Fits the model to measurements of a server.
pub fn calibrate(pairs: &[PairRun], crowds: &[CrowdTrial], catalogue: &Catalogue) -> Calibration {
    calibrate_watched(pairs, crowds, catalogue, |_| ())
}

/// The same; calls back after each fit with the total number of fits.
pub fn calibrate_watched(
    pairs: &[PairRun],
    crowds: &[CrowdTrial],
    catalogue: &Catalogue,
    mut fitted_one: impl FnMut(usize),
) -> Calibration {
    let pairings = pairings(pairs);
    let rows = left_out(pairs, |pair| vec![fold(&pairings, pair)]);
    let workloads = left_out(pairs, |pair| pair.workloads.to_vec());
    let families = left_out(pairs, |pair| pair.workloads.map(|id| catalogue.get(id).family.clone()).to_vec());
    let all = 1 + rows.len() + workloads.len() + families.len();
    let mut model = fit(pairs, catalogue);
    fitted_one(all);
    let scored = score(&model, pairs, catalogue);
    model.pair_deviation = (deviation(&scored, pairs.iter().flat_map(|pair| pair.alone)) * 1e4).round() / 1e4;
    if !crowds.is_empty() {
        model.crowd = fit_crowd(&model, crowds, catalogue);
    }
    // Error on each group, with the model fitted without it.
    let mut error = |groups: Vec<Vec<usize>>| {
        let unseen = groups.into_iter().flat_map(|mut out| {
            out.dedup();
            let (out, rest): (Vec<_>, Vec<_>) = pairs.iter().cloned().enumerate().partition(|(place, _)| out.contains(place));
            let [out, rest] = [out, rest].map(|part| part.into_iter().map(|(_, pair)| pair).collect::<Vec<_>>());
            let scored = score(&fit(&rest, catalogue), &out, catalogue);
            fitted_one(all);
            scored
        });
        mean_absolute_error(&unseen.collect::<Vec<_>>())
    };
    let held_out = HeldOut { rows: error(rows), workloads: error(workloads), families: error(families) };
    let crowds = crowds.iter().map(|trial| model.score_crowd(catalogue, trial)).collect();
    Calibration { model, fitted: mean_absolute_error(&scored), held_out, crowds }
}
