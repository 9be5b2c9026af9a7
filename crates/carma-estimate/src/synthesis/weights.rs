//! Weights, and buffers with the same lifetime.

use crate::model::{Layer, LayerKind, Normalisation};
use crate::trace::{Event, Purpose};
use crate::training::Parallel;

use super::Synthesis;

/// Size of gradient buckets between processes (`DistributedDataParallel`'s default).
pub(super) const BUCKET: u64 = 25 << 20;

/// Sizes of a layer's parameter tensors, in elements.
fn tensors(layer: &Layer) -> &[u64] {
    if layer.tensors.is_empty() && layer.parameters > 0 { std::slice::from_ref(&layer.parameters) } else { &layer.tensors }
}

impl<F: FnMut(Event)> Synthesis<'_, F> {
    /// Sizes of a layer's trained tensors: its own, or those of its adapters.
    pub(super) fn trained_tensors(&self, position: usize) -> &[u64] {
        match self.adapters.get(position) {
            None => tensors(&self.model.layers[position]),
            Some(0) => &[],
            Some(adapters) => std::slice::from_ref(adapters),
        }
    }

    /// Trained elements of all layers.
    pub(super) fn trained_parameters(&self) -> u64 {
        self.model.layers.iter().map(|layer| self.training.trained_elements(layer)).fold(0, u64::saturating_add)
    }

    /// This process's share of a tensor that is sharded from a `ZeRO` stage on.
    pub(super) fn share(&self, elements: u64, from_stage: u8) -> u64 {
        match self.training.parallel {
            Parallel::Zero { stage, gpus } if stage >= from_stage => elements.div_ceil(gpus.max(1)),
            _ => elements,
        }
    }

    pub(super) fn place_weights(&mut self) {
        let bytes = self.training.precision.weights().bytes();
        for (position, layer) in self.model.layers.iter().enumerate() {
            let sizes = tensors(layer);
            let adapters = self.adapters.get(position).copied().filter(|&elements| elements > 0);
            for elements in sizes.iter().copied().chain(adapters) {
                let kept = self.share(elements, 3);
                self.tape.allocate(kept.saturating_mul(bytes), Purpose::Weights);
            }
            if layer.kind == LayerKind::Normalisation(Normalisation::Batch) {
                // Running mean, running variance and the count of batches.
                let features = sizes.first().copied().unwrap_or(0);
                for bytes in [features * 4, features * 4, 8] {
                    self.tape.allocate(bytes, Purpose::Weights);
                }
            }
        }
        if matches!(self.training.parallel, Parallel::Distributed { .. }) {
            let mut left = self.trained_parameters().saturating_mul(bytes);
            while left > 0 {
                self.tape.allocate(left.min(BUCKET), Purpose::Gradients);
                left = left.saturating_sub(BUCKET);
            }
        }
    }
}
