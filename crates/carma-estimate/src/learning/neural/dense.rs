//! A linear map with bias.

use super::lanes::{LANES, dot, lanes, lanes_mut, sum};

/// A linear map whose weights (a row for each output) and biases stand at a place among a network's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dense {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    at: usize,
}

impl Dense {
    /// Takes the next parameters.
    pub(super) fn new(inputs: usize, outputs: usize, next: &mut usize) -> Self {
        let at = *next;
        *next += (inputs + 1) * outputs;
        Self { inputs, outputs, at }
    }

    /// Weights and biases.
    pub(super) fn of<'a>(&self, parameters: &'a [f32]) -> (&'a [f32], &'a [f32]) {
        parameters[self.at..self.at + (self.inputs + 1) * self.outputs].split_at(self.inputs * self.outputs)
    }

    /// Draws weights and biases as `nn.Linear` does.
    pub(super) fn draw(&self, parameters: &mut [f32], random: &mut fastrand::Rng) {
        let limit = 1.0 / (self.inputs as f32).sqrt();
        for parameter in &mut parameters[self.at..self.at + (self.inputs + 1) * self.outputs] {
            *parameter = (2.0 * random.f32() - 1.0) * limit;
        }
    }

    /// `outputs` for `length` columns of `inputs`.
    pub(super) fn forward(&self, parameters: &[f32], inputs: &[f32], length: usize, outputs: &mut [f32]) {
        let (weights, biases) = self.of(parameters);
        let (inputs, columns) = (lanes(inputs), length / LANES);
        let rows = outputs.chunks_exact_mut(length).zip(weights.chunks_exact(self.inputs)).zip(biases);
        for ((row, weights), &bias) in rows {
            for (place, out) in lanes_mut(row).iter_mut().enumerate() {
                let mut sums = [bias; LANES];
                for (&weight, input) in weights.iter().zip(inputs.iter().skip(place).step_by(columns)) {
                    for lane in 0..LANES {
                        sums[lane] += weight * input[lane];
                    }
                }
                *out = sums;
            }
        }
    }

    /// Adds to the gradients of the parameters, from those of the outputs.
    pub(super) fn backward(&self, inputs: &[f32], outputs: &[f32], length: usize, gradient: &mut [f32]) {
        let (weights, biases) = gradient[self.at..self.at + (self.inputs + 1) * self.outputs].split_at_mut(self.inputs * self.outputs);
        for ((row, weights), bias) in outputs.chunks_exact(length).zip(weights.chunks_exact_mut(self.inputs)).zip(biases) {
            *bias += sum(row);
            for (weight, input) in weights.iter_mut().zip(inputs.chunks_exact(length)) {
                *weight += dot(row, input);
            }
        }
    }

    /// Adds to the gradients of the inputs, from those of the outputs.
    pub(super) fn pull(&self, parameters: &[f32], outputs: &[f32], length: usize, inputs: &mut [f32]) {
        let (weights, _) = self.of(parameters);
        for (place, row) in inputs.chunks_exact_mut(length).enumerate().take(self.inputs) {
            for (chunk, into) in lanes_mut(row).iter_mut().enumerate() {
                let mut sums = [0.0; LANES];
                for (weights, output) in weights.chunks_exact(self.inputs).zip(outputs.chunks_exact(length)) {
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
}
