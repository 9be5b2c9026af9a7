//! A linear map with bias.

use std::ops::Range;

use super::lanes::{LANES, lanes, lanes_mut};

/// A linear map. Its weights (a row per output) and then its biases are a range of the network's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dense {
    /// Width of the input.
    pub inputs: usize,
    /// Width of the output.
    pub outputs: usize,
    at: usize,
}

impl Dense {
    /// Takes the next parameters, from `next` on.
    pub fn new(inputs: usize, outputs: usize, next: &mut usize) -> Self {
        let at = *next;
        *next += (inputs + 1) * outputs;
        Self { inputs, outputs, at }
    }

    /// The range of its parameters.
    pub fn range(&self) -> Range<usize> {
        self.at..self.at + (self.inputs + 1) * self.outputs
    }

    /// Weights and biases.
    pub fn of<'a>(&self, parameters: &'a [f32]) -> (&'a [f32], &'a [f32]) {
        parameters[self.range()].split_at(self.inputs * self.outputs)
    }

    /// `outputs` for `length` columns of `inputs`.
    pub fn forward(&self, parameters: &[f32], inputs: &[f32], length: usize, outputs: &mut [f32]) {
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
}
