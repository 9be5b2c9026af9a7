//! Weights, and the buffers that live as long as they do.

use crate::model::{LayerKind, Normalisation};
use crate::trace::Purpose;
use crate::training::Parallel;

use super::Synthesis;

/// Buckets in which gradients travel between processes (`DistributedDataParallel`'s default).
pub(super) const BUCKET: u64 = 25 << 20;

impl Synthesis<'_> {
    /// Sizes of a layer's parameter tensors, in elements.
    pub(super) fn tensors(&self, position: usize) -> impl Iterator<Item = u64> + use<'_> {
        let layer = &self.model.layers[position];
        let whole = (layer.tensors.is_empty() && layer.parameters > 0).then_some(layer.parameters);
        layer.tensors.iter().copied().chain(whole)
    }

    /// Share of a tensor that this process keeps from a ZeRO stage on.
    pub(super) fn share(&self, elements: u64, from_stage: u8) -> u64 {
        match self.training.parallel {
            Parallel::Zero { stage, gpus } if stage >= from_stage => elements.div_ceil(gpus.max(1)),
            _ => elements,
        }
    }

    pub(super) fn place_weights(&mut self) {
        let bytes = self.training.precision.weights().bytes();
        for position in 0..self.model.layers.len() {
            let sizes: Vec<u64> = self.tensors(position).collect();
            for elements in &sizes {
                let kept = self.share(*elements, 3);
                self.tape.allocate(kept.saturating_mul(bytes), Purpose::Weights);
            }
            if self.model.layers[position].kind == LayerKind::Normalisation(Normalisation::Batch) {
                // Running mean, running variance and the count of batches.
                let features = sizes.first().copied().unwrap_or(0);
                for bytes in [features * 4, features * 4, 8] {
                    self.tape.allocate(bytes, Purpose::Weights);
                }
            }
        }
        if matches!(self.training.parallel, Parallel::Distributed { .. }) {
            let mut left = self.model.parameters().saturating_mul(bytes);
            while left > 0 {
                self.tape.allocate(left.min(BUCKET), Purpose::Gradients);
                left = left.saturating_sub(BUCKET);
            }
        }
    }
}
