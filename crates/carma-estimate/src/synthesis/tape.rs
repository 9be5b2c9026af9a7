//! Storages that are counted by their holders, written down as events.

use crate::trace::{Convolution, Event, Mark, Purpose, StorageId};

#[derive(Debug, Default)]
pub(super) struct Tape {
    events: Vec<Event>,
    holders: Vec<u32>,
}

impl Tape {
    pub(super) fn with_capacity(events: usize) -> Self {
        Self { events: Vec::with_capacity(events), holders: Vec::with_capacity(events / 3) }
    }

    /// A new storage with one holder.
    pub(super) fn allocate(&mut self, bytes: u64, purpose: Purpose) -> StorageId {
        let storage = self.holders.len() as StorageId;
        self.holders.push(1);
        self.events.push(Event::Allocate { storage, bytes, purpose });
        storage
    }

    /// One more holder.
    pub(super) fn hold(&mut self, storage: StorageId) -> StorageId {
        self.holders[storage as usize] += 1;
        storage
    }

    /// One holder less; the last one frees it.
    pub(super) fn release(&mut self, storage: StorageId) {
        let holders = &mut self.holders[storage as usize];
        debug_assert!(*holders > 0, "storage {storage} is released once too often");
        *holders -= 1;
        if *holders == 0 {
            self.events.push(Event::Free(storage));
        }
    }

    /// Allocated and freed at once.
    pub(super) fn pass(&mut self, bytes: u64, purpose: Purpose) {
        let storage = self.allocate(bytes, purpose);
        self.release(storage);
    }

    pub(super) fn has_one_holder(&self, storage: StorageId) -> bool {
        self.holders[storage as usize] == 1
    }

    pub(super) fn convolution(&mut self, convolution: Convolution) {
        self.events.push(Event::Convolution(convolution));
    }

    pub(super) fn matrix_product(&mut self) {
        self.events.push(Event::MatrixProduct);
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        self.events.push(Event::Mark(mark));
    }

    pub(super) fn into_events(self) -> Vec<Event> {
        self.events
    }
}
