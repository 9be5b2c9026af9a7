//! Initial parameters and backward pass of a linear map.

use carma_estimate::learned::neural::Dense;
use carma_estimate::learned::neural::lanes::{LANES, dot, lanes, lanes_mut, sum};
use fastrand::Rng;

/// Random weights and biases as `nn.Linear` draws them.
pub(super) fn init(dense: &Dense, parameters: &mut [f32], random: &mut Rng) {
    let limit = 1.0 / (dense.inputs as f32).sqrt();
    for parameter in &mut parameters[dense.range()] {
        *parameter = (2.0 * random.f32() - 1.0) * limit;
    }
}

/// Adds to the gradients of the parameters, from those of the outputs.
pub(super) fn backward(dense: &Dense, inputs: &[f32], outputs: &[f32], length: usize, gradient: &mut [f32]) {
    let (weights, biases) = gradient[dense.range()].split_at_mut(dense.inputs * dense.outputs);
    for ((row, weights), bias) in outputs.chunks_exact(length).zip(weights.chunks_exact_mut(dense.inputs)).zip(biases) {
        *bias += sum(row);
        for (weight, input) in weights.iter_mut().zip(inputs.chunks_exact(length)) {
            *weight += dot(row, input);
        }
    }
}

/// Adds to the gradients of the inputs, from those of the outputs.
pub(super) fn backward_inputs(dense: &Dense, parameters: &[f32], outputs: &[f32], length: usize, inputs: &mut [f32]) {
    let (weights, _) = dense.of(parameters);
    for (place, row) in inputs.chunks_exact_mut(length).enumerate().take(dense.inputs) {
        for (chunk, into) in lanes_mut(row).iter_mut().enumerate() {
            let mut sums = [0.0; LANES];
            for (weights, output) in weights.chunks_exact(dense.inputs).zip(outputs.chunks_exact(length)) {
                let (weight, output) = (weights[place], &lanes(output)[chunk]);
                for lane in 0..LANES {
                    sums[lane] += weight * output[lane];
                }
            }
            for lane in 0..LANES {
                into[lane] += sums[lane];
            }
        }
    }
}
