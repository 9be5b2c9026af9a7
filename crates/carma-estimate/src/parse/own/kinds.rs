//! Names of layer kinds without a PyTorch class.

use crate::model::{Activation, LayerKind, Normalisation, Reshaping};

/// The kind with this name, with default attributes.
pub(super) fn named(name: &str) -> Option<LayerKind> {
    Some(match name {
        "convolution" => LayerKind::Convolution { kernel: [1, 1], stride: [1, 1], groups: 1, transposed: false },
        "linear" => LayerKind::Linear,
        "matrix-product" => LayerKind::MatrixProduct,
        "embedding" => LayerKind::Embedding,
        "batch-normalisation" => LayerKind::Normalisation(Normalisation::Batch),
        "layer-normalisation" => LayerKind::Normalisation(Normalisation::Layer),
        "group-normalisation" => LayerKind::Normalisation(Normalisation::Group),
        "root-mean-square" => LayerKind::Normalisation(Normalisation::RootMeanSquare),
        "local-response" => LayerKind::Normalisation(Normalisation::LocalResponse),
        "keeps-output" => LayerKind::Activation(Activation::KeepsOutput),
        "keeps-input" => LayerKind::Activation(Activation::KeepsInput),
        "keeps-either" => LayerKind::Activation(Activation::KeepsEither),
        "composed" => LayerKind::Activation(Activation::Composed { kept: 1 }),
        "gated" => LayerKind::Activation(Activation::Gated),
        "dropout" => LayerKind::Dropout { probability: 0.5 },
        "max-pool" => LayerKind::MaxPool,
        "average-pool" => LayerKind::AveragePool,
        "softmax" => LayerKind::Softmax,
        "attention" => LayerKind::Attention { heads: 1, dropout: 0.0 },
        "add" => LayerKind::Add,
        "multiply" => LayerKind::Multiply,
        "concatenate" => LayerKind::Concatenate,
        "reduce" => LayerKind::Reduce,
        "upsample" => LayerKind::Upsample,
        "view" => LayerKind::Reshape(Reshaping::View),
        "copy" => LayerKind::Reshape(Reshaping::Copy),
        "recurrent" => LayerKind::Recurrent { gates: 1, hidden: 1, layers: 1 },
        "unknown" => LayerKind::Unknown,
        _ => return None,
    })
}

/// The name of a kind.
pub(super) const fn name(kind: &LayerKind) -> &'static str {
    match kind {
        LayerKind::Convolution { .. } => "convolution",
        LayerKind::Linear => "linear",
        LayerKind::MatrixProduct => "matrix-product",
        LayerKind::Embedding => "embedding",
        LayerKind::Normalisation(Normalisation::Batch) => "batch-normalisation",
        LayerKind::Normalisation(Normalisation::Layer) => "layer-normalisation",
        LayerKind::Normalisation(Normalisation::Group) => "group-normalisation",
        LayerKind::Normalisation(Normalisation::RootMeanSquare) => "root-mean-square",
        LayerKind::Normalisation(Normalisation::LocalResponse) => "local-response",
        LayerKind::Activation(Activation::KeepsOutput) => "keeps-output",
        LayerKind::Activation(Activation::KeepsInput) => "keeps-input",
        LayerKind::Activation(Activation::KeepsEither) => "keeps-either",
        LayerKind::Activation(Activation::Composed { .. }) => "composed",
        LayerKind::Activation(Activation::Gated) => "gated",
        LayerKind::Dropout { .. } => "dropout",
        LayerKind::MaxPool => "max-pool",
        LayerKind::AveragePool => "average-pool",
        LayerKind::Softmax => "softmax",
        LayerKind::Attention { .. } => "attention",
        LayerKind::Add => "add",
        LayerKind::Multiply => "multiply",
        LayerKind::Concatenate => "concatenate",
        LayerKind::Reduce => "reduce",
        LayerKind::Upsample => "upsample",
        LayerKind::Reshape(Reshaping::View) => "view",
        LayerKind::Reshape(Reshaping::Copy) => "copy",
        LayerKind::Recurrent { .. } => "recurrent",
        LayerKind::Unknown => "unknown",
    }
}
