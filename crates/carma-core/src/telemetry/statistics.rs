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
    /// Of values in order of time, with the moving average's weight for each new value; `None` of no values.
    ///
    /// ```
    /// use carma_core::Statistics;
    /// let of = Statistics::of(vec![0.0, 1.0, 1.0, 0.0], 0.5).unwrap();
    /// assert_eq!((of.mean, of.median, of.p95, of.ema), (0.5, 0.5, 1.0, 0.375));
    /// ```
    pub fn of(mut values: Vec<f64>, alpha: f64) -> Option<Self> {
        let first = *values.first()?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let ema = values.iter().fold(first, |ema, value| ema + alpha * (value - ema));
        values.sort_unstable_by(f64::total_cmp);
        Some(Self { mean, median: quantile(&values, 0.5), p95: quantile(&values, 0.95), ema })
    }

    /// All statistics of a metric that does not change.
    pub const fn steady(value: f64) -> Self {
        Self { mean: value, median: value, p95: value, ema: value }
    }
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * place.fract()
}
