//! Linear maps with batch normalisation and rectification, and a last linear map to classes.

use super::dense::Dense;
use super::normalisation::{BatchNorm, Normalised};

/// Where a stack's parameters stand.
#[derive(Debug, Clone)]
pub(super) struct Stack {
    hidden: Vec<(Dense, BatchNorm)>,
    last: Dense,
}

/// All that is computed of a batch.
#[derive(Debug, Clone, Default)]
pub(super) struct StackPass {
    layers: Vec<(Vec<f32>, Normalised)>,
    /// Rows of classes before they become probabilities.
    pub(super) logits: Vec<f32>,
    slopes: Vec<f32>,
    others: Vec<f32>,
}

impl Stack {
    /// Takes the next parameters and running statistics.
    pub(super) fn new(inputs: usize, widths: &[usize], classes: usize, next: &mut usize, state: &mut usize) -> Self {
        let mut before = inputs;
        let mut layer = |&width: &usize| {
            let layer = (Dense::new(before, width, next), BatchNorm::new(width, next, state));
            before = width;
            layer
        };
        let hidden = widths.iter().map(&mut layer).collect();
        Self { hidden, last: Dense::new(before, classes, next) }
    }

    /// Layers but the last.
    pub(super) fn depth(&self) -> i32 {
        self.hidden.iter().map(|_| 1).sum()
    }

    pub(super) fn draw(&self, parameters: &mut [f32], state: &mut [f32], random: &mut fastrand::Rng) {
        for (dense, norm) in &self.hidden {
            dense.draw(parameters, random);
            norm.begin(parameters, state);
        }
        self.last.draw(parameters, random);
    }

    /// Classes of the first `real` of `length` samples, while training.
    pub(super) fn forward(
        &self,
        (parameters, state): (&[f32], &mut [f32]),
        inputs: &[f32],
        (real, length): (usize, usize),
        pass: &mut StackPass,
    ) {
        pass.layers.resize_with(self.hidden.len(), Default::default);
        for place in 0..self.hidden.len() {
            let (dense, norm) = &self.hidden[place];
            let (done, rest) = pass.layers.split_at_mut(place);
            let (values, kept) = &mut rest[0];
            values.resize(dense.outputs * length, 0.0);
            dense.forward(parameters, done.last().map_or(inputs, |(values, _)| values), length, values);
            norm.forward((parameters, state), values, (real, length), kept);
            for value in values.iter_mut() {
                *value = value.max(0.0);
            }
        }
        pass.logits.resize(self.last.outputs * length, 0.0);
        self.last.forward(parameters, pass.layers.last().map_or(inputs, |(values, _)| values), length, &mut pass.logits);
    }

    /// From the gradients of the classes: adds to those of the parameters, and sets those of the inputs.
    pub(super) fn backward(
        &self,
        parameters: &[f32],
        (inputs, classes): (&[f32], &[f32]),
        (real, length): (usize, usize),
        pass: &mut StackPass,
        (gradient, into): (&mut [f32], &mut [f32]),
    ) {
        let StackPass { layers, slopes, others, .. } = pass;
        let before = |layers: &[(Vec<f32>, Normalised)], place: usize| place.checked_sub(1).map(|place| layers[place].0.clone());
        let reads = before(layers, layers.len());
        self.last.backward(reads.as_deref().unwrap_or(inputs), classes, length, gradient);
        slopes.clear();
        slopes.resize(self.last.inputs * length, 0.0);
        self.last.pull(parameters, classes, length, slopes);
        for place in (0..self.hidden.len()).rev() {
            let (dense, norm) = &self.hidden[place];
            for (slope, value) in slopes.iter_mut().zip(&layers[place].0) {
                *slope = if *value > 0.0 { *slope } else { 0.0 };
            }
            norm.backward(parameters, &layers[place].1, slopes, (real, length), gradient);
            let reads = before(layers, place);
            dense.backward(reads.as_deref().unwrap_or(inputs), slopes, length, gradient);
            others.clear();
            others.resize(dense.inputs * length, 0.0);
            dense.pull(parameters, slopes, length, others);
            std::mem::swap(slopes, others);
        }
        into.copy_from_slice(&slopes[..into.len()]);
    }

    /// The stack as plain linear maps, normalisation multiplied in: for each, weights by input then output, and biases.
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
    pub(super) outputs: usize,
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Map {
    fn new(dense: &Dense, parameters: &[f32], folded: impl Fn(usize) -> (f32, f32)) -> Self {
        let (weights, biases) = dense.of(parameters);
        let factors: Vec<(f32, f32)> = (0..dense.outputs).map(folded).collect();
        let by_input = (0..dense.inputs)
            .flat_map(|input| factors.iter().enumerate().map(move |(output, (slope, _))| slope * weights[output * dense.inputs + input]));
        Self {
            outputs: dense.outputs,
            weights: by_input.collect(),
            biases: biases.iter().zip(&factors).map(|(bias, (slope, offset))| slope * bias + offset).collect(),
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
