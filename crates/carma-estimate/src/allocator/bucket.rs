//! Free blocks of about the same size, in order.

use std::collections::BTreeSet;

use super::block::Slot;

/// A free block; ordered by size and then address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Free {
    pub(super) size: u64,
    pub(super) address: u64,
    pub(super) slot: Slot,
}

/// As many as are found and moved faster in a vector than in a tree.
const FEW: usize = 128;

/// Real programs leave a handful of blocks in each bucket; a tree bounds what thousands cost.
#[derive(Debug, Clone)]
pub(super) enum Bucket {
    Few(Vec<Free>),
    Many(BTreeSet<Free>),
}

impl Default for Bucket {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Bucket {
    #[inline]
    pub(super) fn insert(&mut self, block: Free) {
        match self {
            Self::Few(blocks) => {
                let place = place(blocks, block);
                blocks.insert(place, block);
                if blocks.len() > FEW {
                    *self = Self::Many(blocks.drain(..).collect());
                }
            }
            Self::Many(blocks) => {
                blocks.insert(block);
            }
        }
    }

    /// Removes a block that is there; whether the bucket is empty now.
    #[inline]
    pub(super) fn remove(&mut self, block: Free) -> bool {
        match self {
            Self::Few(blocks) => {
                blocks.remove(place(blocks, block));
                blocks.is_empty()
            }
            Self::Many(blocks) => {
                blocks.remove(&block);
                blocks.is_empty()
            }
        }
    }

    /// The first block that is at least so large.
    #[inline]
    pub(super) fn first_from(&self, size: u64) -> Option<Slot> {
        match self {
            Self::Few(blocks) => blocks.iter().find(|block| block.size >= size).map(|block| block.slot),
            Self::Many(_) => self.iter_from(size).next(),
        }
    }

    /// All blocks that are at least so large, in order.
    pub(super) fn iter_from(&self, size: u64) -> impl Iterator<Item = Slot> {
        let first = Free { size, address: 0, slot: 0 };
        let (few, many) = match self {
            Self::Few(blocks) => (Some(&blocks[place(blocks, first)..]), None),
            Self::Many(blocks) => (None, Some(blocks.range(first..))),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten()).map(|block| block.slot)
    }
}

/// Where a block stands or would stand.
#[inline]
fn place(blocks: &[Free], block: Free) -> usize {
    blocks.partition_point(|known| *known < block)
}
