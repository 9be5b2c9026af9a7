//! Inputs of the classifiers: numbers of the whole model, and its layers as tokens.

use super::ActivationFunction;
use crate::family::Family;
use crate::model::{Layer, LayerKind, Model, Normalisation};

/// Number of layer kinds that tokens distinguish.
pub(crate) const KINDS: usize = 14;

/// A layer as a summary lists it. Equal layers are one token with a count: the order does not matter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerToken {
    /// Index of its kind.
    pub kind: usize,
    /// Elements of its output for one sample.
    pub activations: u64,
    /// Parameters.
    pub parameters: u64,
    /// Number of equal layers.
    pub count: u32,
}

/// Inputs of the classifiers for a model at a batch size.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// The family decides which numbers are counted.
    pub family: Family,
    /// Numbers of the whole model.
    pub whole: Vec<f32>,
    /// The layers.
    pub tokens: Vec<LayerToken>,
}

impl Features {
    /// Features of a model, as defined for its family.
    pub fn of(model: &Model, batch: u64, family: Family) -> Self {
        let tokens = tokens(model);
        let count =
            |kinds: &[usize]| tokens.iter().filter(|token| kinds.contains(&token.kind)).map(|token| f64::from(token.count)).sum::<f64>();
        let activations: f64 = tokens.iter().map(|token| f64::from(token.count) * token.activations as f64).sum();
        let (parameters, batch) = (model.parameters() as f64, batch as f64);
        let depth = count(&[kind::LINEAR, kind::CONVOLUTION]);
        let batch_norms = count(&[kind::BATCH_NORM]);
        let dropouts = count(&[kind::DROPOUT]);
        let whole: Vec<f64> = match family {
            Family::Mlp => vec![depth, batch, parameters, activations, batch_norms, dropouts],
            Family::Cnn => {
                let convolutions = count(&[kind::CONVOLUTION]);
                vec![depth, activations, activations * batch, parameters, batch, convolutions, batch_norms, dropouts]
            }
            Family::Transformer => {
                let projections = count(&[kind::ATTENTION]) * 2.0;
                let norms = count(&[kind::OTHER_NORM]);
                vec![tokens.len() as f64, activations, activations * batch, parameters, batch, projections, depth, norms, dropouts]
            }
        };
        // Plain values separate large models, logarithms small ones.
        let mut whole: Vec<f32> =
            whole.iter().map(|number| number.ln_1p() as f32).chain(whole.iter().map(|number| *number as f32)).collect();
        if family != Family::Transformer {
            whole.extend(circle(model));
        }
        Self { family, whole, tokens }
    }
}

/// The activation function as a point on a half circle: each function has its own point.
fn circle(model: &Model) -> [f32; 2] {
    let function = |layer: &Layer| matches!(layer.kind, LayerKind::Activation(_)).then(|| ActivationFunction::of_class(&layer.class))?;
    let place = model.layers.iter().find_map(function).unwrap_or(ActivationFunction::ALL.len() - 1);
    let angle = place as f32 * std::f32::consts::PI / ActivationFunction::ALL.len() as f32;
    [angle.sin(), angle.cos()]
}

/// The layers that summaries list, equal layers merged, in order of first appearance.
fn tokens(model: &Model) -> Vec<LayerToken> {
    let mut tokens: Vec<LayerToken> = Vec::new();
    for layer in &model.layers {
        let Some(kind) = kind_of(&layer.kind) else { continue };
        let (activations, parameters) = (layer.output.per_sample(), layer.parameters);
        // Newest first: a repeated block repeats its last layers.
        let same = |token: &&mut LayerToken| token.kind == kind && token.activations == activations && token.parameters == parameters;
        match tokens.iter_mut().rev().find(same) {
            Some(token) => token.count += 1,
            None => tokens.push(LayerToken { kind, activations, parameters, count: 1 }),
        }
    }
    tokens
}

/// Indices of the kinds that are counted by name above.
mod kind {
    pub(super) const LINEAR: usize = 0;
    pub(super) const CONVOLUTION: usize = 1;
    pub(super) const BATCH_NORM: usize = 2;
    pub(super) const OTHER_NORM: usize = 3;
    pub(super) const DROPOUT: usize = 4;
    pub(super) const ATTENTION: usize = 5;
}

/// Index of a layer's kind. Sums, concatenations and views have none: summaries do not list them.
fn kind_of(layer: &LayerKind) -> Option<usize> {
    use crate::model::Activation as A;
    Some(match layer {
        LayerKind::Linear => kind::LINEAR,
        LayerKind::Convolution { .. } => kind::CONVOLUTION,
        LayerKind::Normalisation(Normalisation::Batch) => kind::BATCH_NORM,
        LayerKind::Normalisation(_) => kind::OTHER_NORM,
        LayerKind::Dropout { .. } => kind::DROPOUT,
        LayerKind::Attention { .. } => kind::ATTENTION,
        LayerKind::Activation(A::KeepsOutput) => 6,
        LayerKind::Activation(_) => 7,
        LayerKind::MaxPool => 8,
        LayerKind::AveragePool => 9,
        LayerKind::Softmax => 10,
        LayerKind::Embedding => 11,
        LayerKind::Recurrent { .. } => 12,
        LayerKind::Unknown => 13,
        LayerKind::MatrixProduct
        | LayerKind::Add
        | LayerKind::Multiply
        | LayerKind::Concatenate
        | LayerKind::Reduce
        | LayerKind::Upsample
        | LayerKind::Reshape(_) => return None,
    })
}
