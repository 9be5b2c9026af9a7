//! The loss at the end of the forward pass: cross-entropy over the model's last output.

use crate::trace::{Event, Purpose, StorageId};
use crate::training::Parallel;

use super::Synthesis;

/// The loss's own tensors; they live until the backward pass has used them.
pub(super) struct Loss {
    pub(super) saved: Vec<StorageId>,
    pub(super) bytes: u64,
}

impl<F: FnMut(Event)> Synthesis<'_, F> {
    pub(super) fn loss(&mut self) -> Loss {
        let Some(last) = self.model.layers.last() else { return Loss { saved: Vec::new(), bytes: 0 } };
        let elements = last.output.elements(self.training.batch);
        let bytes = elements.saturating_mul(4);
        let mut saved = Vec::new();
        if matches!(self.training.parallel, Parallel::DataParallel { .. }) {
            // The replicas' results are gathered on the first GPU.
            saved.push(self.tape.allocate(bytes, Purpose::Activations));
        }
        saved.push(self.tape.allocate(bytes, Purpose::Activations));
        saved.push(self.tape.allocate(4, Purpose::Activations));
        Loss { saved, bytes }
    }
}
