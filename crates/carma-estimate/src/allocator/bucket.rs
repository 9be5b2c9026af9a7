//! Sorted free blocks of similar size.

use std::collections::BTreeSet;

use super::block::{Block, Blocks, NONE, Slot};

/// Orders blocks by size and then address; the slot makes it unique.
type Rank = (u64, u64, Slot);

/// Up to this many, a linear search is faster than a tree.
const FEW: u32 = 64;

/// Real programs leave a few blocks in each bucket. These are a linked list, so that any can be removed at once. A tree bounds the cost
/// of thousands.
#[derive(Debug, Clone)]
pub(super) enum Bucket {
    Chain { first: Slot, length: u32 },
    Tree(BTreeSet<Rank>),
}

impl Default for Bucket {
    fn default() -> Self {
        Self::Chain { first: NONE, length: 0 }
    }
}

fn rank(blocks: &Blocks, slot: Slot) -> Rank {
    let block = blocks.get(slot);
    (block.size, block.address, slot)
}

impl Bucket {
    pub(super) fn insert(&mut self, blocks: &mut Blocks, slot: Slot) {
        match self {
            Self::Chain { first, length } if *length < FEW => {
                let own = rank(blocks, slot);
                let (mut smaller, mut larger) = (NONE, *first);
                while larger != NONE && rank(blocks, larger) < own {
                    (smaller, larger) = (larger, blocks.get(larger).larger);
                }
                let block = blocks.get_mut(slot);
                (block.smaller, block.larger) = (smaller, larger);
                link(blocks, first, smaller, slot);
                if larger != NONE {
                    blocks.get_mut(larger).smaller = slot;
                }
                *length += 1;
            }
            Self::Chain { .. } => {
                let all = self.iter_from(blocks, 0).chain([slot]);
                *self = Self::Tree(all.map(|slot| rank(blocks, slot)).collect());
            }
            Self::Tree(ranks) => {
                ranks.insert(rank(blocks, slot));
            }
        }
    }

    /// Removes a block; returns whether the bucket is now empty.
    pub(super) fn remove(&mut self, blocks: &mut Blocks, slot: Slot) -> bool {
        match self {
            Self::Chain { first, length } => {
                let Block { smaller, larger, .. } = *blocks.get(slot);
                link(blocks, first, smaller, larger);
                if larger != NONE {
                    blocks.get_mut(larger).smaller = smaller;
                }
                *length -= 1;
                *length == 0
            }
            Self::Tree(ranks) => {
                ranks.remove(&rank(blocks, slot));
                let empty = ranks.is_empty();
                if empty {
                    *self = Self::default();
                }
                empty
            }
        }
    }

    /// The first block of at least this size.
    pub(super) fn first_from(&self, blocks: &Blocks, size: u64) -> Option<Slot> {
        match *self {
            Self::Chain { mut first, .. } => {
                while first != NONE && blocks.get(first).size < size {
                    first = blocks.get(first).larger;
                }
                (first != NONE).then_some(first)
            }
            Self::Tree(_) => self.iter_from(blocks, size).next(),
        }
    }

    /// The blocks of at least this size, in order.
    pub(super) fn iter_from(&self, blocks: &Blocks, size: u64) -> impl Iterator<Item = Slot> {
        let (first, ranks) = match self {
            Self::Chain { first, .. } => (*first, None),
            Self::Tree(ranks) => (NONE, Some(ranks.range((size, 0, 0)..))),
        };
        let linked = |slot: Slot| (slot != NONE).then_some(slot);
        let chain = std::iter::successors(linked(first), move |&slot| linked(blocks.get(slot).larger));
        chain.skip_while(move |&slot| blocks.get(slot).size < size).chain(ranks.into_iter().flatten().map(|&(.., slot)| slot))
    }
}

/// Links `slot` after `smaller`, or as the first.
fn link(blocks: &mut Blocks, first: &mut Slot, smaller: Slot, slot: Slot) {
    if smaller == NONE {
        *first = slot;
    } else {
        blocks.get_mut(smaller).larger = slot;
    }
}
