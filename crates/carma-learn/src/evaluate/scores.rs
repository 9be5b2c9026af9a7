//! Scores of estimators, from predictions and measurements.

use carma_core::percentile;
use serde::{Deserialize, Serialize};

use crate::data::Observation;

/// Memory of the GPUs of the measurements: a crashed run needed more.
pub const LARGEST_MIB: f64 = 40.0 * 1024.0;

/// Measurement of one run, and an estimator's prediction for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Peak memory in MiB.
    pub measured: Option<f64>,
    /// Whether the run ran out of memory, so that `measured` is only the last reading.
    pub crashed: bool,
    /// The likely peak in MiB.
    pub point: f64,
    /// Upper bound of the peak in MiB; equal to `point` if the estimator has no bound.
    pub bound: f64,
}

impl Answer {
    /// The prediction for an observation.
    pub fn to(observation: &Observation, point: f64, bound: f64) -> Self {
        Self { measured: observation.measured, crashed: observation.crashed, point, bound }
    }
}

/// Scores of an estimator. Shares and errors are fractions. Crashed runs count as above 40 GB in class accuracy only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Rows with a measured peak or a crash.
    pub rows: usize,
    /// Median of the absolute error over the measured peak.
    pub median_ape: f64,
    /// Mean of the absolute error over the measured peak.
    pub mape: f64,
    /// Share of rows within a tenth of the measured peak.
    pub within_10pct: f64,
    /// Share of rows whose likely peak is below the measured one.
    pub under_share: f64,
    /// Share of rows whose bound is below the measured peak.
    pub under_share_at_bound: f64,
    /// Mean of bound over measured peak, minus one.
    pub mean_over_at_bound: f64,
    /// Share of rows whose likely peak lies in the right class of 1 GB (1024 MiB).
    pub class_accuracy_1gb: f64,
    /// The same for classes of 8 GB.
    pub class_accuracy_8gb: f64,
}

impl Scores {
    /// Scores of these answers; all zero without measurements.
    pub fn of(answers: &[Answer]) -> Self {
        let judged: Vec<&Answer> = answers.iter().filter(|answer| answer.crashed || answer.measured.is_some()).collect();
        let finished: Vec<(f64, &Answer)> = judged
            .iter()
            .filter(|answer| !answer.crashed)
            .filter_map(|answer| Some((answer.measured.filter(|measured| *measured > 0.0)?, *answer)))
            .collect();
        let mut errors: Vec<f64> = finished.iter().map(|(measured, answer)| (answer.point - measured).abs() / measured).collect();
        errors.sort_unstable_by(f64::total_cmp);
        let share = |wanted: &dyn Fn(&(f64, &Answer)) -> bool| mean(finished.iter().map(|row| f64::from(u8::from(wanted(row)))));
        let accuracy = |size: f64| mean(judged.iter().map(|answer| f64::from(u8::from(same_class(answer, size)))));
        Self {
            rows: judged.len(),
            median_ape: percentile(&errors, 0.5),
            mape: mean(errors.iter().copied()),
            within_10pct: mean(errors.iter().map(|error| f64::from(u8::from(*error <= 0.1)))),
            under_share: share(&|(measured, answer)| answer.point < *measured),
            under_share_at_bound: share(&|(measured, answer)| answer.bound < *measured),
            mean_over_at_bound: mean(finished.iter().map(|(measured, answer)| answer.bound / measured - 1.0)),
            class_accuracy_1gb: accuracy(1024.0),
            class_accuracy_8gb: accuracy(8.0 * 1024.0),
        }
    }
}

/// Whether the likely peak lies in the class of the measured one, with classes of `size` MiB; a crashed run's class is all above 40 GB.
pub fn same_class(answer: &Answer, size: f64) -> bool {
    if answer.crashed {
        return answer.point > LARGEST_MIB;
    }
    answer.measured.is_some_and(|measured| ((answer.point / size).ceil() - (measured / size).ceil()).abs() < 0.5)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len();
    if count == 0 { 0.0 } else { values.sum::<f64>() / count as f64 }
}
