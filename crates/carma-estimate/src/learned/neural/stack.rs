//! Linear maps with batch normalisation and rectification, and a last linear map to classes.

use super::dense::Dense;
use super::normalisation::BatchNorm;

/// Layout of a stack's parameters.
#[derive(Debug, Clone)]
pub struct Stack {
    /// Hidden layers.
    pub hidden: Vec<(Dense, BatchNorm)>,
    /// The map to classes.
    pub last: Dense,
}

impl Stack {
    /// Takes the next parameters and running statistics.
    pub fn new(inputs: usize, widths: &[usize], classes: usize, next: &mut usize, state: &mut usize) -> Self {
        let mut before = inputs;
        let mut layer = |&width: &usize| {
            let layer = (Dense::new(before, width, next), BatchNorm::new(width, next, state));
            before = width;
            layer
        };
        let hidden = widths.iter().map(&mut layer).collect();
        Self { hidden, last: Dense::new(before, classes, next) }
    }

    /// Number of hidden layers.
    pub fn depth(&self) -> i32 {
        self.hidden.iter().map(|_| 1).sum()
    }

    /// The trained stack as linear maps, with the normalisation multiplied in.
    pub(super) fn folded(&self, parameters: &[f32], state: &[f32]) -> Vec<Map> {
        let plain = std::iter::once((&self.last, None));
        let hidden = self.hidden.iter().map(|(dense, norm)| (dense, Some(norm)));
        hidden
            .chain(plain)
            .map(|(dense, norm)| Map::new(dense, parameters, |place| norm.map_or((1.0, 0.0), |norm| norm.folded(parameters, state, place))))
            .collect()
    }
}

/// One linear map of a trained stack.
#[derive(Debug, Clone)]
pub(super) struct Map {
    outputs: usize,
    /// By input, then output.
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Map {
    fn new(dense: &Dense, parameters: &[f32], folded: impl Fn(usize) -> (f32, f32)) -> Self {
        let (weights, biases) = dense.of(parameters);
        let factors: Vec<(f32, f32)> = (0..dense.outputs).map(folded).collect();
        let by_input = (0..dense.inputs)
            .flat_map(|input| factors.iter().enumerate().map(move |(output, (scale, _))| scale * weights[output * dense.inputs + input]));
        Self {
            outputs: dense.outputs,
            weights: by_input.collect(),
            biases: biases.iter().zip(&factors).map(|(bias, (scale, offset))| scale * bias + offset).collect(),
        }
    }

    /// One sample through the map.
    pub(super) fn apply(&self, inputs: &[f32], outputs: &mut Vec<f32>) {
        outputs.clear();
        outputs.extend_from_slice(&self.biases);
        for (&input, weights) in inputs.iter().zip(self.weights.chunks_exact(self.outputs)) {
            outputs.iter_mut().zip(weights).for_each(|(output, weight)| *output += input * weight);
        }
    }
}
