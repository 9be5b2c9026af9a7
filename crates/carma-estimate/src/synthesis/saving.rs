//! Tensors that each kind of layer saves for its backward pass, as in PyTorch.

use crate::model::{Activation, LayerKind, Normalisation};

/// What a layer saves beside its parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Saving {
    pub(super) inputs: bool,
    pub(super) output: bool,
    /// Further bytes per element of the output.
    pub(super) bytes_per_element: u64,
    /// Further tensors of the output's size and type.
    pub(super) copies: u64,
}

const NOTHING: Saving = Saving { inputs: false, output: false, bytes_per_element: 0, copies: 0 };
const INPUTS: Saving = Saving { inputs: true, ..NOTHING };
const OUTPUT: Saving = Saving { output: true, ..NOTHING };

pub(super) fn saving(kind: &LayerKind, in_place: bool, fusion: bool) -> Saving {
    match kind {
        // A compiler recomputes elementwise operators from tensors that their neighbours save.
        LayerKind::Activation(_) | LayerKind::Dropout { .. } if fusion => NOTHING,
        LayerKind::Activation(Activation::KeepsInput) if in_place => Saving { copies: 1, ..NOTHING },
        LayerKind::Convolution { .. }
        | LayerKind::Linear
        | LayerKind::MatrixProduct
        | LayerKind::Embedding
        | LayerKind::Multiply
        | LayerKind::Normalisation(Normalisation::Batch | Normalisation::Layer | Normalisation::Group)
        | LayerKind::Activation(Activation::KeepsInput | Activation::KeepsEither | Activation::Gated)
        | LayerKind::Unknown => INPUTS,
        LayerKind::Activation(Activation::KeepsOutput) | LayerKind::Softmax => OUTPUT,
        LayerKind::Attention { .. } | LayerKind::Recurrent { .. } => Saving { output: true, ..INPUTS },
        LayerKind::Normalisation(Normalisation::RootMeanSquare) => Saving { copies: 1, ..INPUTS },
        LayerKind::Normalisation(Normalisation::LocalResponse) => Saving { copies: 2, ..INPUTS },
        LayerKind::Activation(Activation::Composed { kept }) => Saving { copies: *kept, ..INPUTS },
        // The mask is one byte per element.
        LayerKind::Dropout { .. } => Saving { bytes_per_element: 1, ..NOTHING },
        // Indices of the maxima are 64-bit integers.
        LayerKind::MaxPool => Saving { bytes_per_element: 8, ..INPUTS },
        LayerKind::AveragePool
        | LayerKind::Add
        | LayerKind::Concatenate
        | LayerKind::Reduce
        | LayerKind::Upsample
        | LayerKind::Reshape(_) => NOTHING,
    }
}
