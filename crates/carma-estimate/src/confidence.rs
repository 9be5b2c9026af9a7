//! Confidence of estimates: an estimator's record on measured runs turns its point estimate into an upper bound.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::estimators::{Answer, Estimator};
use crate::family::Family;
use crate::stack::Kernels;

/// Default confidence of the bound.
pub const DEFAULT_CONFIDENCE: f64 = 0.95;

/// Quantile for an estimator without a record.
const NO_RECORD: f64 = 0.5;

/// Share of an estimate that is in doubt beside its activations.
const COMMON_DOUBT: f64 = 0.1;

/// The part of an estimate that can be wrong, in bytes. Weights, gradients and optimizer state are known; activations, and the
/// workspaces and gaps that come with them, are not. An estimate without a breakdown is in doubt as a whole.
pub fn doubt(answer: &Answer) -> f64 {
    match answer.breakdown {
        Some((breakdown, _)) => COMMON_DOUBT * answer.bytes as f64 + breakdown.activations as f64,
        None => answer.bytes as f64,
    }
}

/// Errors of one estimator on one kind of networks, as quantiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The estimator.
    pub estimator: Estimator,
    /// Kind of networks.
    pub family: Family,
    /// Kernels of their convolutions.
    #[serde(default, skip_serializing_if = "Kernels::is_default")]
    pub kernels: Kernels,
    /// Number of runs.
    pub rows: usize,
    /// Measured minus estimated memory over the [`doubt`], at each of [`LEVELS`].
    pub errors: Vec<f64>,
}

/// Levels of the quantiles that a record keeps.
pub const LEVELS: [f64; 9] = [0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.999];

impl Record {
    /// The error that is not exceeded with this confidence, interpolated between the levels.
    pub fn error(&self, confidence: f64) -> f64 {
        let above = LEVELS.iter().position(|&level| level >= confidence);
        let value = |level: usize| self.errors.get(level).copied().unwrap_or(NO_RECORD);
        match above {
            Some(0) => value(0),
            Some(level) => {
                let (low, high) = (LEVELS[level - 1], LEVELS[level]);
                value(level - 1) + (value(level) - value(level - 1)) * (confidence - low) / (high - low)
            }
            None => value(LEVELS.len() - 1),
        }
    }
}

static SHIPPED: LazyLock<Vec<Record>> = LazyLock::new(|| serde_json::from_str(include_str!("../weights/records.json")).unwrap_or_default());

/// Upper bound in bytes at a confidence: from the estimator's record on this family (and these kernels, for convolutions), or on its worst
/// family if it has no record on this one.
pub fn upper_bound(estimator: Estimator, family: Option<Family>, kernels: Kernels, answer: &Answer, confidence: f64) -> u64 {
    if let Some(own) = answer.own_bound {
        return own.max(answer.bytes);
    }
    let records = || SHIPPED.iter().filter(|record| record.estimator == estimator);
    let of_family = || records().filter(|record| Some(record.family) == family);
    let fitting = of_family().find(|record| record.kernels == kernels).or_else(|| of_family().next());
    let error = match fitting {
        Some(record) => record.error(confidence),
        None => records().map(|record| record.error(confidence)).fold(f64::NAN, f64::max),
    };
    let error = if error.is_nan() { NO_RECORD } else { error.max(0.0) };
    answer.bytes.saturating_add((doubt(answer) * error) as u64)
}
