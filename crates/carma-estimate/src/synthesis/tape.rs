//! Reference-counted storages, emitted as events.

use crate::trace::{Convolution, Event, Mark, Purpose, StorageId};

pub(super) struct Tape<F> {
    /// Receives the events as they happen, so that they need not be stored.
    take: F,
    holders: Vec<u32>,
}

impl<F: FnMut(Event)> Tape<F> {
    pub(super) fn new(take: F, storages: usize) -> Self {
        Self { take, holders: Vec::with_capacity(storages) }
    }

    /// Allocates a storage with one reference.
    pub(super) fn allocate(&mut self, bytes: u64, purpose: Purpose) -> StorageId {
        let storage = self.holders.len() as StorageId;
        self.holders.push(1);
        (self.take)(Event::Allocate { storage, bytes, purpose });
        storage
    }

    /// Adds a reference.
    pub(super) fn hold(&mut self, storage: StorageId) -> StorageId {
        self.holders[storage as usize] += 1;
        storage
    }

    /// Drops a reference; the last one frees the storage.
    pub(super) fn release(&mut self, storage: StorageId) {
        let holders = &mut self.holders[storage as usize];
        debug_assert!(*holders > 0, "storage {storage} is released twice");
        *holders -= 1;
        if *holders == 0 {
            (self.take)(Event::Free(storage));
        }
    }

    /// Allocates and frees at once.
    pub(super) fn pass(&mut self, bytes: u64, purpose: Purpose) {
        let storage = self.allocate(bytes, purpose);
        self.release(storage);
    }

    pub(super) fn has_one_holder(&self, storage: StorageId) -> bool {
        self.holders[storage as usize] == 1
    }

    pub(super) fn convolution(&mut self, convolution: Convolution) {
        (self.take)(Event::Convolution(convolution));
    }

    pub(super) fn matrix_product(&mut self) {
        (self.take)(Event::MatrixProduct);
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        (self.take)(Event::Mark(mark));
    }
}
