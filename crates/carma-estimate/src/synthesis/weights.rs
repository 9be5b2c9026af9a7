//! Weights, and the buffers that live as long as they do.

use crate::model::{LayerKind, Normalisation};
use crate::trace::Purpose;
use crate::training::Parallel;

use super::Synthesis;

/// Buckets in which gradients travel between processes (`DistributedDataParallel`'s default).
pub(super) const BUCKET: u64 = 25 << 20;

impl Synthesis<'_> {
    /// Sizes of a layer's parameter tensors, in elements.
    fn tensors(&self, position: usize) -> Vec<u64> {
        let layer = &self.model.layers[position];
        if layer.tensors.is_empty() && layer.parameters > 0 { vec![layer.parameters] } else { layer.tensors.clone() }
    }

    /// Sizes of the tensors of a layer that are trained: its own, or those of its adapters.
    pub(super) fn trained_tensors(&self, position: usize) -> Vec<u64> {
        match (self.training.adapters, self.training.trained_elements(&self.model.layers[position])) {
            (None, _) => self.tensors(position),
            (Some(_), 0) => Vec::new(),
            (Some(_), adapters) => vec![adapters],
        }
    }

    /// Trained elements of all layers.
    pub(super) fn trained_parameters(&self) -> u64 {
        self.model.layers.iter().map(|layer| self.training.trained_elements(layer)).fold(0, u64::saturating_add)
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
            let sizes = self.tensors(position);
            let adapters = if self.training.adapters.is_some() { self.trained_tensors(position) } else { Vec::new() };
            for elements in sizes.iter().chain(&adapters) {
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
            let mut left = self.trained_parameters().saturating_mul(bytes);
            while left > 0 {
                self.tape.allocate(left.min(BUCKET), Purpose::Gradients);
                left = left.saturating_sub(BUCKET);
            }
        }
    }
}
