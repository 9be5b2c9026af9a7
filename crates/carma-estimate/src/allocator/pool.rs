//! Free blocks of one pool, ordered by size and then address, as PyTorch orders them.

use std::collections::{BTreeSet, HashMap};

use super::block::{Blocks, Slot};

#[derive(Debug, Clone, Default)]
pub(super) struct Pool {
    by_size: BTreeSet<(u64, u64, Slot)>,
    /// How many searches there had been when each whole segment was put back; only garbage collection asks.
    put_back: HashMap<Slot, u64>,
    searches: u64,
    /// The growing segment's last block, whether free or not; only with expandable segments.
    pub(super) tail: Option<Slot>,
}

impl Pool {
    pub(super) fn insert(&mut self, blocks: &Blocks, slot: Slot) {
        let block = blocks.get(slot);
        self.by_size.insert((block.size, block.address, slot));
        if blocks.is_whole_segment(slot) {
            self.put_back.insert(slot, self.searches);
        }
    }

    pub(super) fn remove(&mut self, blocks: &Blocks, slot: Slot) {
        let block = blocks.get(slot);
        self.by_size.remove(&(block.size, block.address, slot));
    }

    /// The smallest block that is large enough.
    pub(super) fn best_fit(&mut self, size: u64) -> Option<Slot> {
        self.searches += 1;
        self.candidates(size).next()
    }

    /// Blocks that are large enough, smallest first.
    pub(super) fn candidates(&self, size: u64) -> impl Iterator<Item = Slot> {
        self.by_size.range((size, 0, 0)..).map(|&(_, _, slot)| slot)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Slot> {
        self.by_size.iter().map(|&(_, _, slot)| slot)
    }

    /// Searches since a whole segment was put back.
    pub(super) fn age(&self, slot: Slot) -> u64 {
        self.searches - self.put_back.get(&slot).copied().unwrap_or(0)
    }

    /// A cut or a merge has put another block at the segment's end.
    pub(super) fn tail_moved(&mut self, from: Slot, to: Slot) {
        if self.tail == Some(from) {
            self.tail = Some(to);
        }
    }
}
