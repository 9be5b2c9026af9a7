//! How sure an estimate is: each estimator's record on measured runs turns its point into an upper bound.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::data::Family;
use crate::estimators::{Answer, Estimator};

/// Confidence that the bound has where none is asked for.
pub const DEFAULT_CONFIDENCE: f64 = 0.95;

/// What an estimator of unknown record is given: half as much again.
const NO_RECORD: f64 = 1.5;

/// Share of the remaining doubt that is not used up: records are of a few sets, and the next job is from none of them.
const RESERVE: f64 = 0.2;

/// Ratios of measured to estimated memory of one estimator on one kind of networks, as quantiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Whose record.
    pub estimator: Estimator,
    /// On what.
    pub family: Family,
    /// Runs that it is from.
    pub rows: usize,
    /// The ratio at each of [`LEVELS`].
    pub ratios: Vec<f64>,
}

/// Levels of the quantiles that a record keeps.
pub const LEVELS: [f64; 9] = [0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.999];

impl Record {
    /// The record of answers: pairs of estimated and measured memory. Finite samples count as one run less sure (as conformal
    /// prediction does), so that the promise holds for the next run and not only for these.
    pub fn of(estimator: Estimator, family: Family, answers: &[(f64, f64)]) -> Option<Self> {
        let mut ratios: Vec<f64> =
            answers.iter().filter(|(estimated, _)| *estimated > 0.0).map(|(estimated, measured)| measured / estimated).collect();
        ratios.sort_by(f64::total_cmp);
        let last = ratios.len().checked_sub(1)?;
        let stricter = |level: f64| if level > 0.5 { level + (1.0 - level) * RESERVE } else { level };
        let at = |level: f64| ratios[(((last + 2) as f64 * stricter(level)).ceil() as usize).saturating_sub(1).min(last)];
        Some(Self { estimator, family, rows: ratios.len(), ratios: LEVELS.map(at).to_vec() })
    }

    /// The ratio that is not exceeded with this confidence, between the levels by interpolation.
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

/// The upper bound in bytes for an answer at a confidence: from the estimator's record on this kind of networks, or on the kind where it
/// does worst when there is none.
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
