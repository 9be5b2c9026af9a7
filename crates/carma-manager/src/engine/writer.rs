//! Writes batches to the store, one at a time.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::decide::{Decisions, Effect};
use super::input::Input;
use crate::store::{Change, Store, WriteError};

/// Hands batches to the store, and keeps their effects until they are written.
pub(crate) struct Writer {
    store: Arc<Store>,
    inputs: Sender<Input>,
    /// Effects of the batch that is being written.
    in_flight: Option<Vec<Effect>>,
}

impl Writer {
    pub(crate) fn new(store: Arc<Store>, inputs: Sender<Input>) -> Self {
        Self { store, inputs, in_flight: None }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether a batch is being written.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Hands the batch to the store, unless another one is being written. Returns effects that need not wait.
    pub(crate) fn flush(&mut self, decisions: &mut Decisions) -> Option<Vec<Effect>> {
        if self.is_busy() || decisions.batch.is_empty() {
            return None;
        }
        let (mut changes, effects) = std::mem::take(&mut decisions.batch).settle(decisions.scheduler(), decisions.wall());
        if changes.is_empty() {
            return Some(effects);
        }
        // After a restart, time continues from here.
        changes.push(Change::ClockAdvanced(decisions.now()));
        self.in_flight = Some(effects);
        let inputs = self.inputs.clone();
        self.store.write_then(changes, move |result| drop(inputs.send(Input::Written(result))));
        None
    }

    /// Makes sure that no other manager has taken over since the commit, if this process was stopped for long. Effects of the batch follow.
    pub(crate) fn confirm(&self) -> Result<(), WriteError> {
        if self.store.is_current() { Ok(()) } else { self.write_now(Vec::new()) }
    }

    /// The batch is written: its effects.
    pub(crate) fn written(&mut self) -> Vec<Effect> {
        self.in_flight.take().unwrap_or_default()
    }

    /// Writes these changes, and waits until they are on the disk.
    pub(crate) fn write_now(&self, changes: Vec<Change>) -> Result<(), WriteError> {
        self.store.write(changes).wait()
    }
}
