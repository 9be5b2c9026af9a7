//! The output shape of a module, from its arguments and inputs.

use super::convolution;
use super::tree::Module;
use crate::model::{LayerKind, Reshaping, Shape};

/// Number of dimensions of a convolution's or pool's window, by class.
pub(super) fn rank(module: &Module<'_>) -> usize {
    match module.class {
        class if class.contains("1d") || class.contains("1D") => 1,
        class if class.contains("3d") => 3,
        _ => 2,
    }
}

/// The channels of an image with this many dimensions.
pub(super) fn channels(shape: &Shape, rank: usize) -> Option<u64> {
    let dimensions = shape.dimensions();
    dimensions.len().checked_sub(rank + 1).and_then(|place| dimensions.get(place)).copied()
}

/// The dimensions that a window slides over, as height and width.
pub(super) fn window_dimensions(shape: &Shape, rank: usize) -> [u64; 2] {
    let dimensions = shape.dimensions();
    let spatial = dimensions.get(dimensions.len().saturating_sub(rank)..).unwrap_or_default();
    match *spatial {
        [length] => [1, length],
        [height, width] => [height, width],
        [depth, height, width] => [depth.saturating_mul(height), width],
        _ => [1, 1],
    }
}

/// The same shape with other features.
pub(super) fn with_features(shape: &Shape, features: u64) -> Shape {
    let mut dimensions = shape.dimensions().to_vec();
    dimensions.pop();
    dimensions.push(features);
    if shape.is_batched() { Shape::batched(dimensions) } else { Shape::fixed(dimensions) }
}

/// The output shape of a module with these input shapes.
pub(super) fn of(module: &Module<'_>, inputs: &[&Shape]) -> Shape {
    let attributes = &module.attributes;
    let empty = Shape::batched([]);
    let input = inputs.first().copied().unwrap_or(&empty);
    match &module.kind {
        LayerKind::Convolution { transposed, .. } => convolved(module, input, *transposed),
        LayerKind::Linear => with_features(input, attributes.outputs.unwrap_or_else(|| input.features())),
        LayerKind::Embedding => {
            let mut dimensions = input.dimensions().to_vec();
            dimensions.push(attributes.outputs.unwrap_or(1));
            Shape::batched(dimensions)
        }
        LayerKind::MaxPool | LayerKind::AveragePool => pooled(module, input),
        LayerKind::Upsample => {
            let grow = |size: u64| (size as f64 * attributes.scale.unwrap_or(2.0)) as u64;
            match *input.dimensions() {
                [channels, height, width] => Shape::batched([channels, grow(height), grow(width)]),
                _ => input.clone(),
            }
        }
        LayerKind::Reshape(Reshaping::View) if module.class.eq_ignore_ascii_case("flatten") => Shape::batched([input.per_sample()]),
        LayerKind::Recurrent { .. } => {
            let hidden = attributes.outputs.unwrap_or_else(|| input.features());
            with_features(input, hidden.saturating_mul(if attributes.bidirectional { 2 } else { 1 }))
        }
        LayerKind::MatrixProduct => inputs.get(1).map_or_else(|| input.clone(), |second| with_features(input, second.features())),
        LayerKind::Concatenate => {
            let channels = |shape: &&Shape| shape.dimensions().first().copied().unwrap_or(0);
            let mut dimensions = input.dimensions().to_vec();
            if let Some(first) = dimensions.first_mut() {
                *first = inputs.iter().map(channels).fold(0, u64::saturating_add);
            }
            Shape::batched(dimensions)
        }
        LayerKind::Reduce => match *input.dimensions() {
            [channels, _, _] => Shape::batched([channels]),
            [_, features] => Shape::batched([features]),
            _ => input.clone(),
        },
        // Joint query, key and value are three times as wide as the output.
        LayerKind::Attention { .. } if inputs.len() == 1 => with_features(input, input.features() / 3),
        _ => input.clone(),
    }
}

fn convolved(module: &Module<'_>, input: &Shape, transposed: bool) -> Shape {
    let (attributes, rank) = (&module.attributes, rank(module));
    let kernel = attributes.kernel.unwrap_or([1, 1]);
    let (stride, padding) = (attributes.stride.unwrap_or([1, 1]), attributes.padding.unwrap_or([0, 0]));
    let dilation = attributes.dilation.unwrap_or([1, 1]);
    let from = window_dimensions(input, rank);
    let side = |axis: usize| {
        let (size, kernel, stride, padding) = (from[axis], kernel[axis], stride[axis], padding[axis]);
        if transposed {
            size.saturating_sub(1).saturating_mul(stride).saturating_add(kernel).saturating_sub(padding.saturating_mul(2)).max(1)
        } else {
            convolution::slide(size, kernel, stride, padding, dilation[axis], false)
        }
    };
    image(attributes.outputs.unwrap_or(1), rank, side)
}

fn pooled(module: &Module<'_>, input: &Shape) -> Shape {
    let (attributes, rank) = (&module.attributes, rank(module));
    let Some(channels) = channels(input, rank) else { return input.clone() };
    let size = window_dimensions(input, rank);
    let (padding, dilation) = (attributes.padding.unwrap_or([0, 0]), attributes.dilation.unwrap_or([1, 1]));
    image(channels, rank, |axis| match (attributes.output_size, attributes.kernel) {
        (Some(output), _) if output[axis] == 0 => size[axis],
        (Some(output), _) => output[axis],
        (None, Some(kernel)) => {
            let stride = attributes.stride.unwrap_or(kernel)[axis];
            convolution::slide(size[axis], kernel[axis], stride, padding[axis], dilation[axis], attributes.round_up)
        }
        (None, None) => 1,
    })
}

fn image(channels: u64, rank: usize, side: impl Fn(usize) -> u64) -> Shape {
    if rank == 1 { Shape::batched([channels, side(1)]) } else { Shape::batched([channels, side(0), side(1)]) }
}
