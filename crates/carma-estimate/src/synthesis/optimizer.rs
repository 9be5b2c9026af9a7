//! The optimizer's step: the state that the first step creates, and the temporaries of each step.

use crate::trace::{Event, Purpose, StorageId};
use crate::training::Optimizer;

use super::Synthesis;

/// Memory of an optimizer per parameter.
struct Needs {
    /// Bytes per element of each state tensor.
    state: &'static [u64],
    /// Bytes of temporaries per element, for all parameters at once: by default CUDA tensors are updated in groups.
    temporary: u64,
}

const fn needs(optimizer: Optimizer) -> Needs {
    match optimizer {
        // Adafactor keeps two vectors instead of a matrix, and updates parameters one by one.
        Optimizer::None | Optimizer::Sgd | Optimizer::Adafactor => Needs { state: &[], temporary: 0 },
        Optimizer::Momentum | Optimizer::Lion => Needs { state: &[4], temporary: 0 },
        Optimizer::Adam | Optimizer::AdamW => Needs { state: &[4, 4], temporary: 4 },
        Optimizer::FusedAdam => Needs { state: &[4, 4], temporary: 0 },
        Optimizer::Adam8bit => Needs { state: &[1, 1], temporary: 0 },
        Optimizer::RmsProp | Optimizer::Adagrad => Needs { state: &[4], temporary: 4 },
    }
}

impl<F: FnMut(Event)> Synthesis<'_, F> {
    pub(super) fn step(&mut self, first: bool) {
        let needs = needs(self.training.optimizer);
        let tensors = (0..self.model.layers.len()).flat_map(|position| self.trained_tensors(position));
        let sizes: Vec<u64> = tensors.map(|&elements| self.share(elements, 1)).collect();
        if first {
            for &elements in &sizes {
                for &bytes in needs.state {
                    self.tape.allocate(elements.saturating_mul(bytes), Purpose::Optimizer);
                }
            }
        }
        // Gradients with weight decay are new tensors.
        let decayed = if self.training.weight_decay && self.training.optimizer != Optimizer::AdamW { 4 } else { 0 };
        if needs.temporary + decayed > 0 {
            let mut temporaries: Vec<StorageId> = Vec::new();
            for bytes in [decayed, needs.temporary].into_iter().filter(|&bytes| bytes > 0) {
                temporaries.extend(sizes.iter().map(|&elements| self.tape.allocate(elements.saturating_mul(bytes), Purpose::Temporaries)));
            }
            for storage in temporaries {
                self.tape.release(storage);
            }
        } else if self.training.optimizer == Optimizer::Adafactor {
            for elements in sizes {
                self.tape.pass(elements.saturating_mul(4), Purpose::Temporaries);
            }
        }
    }
}
