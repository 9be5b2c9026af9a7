//! How the statistics of a window are weighed into one score.

use crate::keys::Checker;
use crate::section;
use crate::telemetry::Statistics;
use crate::units::Fraction;

section! {
    /// Weights of the statistics of a window in its score. They sum to 1.
    RiskSettings => #[derive(Copy)] RiskWeights, checked by weights_sum_to_one {
        /// Weight of the mean.
        mean: f64 [0.0..=1.0] = 0.20, First: 1.0, Aegis: 0.25;
        /// Weight of the median.
        median: f64 [0.0..=1.0] = 0.30, First: 0.0, Aegis: 0.25;
        /// Weight of the 95th percentile.
        p95: f64 [0.0..=1.0] = 0.30, First: 0.0, Aegis: 0.25;
        /// Weight of the exponential moving average.
        ema: f64 [0.0..=1.0] = 0.20, First: 0.0, Aegis: 0.25;
    }
}

impl RiskWeights {
    /// The weighted score of one metric.
    pub fn score(&self, of: &Statistics) -> Fraction {
        let score = self.mean * of.mean + self.median * of.median + self.p95 * of.p95 + self.ema * of.ema;
        // Rounded, so that a steady 0.80 scores 0.80 whatever the weights, and thresholds mean what they say.
        Fraction::clamped((score * 1e9).round() / 1e9)
    }
}

fn weights_sum_to_one(weights: &RiskWeights, check: &mut Checker) {
    let RiskWeights { mean, median, p95, ema } = weights;
    let sum = mean + median + p95 + ema;
    if (sum - 1.0).abs() > 1e-6 {
        let given = format!("{mean} + {median} + {p95} + {ema} (mean, median, p95, ema)");
        check.refuse(given, format!("four weights from 0 to 1 that add up to 1; these add up to {sum}"));
    }
}
