//! Records of estimators on measured runs, the basis of their upper bounds.

use carma_estimate::Family;
use carma_estimate::confidence::{LEVELS, Record};
use carma_estimate::estimators::Estimator;
use carma_estimate::stack::Kernels;

/// One evaluated run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Estimated memory.
    pub estimated: f64,
    /// The part of it that is in doubt.
    pub doubt: f64,
    /// Measured memory.
    pub measured: f64,
}

/// The record of an estimator; none without runs. As in conformal prediction, a finite sample counts as one run less, so that the bound
/// also holds for the next run.
pub fn record(estimator: Estimator, family: Family, kernels: Kernels, outcomes: &[Outcome]) -> Option<Record> {
    let mut errors: Vec<f64> = outcomes
        .iter()
        .filter(|outcome| outcome.doubt > 0.0)
        .map(|outcome| (outcome.measured - outcome.estimated) / outcome.doubt)
        .collect();
    errors.sort_by(f64::total_cmp);
    let last = errors.len().checked_sub(1)?;
    let at = |level: f64| errors[(((last + 2) as f64 * level).ceil() as usize).saturating_sub(1).min(last)];
    Some(Record { estimator, family, kernels, rows: errors.len(), errors: LEVELS.map(at).to_vec() })
}
