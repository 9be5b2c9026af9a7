//! What each kind of layer keeps for its backward pass, as PyTorch's own operators do.

use crate::model::{Activation, LayerKind, Normalisation};

/// What a layer keeps beside its parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Saving {
    pub(super) inputs: bool,
    pub(super) output: bool,
    /// Further bytes for each element of the output.
    pub(super) bytes_per_element: u64,
    /// Further tensors of the output's size and type.
    pub(super) copies: u64,
}

const NOTHING: Saving = Saving { inputs: false, output: false, bytes_per_element: 0, copies: 0 };
const INPUTS: Saving = Saving { inputs: true, ..NOTHING };
const OUTPUT: Saving = Saving { output: true, ..NOTHING };

pub(super) fn saving(kind: &LayerKind, in_place: bool, fusion: bool) -> Saving {
    match kind {
        // A compiler recomputes elementwise operators from what their neighbours keep.
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
        // The mask is one byte an element.
        LayerKind::Dropout { .. } => Saving { bytes_per_element: 1, ..NOTHING },
        // Positions of the maxima are 64-bit integers.
        LayerKind::MaxPool => Saving { bytes_per_element: 8, ..INPUTS },
        LayerKind::AveragePool
        | LayerKind::Add
        | LayerKind::Concatenate
        | LayerKind::Reduce
        | LayerKind::Upsample
        | LayerKind::Reshape(_) => NOTHING,
    }
}
