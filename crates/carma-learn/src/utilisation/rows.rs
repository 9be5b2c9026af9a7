//! Training rows: features and counters of each measured run.

use carma_estimate::Family;
use carma_estimate::utilisation::{Features, features};

use super::solo::SoloRun;
use crate::data::Observation;
use crate::on_all_cores;

/// Source of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Set {
    /// Random networks of fully connected layers.
    Mlp,
    /// Random convolutional networks.
    Cnn,
    /// Named workloads on an exclusive GPU.
    Solo,
}

/// One measured run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) set: Set,
    /// Model type of a named workload: rows of one type are held out together.
    pub(super) make: String,
    pub(super) features: Features,
    pub(super) family: Family,
    /// Counters in the order of [`carma_estimate::utilisation::Counter::ALL`], where recorded.
    pub(super) measured: [Option<f64>; 4],
}

/// All runs with counters. Skips runs that ran out of memory, because they ended too early.
pub(super) fn rows(observations: &[Observation], solo: &[SoloRun]) -> Vec<Row> {
    let random = |observation: &Observation| {
        let counters = observation.counters.filter(|_| !observation.crashed)?;
        let set = match observation.family? {
            Family::Mlp => Set::Mlp,
            Family::Cnn => Set::Cnn,
            Family::Transformer => return None,
        };
        let model = observation.model()?;
        let (features, family) = (features(&model, &observation.training()), Family::of(&model));
        Some(Row { set, make: String::new(), features, family, measured: [Some(counters.smact), Some(counters.smocc), None, None] })
    };
    let named = |run: &SoloRun| Row {
        set: Set::Solo,
        make: run.measured.family().to_owned(),
        features: features(&run.model, &run.training),
        family: Family::of(&run.model),
        measured: [run.measured.smact, run.measured.smocc, run.measured.drama, run.measured.power_w],
    };
    on_all_cores(observations, random).into_iter().flatten().chain(solo.iter().map(named)).collect()
}
