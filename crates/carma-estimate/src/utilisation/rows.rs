//! What is learned from: the features of each measured run and its counters.

use super::features::{Features, features};
use super::solo::SoloRun;
use crate::data::{Family, Observation};
use crate::learning::on_all_cores;

/// Where a measurement comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Set {
    /// Random networks of fully connected layers.
    Mlp,
    /// Random convolutional networks.
    Cnn,
    /// Named workloads alone on a GPU.
    Solo,
}

/// One measured run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) set: Set,
    /// Make of the model, of a named workload: rows of one make are held out together.
    pub(super) make: String,
    pub(super) features: Features,
    /// Kind of network.
    pub(super) kind: Family,
    /// Counters in the order of [`super::Counter::ALL`], where recorded.
    pub(super) measured: [Option<f64>; 4],
}

/// All runs with counters; those that ran out of memory ended too soon to tell.
pub(super) fn rows(observations: &[Observation], solo: &[SoloRun]) -> Vec<Row> {
    let random = |observation: &Observation| {
        let counters = observation.counters.filter(|_| !observation.crashed)?;
        let set = match observation.family? {
            Family::Mlp => Set::Mlp,
            Family::Cnn => Set::Cnn,
            Family::Transformer => return None,
        };
        let model = observation.model()?;
        let (features, kind) = (features(&model, &observation.training()), Family::of(&model));
        Some(Row { set, make: String::new(), features, kind, measured: [Some(counters.smact), Some(counters.smocc), None, None] })
    };
    let named = |run: &SoloRun| Row {
        set: Set::Solo,
        make: run.measured.family().to_owned(),
        features: features(&run.model, &run.training),
        kind: Family::of(&run.model),
        measured: [run.measured.smact, run.measured.smocc, run.measured.drama, run.measured.power_w],
    };
    on_all_cores(observations, random).into_iter().flatten().chain(solo.iter().map(named)).collect()
}
