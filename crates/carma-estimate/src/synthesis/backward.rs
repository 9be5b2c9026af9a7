//! The backward pass: layers in reverse order, each computing the gradients of its inputs and parameters.

use crate::model::{Layer, LayerKind, Reshaping, Source};
use crate::trace::{Direction, Event, Purpose};
use crate::training::Parallel;

use super::loss::Loss;
use super::weights::BUCKET;
use super::{Gradient, Synthesis};

impl<F: FnMut(Event)> Synthesis<'_, F> {
    pub(super) fn backward(&mut self, loss: Loss) {
        let Some(last) = self.model.layers.len().checked_sub(1) else { return };
        // Gradient of the log-softmax's output, then of its input.
        let outer = self.tape.allocate(loss.bytes, Purpose::Temporaries);
        let inner = self.tape.allocate(loss.bytes, Purpose::Temporaries);
        self.tape.release(outer);
        for storage in loss.saved {
            self.tape.release(storage);
        }
        self.gradients[last] = Some(Gradient { storage: inner, slice: false });
        for position in (0..=last).rev() {
            self.recompute_before(position);
            self.differentiate(position);
        }
        self.reduce_replicas();
    }

    fn differentiate(&mut self, position: usize) {
        let model = self.model;
        let layer = &model.layers[position];
        if let Some(gradient) = self.gradients[position].take() {
            let gradient = self.contiguous(layer, gradient);
            self.input_gradients(layer, gradient);
            // A learned slope (PReLU) gets a gradient per element, which is summed afterwards.
            let slopes = (matches!(layer.kind, LayerKind::Activation(_)) && layer.parameters > 0)
                .then(|| self.tape.allocate(self.gradient_bytes(layer.output.elements(self.batch)), Purpose::Temporaries));
            self.weight_gradients(position, layer);
            for storage in slopes.into_iter().chain([gradient.storage]) {
                self.tape.release(storage);
            }
        }
        let (begin, end) = self.saved_of[position];
        for index in begin..end {
            self.tape.release(self.saved[index as usize]);
        }
        self.saved_of[position] = (0, 0);
    }

    /// cuDNN reads contiguous memory: a slice of a concatenation's gradient is copied first.
    fn contiguous(&mut self, layer: &Layer, gradient: Gradient) -> Gradient {
        let copies = matches!(layer.kind, LayerKind::Convolution { .. } | LayerKind::Normalisation(_) | LayerKind::Linear);
        if !(gradient.slice && copies) {
            return gradient;
        }
        let storage = self.tape.allocate(self.gradient_bytes(layer.output.elements(self.batch)), Purpose::Temporaries);
        self.tape.release(gradient.storage);
        Gradient { storage, slice: false }
    }

    fn gradient_bytes(&self, elements: u64) -> u64 {
        elements.saturating_mul(self.training.precision.activations().bytes())
    }

    fn input_gradients(&mut self, layer: &Layer, gradient: Gradient) {
        for &source in &layer.inputs {
            let Source::Layer(before) = source else { continue };
            if !self.gradient_flows_to(source) {
                continue;
            }
            let elements = self.elements(source);
            let passed = match layer.kind {
                LayerKind::Reshape(Reshaping::View) | LayerKind::Dropout { probability: 0.0 } => Some(gradient),
                LayerKind::Add if elements == layer.output.elements(self.batch) => Some(gradient),
                LayerKind::Concatenate => Some(Gradient { slice: true, ..gradient }),
                _ => None,
            };
            let new = match passed {
                Some(gradient) => Gradient { storage: self.tape.hold(gradient.storage), ..gradient },
                None => Gradient { storage: self.tape.allocate(self.gradient_bytes(elements), Purpose::Temporaries), slice: false },
            };
            match layer.kind {
                LayerKind::Convolution { .. } => {
                    if let Some(call) = self.convolution(layer, Direction::Data) {
                        self.tape.convolution(call);
                    }
                }
                LayerKind::Linear | LayerKind::MatrixProduct => self.tape.matrix_product(),
                _ => {}
            }
            self.accumulate(before, new);
        }
    }

    /// A second gradient is added in place if nothing else holds the first.
    fn accumulate(&mut self, position: usize, new: Gradient) {
        let Some(old) = self.gradients[position] else {
            self.gradients[position] = Some(new);
            return;
        };
        if self.tape.has_one_holder(old.storage) && !old.slice {
            self.tape.release(new.storage);
            return;
        }
        let bytes = self.gradient_bytes(self.model.layers[position].output.elements(self.batch));
        let storage = self.tape.allocate(bytes, Purpose::Temporaries);
        self.tape.release(old.storage);
        self.tape.release(new.storage);
        self.gradients[position] = Some(Gradient { storage, slice: false });
    }

    fn weight_gradients(&mut self, position: usize, layer: &Layer) {
        let bytes = self.training.precision.weights().bytes();
        for number in 0..self.trained_tensors(position).len() {
            let elements = self.trained_tensors(position)[number];
            let kept = self.share(elements, 2);
            let storage = self.tape.allocate(kept.saturating_mul(bytes), Purpose::Gradients);
            if number == 0
                && let Some(call) = self.convolution(layer, Direction::Weight)
            {
                self.tape.convolution(call);
            }
            self.parameter_gradients.push(storage);
        }
    }

    /// `nn.DataParallel` sums the replicas' gradients in buckets on the first GPU, beside its own replica's.
    fn reduce_replicas(&mut self) {
        if !matches!(self.training.parallel, Parallel::DataParallel { .. }) {
            return;
        }
        let bytes = self.training.precision.weights().bytes();
        let mut left = self.trained_parameters().saturating_mul(bytes);
        let mut sums = Vec::new();
        while left > 0 {
            sums.push(self.tape.allocate(left.min(BUCKET), Purpose::Gradients));
            left = left.saturating_sub(BUCKET);
        }
        for own in std::mem::replace(&mut self.parameter_gradients, sums) {
            self.tape.release(own);
        }
    }
}
