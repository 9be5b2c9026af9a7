//! Features scaled to zero mean and unit variance over the training rows.

use crate::learned::features::{Features, LayerToken};
use crate::learned::neural::Token;

/// For each feature, the mean and one over the standard deviation.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Scaling {
    /// Features of the whole model.
    pub whole: Vec<(f32, f32)>,
    /// The two features of a layer.
    pub layers: Vec<(f32, f32)>,
}

impl Scaling {
    /// Scaled features, into buffers.
    pub fn apply(&self, features: &Features, whole: &mut Vec<f32>, tokens: &mut Vec<Token>) {
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

/// Features of a layer before scaling.
pub fn logarithms(token: &LayerToken) -> [f32; 2] {
    [token.activations, token.parameters].map(|number| (number as f32).ln_1p())
}
