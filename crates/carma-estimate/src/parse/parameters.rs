//! Number of a module's parameters by its arguments, and their tensors.

use super::output::{channels, rank};
use super::tree::Module;
use crate::model::{LayerKind, Shape};

/// Input channels or features of a module.
pub(super) fn inputs(module: &Module<'_>, shape: &Shape) -> u64 {
    match module.kind {
        LayerKind::Convolution { .. } => channels(shape, rank(module)).unwrap_or(1),
        LayerKind::Normalisation(crate::model::Normalisation::Batch | crate::model::Normalisation::Group) => {
            shape.dimensions().first().copied().unwrap_or(1)
        }
        _ => shape.features(),
    }
}

/// Elements of a module's weight.
fn weight(module: &Module<'_>, outputs: u64) -> Option<u64> {
    let attributes = &module.attributes;
    let inputs = attributes.inputs?;
    match module.kind {
        LayerKind::Convolution { .. } => {
            let [height, width] = attributes.kernel.unwrap_or([1, 1]);
            let per_output = (inputs / attributes.groups.unwrap_or(1).max(1)).saturating_mul(height).saturating_mul(width);
            Some(per_output.saturating_mul(outputs))
        }
        LayerKind::Linear => Some(inputs.saturating_mul(outputs)),
        _ => None,
    }
}

/// Parameters from the arguments alone; an embedding table has `rows`.
pub(super) fn by_arguments(module: &Module<'_>, rows: Option<u64>) -> u64 {
    let attributes = &module.attributes;
    let inputs = attributes.inputs.unwrap_or(0);
    match module.kind {
        LayerKind::Convolution { .. } | LayerKind::Linear => {
            let outputs = attributes.outputs.unwrap_or(0);
            let bias = if attributes.bias == Some(false) { 0 } else { outputs };
            weight(module, outputs).unwrap_or(0).saturating_add(bias)
        }
        LayerKind::Embedding => rows.unwrap_or(0).saturating_mul(attributes.outputs.unwrap_or(0)),
        LayerKind::Normalisation(crate::model::Normalisation::LocalResponse) => 0,
        LayerKind::Normalisation(crate::model::Normalisation::RootMeanSquare) => inputs,
        LayerKind::Normalisation(_) => inputs.saturating_mul(if attributes.bias == Some(false) { 1 } else { 2 }),
        LayerKind::Recurrent { gates, .. } => recurrent(module, gates),
        _ => 0,
    }
}

/// Each layer and direction of a recurrent module has input weights, state weights and two biases, for each gate.
fn recurrent(module: &Module<'_>, gates: u64) -> u64 {
    let attributes = &module.attributes;
    let (inputs, hidden) = (attributes.inputs.unwrap_or(0), attributes.outputs.unwrap_or(0));
    let directions = if attributes.bidirectional { 2 } else { 1 };
    let biases = if attributes.bias == Some(false) { 0 } else { 2 };
    let layer = |inputs: u64| {
        let per_unit = inputs.saturating_add(hidden).saturating_add(biases);
        per_unit.saturating_mul(hidden).saturating_mul(gates).saturating_mul(directions)
    };
    let above = attributes.layers.unwrap_or(1).saturating_sub(1);
    layer(inputs).saturating_add(layer(hidden.saturating_mul(directions)).saturating_mul(above))
}

/// The tensors of a module with this many parameters.
pub(super) fn tensors(module: &Module<'_>, output: &Shape, own: u64) -> Vec<u64> {
    let outputs = match module.kind {
        LayerKind::Convolution { .. } => channels(output, rank(module)).unwrap_or(1),
        _ => output.features(),
    };
    match (weight(module, outputs), &module.kind) {
        _ if own == 0 => Vec::new(),
        (Some(weight), _) if weight > 0 && weight.checked_add(outputs) == Some(own) => vec![weight, outputs],
        (_, LayerKind::Normalisation(_)) if own.is_multiple_of(2) && module.attributes.bias != Some(false) => vec![own / 2, own / 2],
        _ => vec![own],
    }
}
