//! Initial parameters, forward pass while training, and backward pass of a stack of linear maps.

use carma_estimate::learned::neural::Stack;
use carma_estimate::learned::neural::normalisation::Normalised;
use fastrand::Rng;

use super::{dense, normalisation};

/// Activations and gradients of a batch.
#[derive(Debug, Clone, Default)]
pub(super) struct StackPass {
    layers: Vec<(Vec<f32>, Normalised)>,
    /// A row per class.
    pub(super) logits: Vec<f32>,
    grad: Vec<f32>,
    inputs: Vec<f32>,
}

/// Random parameters.
pub(super) fn init(stack: &Stack, parameters: &mut [f32], state: &mut [f32], random: &mut Rng) {
    for (map, norm) in &stack.hidden {
        dense::init(map, parameters, random);
        normalisation::init_batch(norm, parameters, state);
    }
    dense::init(&stack.last, parameters, random);
}

/// Logits of the first `real` of `length` samples.
pub(super) fn forward(
    stack: &Stack,
    (parameters, state): (&[f32], &mut [f32]),
    inputs: &[f32],
    (real, length): (usize, usize),
    pass: &mut StackPass,
) {
    pass.layers.resize_with(stack.hidden.len(), Default::default);
    for (place, (map, norm)) in stack.hidden.iter().enumerate() {
        let (done, rest) = pass.layers.split_at_mut(place);
        let (values, kept) = &mut rest[0];
        values.resize(map.outputs * length, 0.0);
        map.forward(parameters, done.last().map_or(inputs, |(values, _)| values), length, values);
        normalisation::forward_batch(norm, (parameters, state), values, (real, length), kept);
        for value in values.iter_mut() {
            *value = value.max(0.0);
        }
    }
    pass.logits.resize(stack.last.outputs * length, 0.0);
    stack.last.forward(parameters, pass.layers.last().map_or(inputs, |(values, _)| values), length, &mut pass.logits);
}

/// From the gradients of the logits: adds to those of the parameters, and sets those of the first inputs.
pub(super) fn backward(
    stack: &Stack,
    parameters: &[f32],
    (inputs, logits): (&[f32], &[f32]),
    (real, length): (usize, usize),
    pass: &mut StackPass,
    (gradient, into): (&mut [f32], &mut [f32]),
) {
    let StackPass { layers, grad, inputs: next, .. } = pass;
    let input_of = |place: usize| place.checked_sub(1).map_or(inputs, |place| layers[place].0.as_slice());
    dense::backward(&stack.last, input_of(layers.len()), logits, length, gradient);
    grad.clear();
    grad.resize(stack.last.inputs * length, 0.0);
    dense::backward_inputs(&stack.last, parameters, logits, length, grad);
    for (place, (map, norm)) in stack.hidden.iter().enumerate().rev() {
        for (value, output) in grad.iter_mut().zip(&layers[place].0) {
            *value = if *output > 0.0 { *value } else { 0.0 };
        }
        normalisation::backward_batch(norm, parameters, &layers[place].1, grad, (real, length), gradient);
        dense::backward(map, input_of(place), grad, length, gradient);
        next.clear();
        next.resize(map.inputs * length, 0.0);
        dense::backward_inputs(map, parameters, grad, length, next);
        std::mem::swap(grad, next);
    }
    into.copy_from_slice(&grad[..into.len()]);
}
