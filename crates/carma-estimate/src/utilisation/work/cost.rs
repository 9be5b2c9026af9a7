//! Costs of operators without a matrix product.

use crate::model::{Activation, LayerKind, Normalisation};

/// Cost of an operator without a matrix product: operations per element, how often its tensors are moved, kernels per pass.
pub(super) struct Cost {
    pub(super) flops: f64,
    pub(super) passes: f64,
    pub(super) forward: u8,
    pub(super) backward: u8,
}

impl Cost {
    /// Cost of a layer of this kind.
    pub(super) fn of(kind: &LayerKind) -> Self {
        let (flops, passes, forward, backward) = match kind {
            LayerKind::Normalisation(Normalisation::RootMeanSquare) => (4.0, 3.0, 5, 8),
            LayerKind::Normalisation(_) => (8.0, 1.5, 1, 2),
            LayerKind::Activation(Activation::Composed { kept }) => (2.0, *kept as f64, 7, 9),
            LayerKind::Dropout { .. } => (8.0, 1.1, 1, 1),
            LayerKind::Softmax => (6.0, 1.0, 1, 1),
            LayerKind::Activation(_) | LayerKind::MaxPool | LayerKind::AveragePool | LayerKind::Upsample => (4.0, 1.0, 1, 1),
            LayerKind::Multiply => (1.0, 1.0, 1, 2),
            // The gradient of a sum is passed on unchanged; if a tensor is read twice, its gradients are added.
            _ => (1.0, 1.0, 1, 1),
        };
        Self { flops, passes, forward, backward }
    }
}
