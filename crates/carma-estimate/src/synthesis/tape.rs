//! Storages that are counted by their holders, told as events.

use crate::trace::{Convolution, Event, Mark, Purpose, StorageId};

pub(super) struct Tape<F> {
    /// Gets the events as they happen: thousands of them need not be kept where they are replayed at once.
    take: F,
    holders: Vec<u32>,
}

impl<F: FnMut(Event)> Tape<F> {
    pub(super) fn new(take: F, storages: usize) -> Self {
        Self { take, holders: Vec::with_capacity(storages) }
    }

    /// A new storage with one holder.
    pub(super) fn allocate(&mut self, bytes: u64, purpose: Purpose) -> StorageId {
        let storage = self.holders.len() as StorageId;
        self.holders.push(1);
        (self.take)(Event::Allocate { storage, bytes, purpose });
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
            (self.take)(Event::Free(storage));
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
        (self.take)(Event::Convolution(convolution));
    }

    pub(super) fn matrix_product(&mut self) {
        (self.take)(Event::MatrixProduct);
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        (self.take)(Event::Mark(mark));
    }
}
