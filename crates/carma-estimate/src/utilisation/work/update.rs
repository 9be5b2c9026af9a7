//! Kernels of an iteration that belong to no layer: the loss and the optimizer.

use super::Kernel;
use crate::model::{Model, Source};
use crate::training::{Optimizer, Training};

/// Maximum elements per optimizer kernel: lists of tensors are split into chunks.
const LIST: f64 = 320.0 * 65_536.0;
/// Maximum tensors in a list.
const TENSORS: f64 = 48.0;

/// Cross-entropy over the model's final outputs, forward and backward.
pub fn loss(model: &Model, training: &Training, batch: u64) -> Vec<Kernel> {
    let mut read = vec![false; model.layers.len()];
    for source in model.layers.iter().flat_map(|layer| &layer.inputs) {
        if let Source::Layer(place) = *source
            && let Some(read) = read.get_mut(place)
        {
            *read = true;
        }
    }
    let outputs = model.layers.iter().zip(read).filter(|(_, read)| !read).map(|(layer, _)| layer.output.elements(batch) as f64).sum();
    let each = |moved: f64| Kernel::elementwise(outputs, 4.0, 4.0 * moved * outputs);
    let pass = [each(2.0), Kernel::elementwise(batch as f64, 1.0, 8.0 * batch as f64)];
    if training.optimizer == Optimizer::None { Vec::new() } else { [pass, pass].concat() }
}

/// One step of the optimizer over all trained tensors.
pub fn optimizer(model: &Model, training: &Training) -> Vec<Kernel> {
    // Number of kernels over all weights, and how often each reads or writes a tensor of that size.
    let (kernels, moved) = match training.optimizer {
        Optimizer::None => return Vec::new(),
        Optimizer::Sgd => (1, 3.0),
        Optimizer::Momentum => (3, 3.0),
        Optimizer::FusedAdam | Optimizer::Adam8bit => (1, 7.0),
        Optimizer::Adam | Optimizer::AdamW => (12, 2.5),
        Optimizer::RmsProp | Optimizer::Adagrad | Optimizer::Lion => (6, 2.5),
        Optimizer::Adafactor => (20, 2.0),
    };
    let trained: f64 = model.layers.iter().map(|layer| training.trained_elements(layer) as f64).sum();
    let tensors: f64 =
        model.layers.iter().filter(|layer| training.trained_elements(layer) > 0).map(|layer| layer.tensors.len().max(1) as f64).sum();
    if trained <= 0.0 {
        return Vec::new();
    }
    let lists = (trained / LIST).max(tensors / TENSORS).ceil().clamp(1.0, 2_000.0);
    let bytes = training.precision.weights().bytes() as f64;
    let elements = trained / lists;
    vec![Kernel::elementwise(elements, 2.0, bytes * moved * elements); kernels * lists as usize]
}
