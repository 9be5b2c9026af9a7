//! Confidence of estimates: an estimator's record on measured runs turns its point estimate into an upper bound.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::estimators::{Answer, Estimator};
use crate::family::Family;

/// Default confidence of the bound.
pub const DEFAULT_CONFIDENCE: f64 = 0.95;

/// Factor for an estimator without a record.
const NO_RECORD: f64 = 1.5;

/// Ratios of measured to estimated memory of one estimator on one kind of networks, as quantiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The estimator.
    pub estimator: Estimator,
    /// Kind of networks.
    pub family: Family,
    /// Number of runs.
    pub rows: usize,
    /// The ratio at each of [`LEVELS`].
    pub ratios: Vec<f64>,
}

/// Levels of the quantiles that a record keeps.
pub const LEVELS: [f64; 9] = [0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.999];

impl Record {
    /// The ratio that is not exceeded with this confidence, interpolated between the levels.
    pub fn ratio(&self, confidence: f64) -> f64 {
        let above = LEVELS.iter().position(|&level| level >= confidence);
        let value = |level: usize| self.ratios.get(level).copied().unwrap_or(NO_RECORD);
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

/// Upper bound in bytes at a confidence: from the estimator's record on this family, or on its worst family if it has no record on
/// this one.
pub fn upper_bound(estimator: Estimator, family: Option<Family>, answer: &Answer, confidence: f64) -> u64 {
    if let Some(own) = answer.own_bound {
        return own.max(answer.bytes);
    }
    let records = || SHIPPED.iter().filter(|record| record.estimator == estimator);
    let fitting = records().find(|record| Some(record.family) == family);
    let ratio = match fitting {
        Some(record) => record.ratio(confidence),
        None => records().map(|record| record.ratio(confidence)).fold(f64::NAN, f64::max),
    };
    let ratio = if ratio.is_nan() { NO_RECORD } else { ratio.max(1.0) };
    (answer.bytes as f64 * ratio) as u64
}
