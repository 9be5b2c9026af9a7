//! Linear regression on a few features.

use serde::{Deserialize, Serialize};

/// A weighted sum of features, each relative to its mean.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ridge {
    /// Mean of the values.
    pub mean: f64,
    /// Mean of each feature.
    pub centres: Vec<f64>,
    /// Weight of each feature.
    pub slopes: Vec<f64>,
}

impl Ridge {
    /// The prediction for a row.
    pub fn predict(&self, row: &[f64]) -> f64 {
        self.mean + row.iter().zip(&self.centres).zip(&self.slopes).map(|((number, centre), slope)| (number - centre) * slope).sum::<f64>()
    }
}
