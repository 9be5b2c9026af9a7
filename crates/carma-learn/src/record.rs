//! Records of estimators on measured runs, the basis of their upper bounds.

use carma_estimate::Family;
use carma_estimate::confidence::{LEVELS, Record};
use carma_estimate::estimators::Estimator;

/// Safety reserve, as a share of the remaining doubt: records come from a few data sets, and new jobs from none of them.
const RESERVE: f64 = 0.2;

/// The record of an estimator from pairs of estimated and measured memory; none without pairs. As in conformal prediction, a finite sample
/// counts as one run less, so that the bound also holds for the next run.
pub fn record(estimator: Estimator, family: Family, answers: &[(f64, f64)]) -> Option<Record> {
    let mut ratios: Vec<f64> =
        answers.iter().filter(|(estimated, _)| *estimated > 0.0).map(|(estimated, measured)| measured / estimated).collect();
    ratios.sort_by(f64::total_cmp);
    let last = ratios.len().checked_sub(1)?;
    let stricter = |level: f64| if level > 0.5 { level + (1.0 - level) * RESERVE } else { level };
    let at = |level: f64| ratios[(((last + 2) as f64 * stricter(level)).ceil() as usize).saturating_sub(1).min(last)];
    Some(Record { estimator, family, rows: ratios.len(), ratios: LEVELS.map(at).to_vec() })
}
