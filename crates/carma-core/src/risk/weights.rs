//! How the statistics of a window are weighed into one score.

use crate::telemetry::Statistics;
use crate::units::Fraction;

/// Weights that sum to one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RiskWeights {
    /// Of the mean.
    pub mean: f64,
    /// Of the median.
    pub median: f64,
    /// Of the 95th percentile.
    pub p95: f64,
    /// Of the exponential moving average.
    pub ema: f64,
}

impl RiskWeights {
    /// The first version of the published system: the plain mean.
    pub const FIRST: Self = Self { mean: 1.0, median: 0.0, p95: 0.0, ema: 0.0 };
    /// The published system.
    pub const PAPER: Self = Self { mean: 0.20, median: 0.30, p95: 0.30, ema: 0.20 };
    /// Its successor: equal quarters.
    pub const AEGIS: Self = Self { mean: 0.25, median: 0.25, p95: 0.25, ema: 0.25 };

    /// The weighted score of one metric.
    pub fn score(&self, of: &Statistics) -> Fraction {
        let score = self.mean * of.mean + self.median * of.median + self.p95 * of.p95 + self.ema * of.ema;
        // Rounded, so that a steady 0.80 scores 0.80 whatever the weights, and thresholds mean what they say.
        Fraction::clamped((score * 1e9).round() / 1e9)
    }
}
