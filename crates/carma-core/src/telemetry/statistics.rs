//! The statistics a risk score is made of.

use serde::{Deserialize, Serialize};

/// One metric over one window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Arithmetic mean.
    pub mean: f64,
    /// The middle value.
    pub median: f64,
    /// 95th percentile, interpolated between neighbours.
    pub p95: f64,
    /// Exponential moving average over the window, the newest value weighing most.
    pub ema: f64,
}

impl Statistics {
    /// Computes the statistics of values in order of time, with the moving average's weight for each new value; `None` without values.
    ///
    /// ```
    /// use carma_core::Statistics;
    /// let of = Statistics::of(vec![0.0, 1.0, 1.0, 0.0], 0.5).unwrap();
    /// assert_eq!((of.mean, of.median, of.p95, of.ema), (0.5, 0.5, 1.0, 0.375));
    /// ```
    pub fn of(values: Vec<f64>, alpha: f64) -> Option<Self> {
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Self::of_sorted(values.into_iter(), &sorted, alpha)
    }

    /// The same of values that were sorted before: in order of time, and by size.
    pub(super) fn of_sorted(values: impl Iterator<Item = f64> + Clone, sorted: &[f64], alpha: f64) -> Option<Self> {
        let first = values.clone().next()?;
        let mean = values.clone().sum::<f64>() / sorted.len() as f64;
        let ema = values.fold(first, |ema, value| ema + alpha * (value - ema));
        Some(Self { mean, median: percentile(sorted, 0.5), p95: percentile(sorted, 0.95), ema })
    }

    /// All statistics of a metric that does not change.
    pub const fn steady(value: f64) -> Self {
        Self { mean: value, median: value, p95: value, ema: value }
    }
}

/// The arithmetic mean; 0 without values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// A percentile of sorted values, interpolated between neighbours; 0 without values.
///
/// ```
/// assert_eq!(carma_core::percentile(&[1.0, 2.0, 4.0], 0.75), 3.0);
/// ```
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let below = place.floor() as usize;
    sorted[below] + (sorted[(below + 1).min(last)] - sorted[below]) * place.fract()
}
