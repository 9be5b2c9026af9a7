//! Features brought to zero mean and unit variance, by the rows that are learned from.

use crate::learning::features::{Features, LayerToken};
use crate::learning::neural::{Token, short};

/// Means and one over standard deviations.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Scaling {
    pub(super) whole: Vec<(f32, f32)>,
    pub(super) layers: Vec<(f32, f32)>,
}

impl Scaling {
    /// By the features of all rows.
    pub(super) fn of<'a>(rows: impl Iterator<Item = &'a Features> + Clone) -> Self {
        let width = rows.clone().next().map_or(0, |features| features.whole.len());
        let whole = (0..width).map(|place| standard(rows.clone().map(|features| (features.whole[place], 1.0)))).collect();
        let tokens = rows.flat_map(|features| &features.tokens);
        let layer = |place: usize| standard(tokens.clone().map(|token| (logarithms(token)[place], token.count as f32)));
        Self { whole, layers: (0..2).map(layer).collect() }
    }

    /// Scaled features, into buffers.
    pub(super) fn apply(&self, features: &Features, whole: &mut Vec<f32>, tokens: &mut Vec<Token>) {
        whole.clear();
        whole.extend(features.whole.iter().zip(&self.whole).map(|(value, (mean, scale))| (value - mean) * scale));
        tokens.clear();
        let scaled = |token: &LayerToken| {
            let mut features = logarithms(token);
            features.iter_mut().zip(&self.layers).for_each(|(value, (mean, scale))| *value = (*value - mean) * scale);
            Token { kind: token.kind, features, count: token.count as f32 }
        };
        tokens.extend(features.tokens.iter().map(scaled));
    }
}

fn logarithms(token: &LayerToken) -> [f32; 2] {
    [token.activations, token.parameters].map(|number| (number as f32).ln_1p())
}

/// Mean and one over the standard deviation of weighted values; what does not vary is left as it is.
fn standard(values: impl Iterator<Item = (f32, f32)> + Clone) -> (f32, f32) {
    let (weight, sum) = values.clone().fold((0.0, 0.0), |(all, sum), (value, weight)| {
        let weight = f64::from(weight);
        (all + weight, sum + weight * f64::from(value))
    });
    let mean = sum / f64::max(weight, 1e-9);
    let squares: f64 = values.map(|(value, weight)| f64::from(weight) * (f64::from(value) - mean).powi(2)).sum();
    let variance = squares / weight.max(1e-9);
    (short(mean as f32), short(if variance > 1e-12 { (1.0 / variance.sqrt()) as f32 } else { 1.0 }))
}
