//! Blocks of segments, linked to their neighbours by index in one vector.

/// Index of a block; `u32` keeps blocks small, and there are never four billion.
pub(super) type Slot = u32;

/// No block.
pub(super) const NONE: Slot = Slot::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) size: u64,
    previous: Slot,
    next: Slot,
    /// Neighbours among the free blocks of similar size.
    pub(super) smaller: Slot,
    pub(super) larger: Slot,
    /// Number of searches in its pool when it was freed; only garbage collection uses it.
    pub(super) put_back: u64,
    pub(super) free: bool,
    pub(super) small: bool,
}

impl Block {
    pub(super) fn segment(address: u64, size: u64, small: bool) -> Self {
        Self { address, size, previous: NONE, next: NONE, smaller: NONE, larger: NONE, put_back: 0, free: true, small }
    }
}

/// All blocks; slots of removed blocks are reused.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    vacant: Vec<Slot>,
}

impl Blocks {
    pub(super) fn get(&self, slot: Slot) -> &Block {
        &self.blocks[slot as usize]
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> &mut Block {
        &mut self.blocks[slot as usize]
    }

    pub(super) fn add(&mut self, block: Block) -> Slot {
        if let Some(slot) = self.vacant.pop() {
            self.blocks[slot as usize] = block;
            return slot;
        }
        self.blocks.push(block);
        (self.blocks.len() - 1) as Slot
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        let Block { previous, next, .. } = *self.get(slot);
        if previous != NONE {
            self.get_mut(previous).next = next;
        }
        if next != NONE {
            self.get_mut(next).previous = previous;
        }
        self.vacant.push(slot);
    }

    /// Shortens a block to `size`; the rest becomes a free block after it.
    pub(super) fn cut(&mut self, slot: Slot, size: u64) -> Slot {
        let whole = *self.get(slot);
        let behind = Block::segment(whole.address + size, whole.size - size, whole.small);
        let rest = self.add(Block { previous: slot, next: whole.next, ..behind });
        if whole.next != NONE {
            self.get_mut(whole.next).previous = rest;
        }
        let front = self.get_mut(slot);
        front.size = size;
        front.next = rest;
        rest
    }

    /// Appends a free block to a segment.
    pub(super) fn append(&mut self, last: Slot, size: u64) -> Slot {
        let Block { address, size: before, small, .. } = *self.get(last);
        let block = Block { previous: last, ..Block::segment(address + before, size, small) };
        let slot = self.add(block);
        self.get_mut(last).next = slot;
        slot
    }

    /// Merges `first` with the neighbour after it.
    pub(super) fn join(&mut self, first: Slot, second: Slot) {
        self.get_mut(first).size += self.get(second).size;
        self.remove(second);
    }

    pub(super) fn free_next(&self, slot: Slot) -> Option<Slot> {
        self.free_neighbour(self.get(slot).next)
    }

    pub(super) fn free_previous(&self, slot: Slot) -> Option<Slot> {
        self.free_neighbour(self.get(slot).previous)
    }

    pub(super) fn previous(&self, slot: Slot) -> Option<Slot> {
        Some(self.get(slot).previous).filter(|&previous| previous != NONE)
    }

    fn free_neighbour(&self, slot: Slot) -> Option<Slot> {
        (slot != NONE && self.get(slot).free).then_some(slot)
    }

    pub(super) fn is_whole_segment(&self, slot: Slot) -> bool {
        let block = self.get(slot);
        block.previous == NONE && block.next == NONE
    }

    pub(super) fn is_last(&self, slot: Slot) -> bool {
        self.get(slot).next == NONE
    }
}
