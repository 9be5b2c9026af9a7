//! Expandable segments: one segment per pool grows page by page; free pages at its end are released when memory is short.

use super::CachingAllocator;
use super::block::{Block, Blocks, Slot};
use super::pool::Pool;
use super::settings::{LARGE_BUFFER, SMALL_BUFFER};

/// The free block at the end counts with its possible growth, so any other block that is large enough is used first.
pub(super) fn best_fit(pool: &Pool, blocks: &Blocks, size: u64) -> Option<Slot> {
    let mut fitting = pool.candidates(blocks, size);
    let first = fitting.next()?;
    if blocks.is_last(first) { Some(fitting.next().unwrap_or(first)) } else { Some(first) }
}

impl CachingAllocator {
    /// Maps enough pages after the last block for `size`, including a free block at the end.
    pub(super) fn expand(&mut self, size: u64, small: bool) -> Option<Slot> {
        let page = if small { SMALL_BUFFER } else { LARGE_BUFFER };
        let (pool, blocks) = self.parts(small);
        let tail = pool.tail;
        let free_tail = tail.filter(|&slot| blocks.get(slot).free);
        let present = free_tail.map_or(0, |slot| blocks.get(slot).size);
        let mapped = size.saturating_sub(present).div_ceil(page).saturating_mul(page);
        if !self.fits(mapped) {
            return None;
        }
        self.grow(mapped);
        let (pool, blocks) = self.parts(small);
        let slot = match (free_tail, tail) {
            (Some(slot), _) => {
                pool.remove(blocks, slot);
                blocks.get_mut(slot).size += mapped;
                slot
            }
            (None, Some(last)) => blocks.append(last, mapped),
            // Each pool's segment has its own address range.
            (None, None) => blocks.add(Block::segment(if small { 1 << 60 } else { 1 << 61 }, mapped, small)),
        };
        pool.tail = Some(slot);
        Some(slot)
    }

    /// Unmaps whole free pages at the ends of the segments.
    pub(super) fn release_tails(&mut self) {
        for (small, page) in [(true, SMALL_BUFFER), (false, LARGE_BUFFER)] {
            let (pool, blocks) = self.parts(small);
            let Some(last) = pool.tail else { continue };
            let Block { size, free, .. } = *blocks.get(last);
            let unmapped = size / page * page;
            if !free || unmapped == 0 {
                continue;
            }
            pool.remove(blocks, last);
            if unmapped == size {
                pool.tail = blocks.previous(last);
                blocks.remove(last);
            } else {
                blocks.get_mut(last).size -= unmapped;
                pool.insert(blocks, last);
            }
            self.reserved -= unmapped;
        }
    }
}
