//! Initial parameters and backward pass of an encoder.

use carma_estimate::learned::neural::attention::Attention;
use carma_estimate::learned::neural::{Encoder, EncoderPass, POOLING};
use fastrand::Rng;

use super::{attention, dense, normalisation};

/// Buffers of a backward pass, reused between calls.
#[derive(Debug, Clone, Default)]
pub(super) struct EncoderGrad {
    grad: Vec<f32>,
    mixed: Vec<f32>,
    wide: Vec<f32>,
    scratch: Vec<f32>,
}

/// Random parameters.
pub(super) fn init(encoder: &Encoder, parameters: &mut [f32], random: &mut Rng) {
    for parameter in &mut parameters[encoder.kinds..encoder.kinds + encoder.shape.kinds * encoder.shape.width] {
        *parameter = 2.0 * random.f32() - 1.0;
    }
    dense::init(&encoder.embed, parameters, random);
    for layer in &encoder.layers {
        for map in [layer.project, layer.join, layer.widen, layer.narrow] {
            dense::init(&map, parameters, random);
        }
        normalisation::init_layer(&layer.first, parameters);
        normalisation::init_layer(&layer.second, parameters);
    }
}

/// Adds to the gradients of the parameters, from those of the sums over each sample's tokens.
pub(super) fn backward(
    encoder: &Encoder,
    parameters: &[f32],
    pass: &EncoderPass,
    (pooled, samples): (&[f32], usize),
    buffers: &mut EncoderGrad,
    gradient: &mut [f32],
) {
    let (width, length) = (encoder.shape.width, pass.length);
    let EncoderGrad { grad, mixed, wide, scratch } = buffers;
    grad.resize(width * length, 0.0);
    for (row, sums) in grad.chunks_exact_mut(length).zip(pooled.chunks_exact(samples)) {
        for (segment, sum) in pass.segments.iter().zip(sums) {
            let tokens = segment.start..segment.start + segment.padded;
            for (value, count) in row[tokens.clone()].iter_mut().zip(&pass.counts[tokens]) {
                *value = POOLING * sum * count;
            }
        }
    }
    for (layer, at) in encoder.layers.iter().zip(&pass.layers).rev() {
        normalisation::backward_layer(&layer.second, parameters, &at.second, grad, length, gradient);
        dense::backward(&layer.narrow, &at.hidden, grad, length, gradient);
        wide.clear();
        wide.resize(encoder.shape.feed_forward * length, 0.0);
        dense::backward_inputs(&layer.narrow, parameters, grad, length, wide);
        for (value, hidden) in wide.iter_mut().zip(&at.hidden) {
            *value = if *hidden > 0.0 { *value } else { 0.0 };
        }
        dense::backward(&layer.widen, &at.middle, wide, length, gradient);
        dense::backward_inputs(&layer.widen, parameters, wide, length, grad);
        normalisation::backward_layer(&layer.first, parameters, &at.first, grad, length, gradient);
        dense::backward(&layer.join, &at.mixed, grad, length, gradient);
        mixed.clear();
        mixed.resize(width * length, 0.0);
        dense::backward_inputs(&layer.join, parameters, grad, length, mixed);
        wide.resize(3 * width * length, 0.0);
        attention::backward(Attention { width, length }, &at.projected, &at.weights, &pass.segments, mixed, wide, scratch);
        dense::backward(&layer.project, &at.input, wide, length, gradient);
        dense::backward_inputs(&layer.project, parameters, wide, length, grad);
    }
    dense::backward(&encoder.embed, &pass.features, grad, length, gradient);
    for (token, kind) in pass.kinds.iter().enumerate() {
        for feature in 0..width {
            gradient[encoder.kinds + kind * width + feature] += grad[feature * length + token];
        }
    }
}
