//! What the classifiers are told of a model: numbers of the whole, and its layers as tokens.

use crate::data::Family;
use crate::data::networks::ActivationFunction;
use crate::model::{Layer, LayerKind, Model, Normalisation};
use crate::trace::{Event, Recording};

/// Kinds of layers that tokens tell apart.
pub(crate) const KINDS: usize = 14;

/// A layer as a summary lists it; equal ones stand together, for nothing depends on their order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerToken {
    /// Which of the kinds.
    pub kind: usize,
    /// Elements of its output for one sample.
    pub activations: u64,
    /// Its parameters.
    pub parameters: u64,
    /// Equal layers.
    pub count: u32,
}

/// What the classifiers are told of a model at a batch size.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Kind of network, which decides what is counted.
    pub family: Family,
    /// Numbers of the whole.
    pub whole: Vec<f32>,
    /// Its layers.
    pub tokens: Vec<LayerToken>,
}

impl Family {
    /// The kind of network that a model is, by its layers.
    pub fn of(model: &Model) -> Self {
        let has = |wanted: fn(&LayerKind) -> bool| model.layers.iter().any(|layer| wanted(&layer.kind));
        if has(|kind| matches!(kind, LayerKind::Attention { .. } | LayerKind::Embedding)) {
            Self::Transformer
        } else if has(|kind| matches!(kind, LayerKind::Convolution { .. })) {
            Self::Cnn
        } else {
            Self::Mlp
        }
    }
}

impl Family {
    /// The kind of network that recorded events are of: only convolutions can be told by them.
    pub fn of_events(recording: &Recording) -> Self {
        let convolves = recording.devices.iter().flatten().filter(|event| matches!(event, Event::Convolution(_))).count();
        // A patch embedding is a convolution too; three iterations of one show it nine times at most.
        if convolves > 9 { Self::Cnn } else { Self::Transformer }
    }
}

impl Features {
    /// Features of a model, as its family counts them.
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
        // Magnitudes as they are tell large ones apart, their logarithms small ones.
        let mut whole: Vec<f32> =
            whole.iter().map(|number| number.ln_1p() as f32).chain(whole.iter().map(|number| *number as f32)).collect();
        if family != Family::Transformer {
            whole.extend(circle(model));
        }
        Self { family, whole, tokens }
    }
}

/// The activation function as a place on a half circle: near ones are no more alike than far ones, but each has its own.
fn circle(model: &Model) -> [f32; 2] {
    let function = |layer: &Layer| matches!(layer.kind, LayerKind::Activation(_)).then(|| ActivationFunction::of_class(&layer.class))?;
    let place = model.layers.iter().find_map(function).unwrap_or(ActivationFunction::ALL.len() - 1);
    let angle = place as f32 * std::f32::consts::PI / ActivationFunction::ALL.len() as f32;
    [angle.sin(), angle.cos()]
}

/// The layers that summaries list, equal ones together in order of appearance.
fn tokens(model: &Model) -> Vec<LayerToken> {
    let mut tokens: Vec<LayerToken> = Vec::new();
    for layer in &model.layers {
        let Some(kind) = kind_of(&layer.kind) else { continue };
        let (activations, parameters) = (layer.output.per_sample(), layer.parameters);
        // The latest first: a repeated block repeats its last layers.
        let same = |token: &&mut LayerToken| token.kind == kind && token.activations == activations && token.parameters == parameters;
        match tokens.iter_mut().rev().find(same) {
            Some(token) => token.count += 1,
            None => tokens.push(LayerToken { kind, activations, parameters, count: 1 }),
        }
    }
    tokens
}

/// Numbers of the kinds that are counted by name above.
mod kind {
    pub(super) const LINEAR: usize = 0;
    pub(super) const CONVOLUTION: usize = 1;
    pub(super) const BATCH_NORM: usize = 2;
    pub(super) const OTHER_NORM: usize = 3;
    pub(super) const DROPOUT: usize = 4;
    pub(super) const ATTENTION: usize = 5;
}

/// Number of a layer's kind; sums, joins and views have none, since summaries do not list them.
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
