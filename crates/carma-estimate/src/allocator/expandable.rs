//! Expandable segments: one segment per pool grows page by page at its end, and free pages at the end go back when memory is short.

use super::CachingAllocator;
use super::block::{Block, Blocks, Slot};
use super::pool::Pool;
use super::settings::{LARGE_BUFFER, SMALL_BUFFER};

/// The free block at the end counts as large as it could grow, so any other block that is large enough goes first.
pub(super) fn best_fit(pool: &Pool, blocks: &Blocks, size: u64) -> Option<Slot> {
    let mut fitting = pool.candidates(blocks, size);
    let first = fitting.next()?;
    if blocks.is_last(first) { Some(fitting.next().unwrap_or(first)) } else { Some(first) }
}

impl CachingAllocator {
    /// Maps as many pages behind the last block as `size` needs together with a free block that is there already.
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
            // Each pool's segment lives in an address range of its own.
            (None, None) => blocks.add(Block::segment(if small { 1 << 60 } else { 1 << 61 }, mapped, small)),
        };
        pool.tail = Some(slot);
        Some(slot)
    }

    /// Unmaps whole pages of free blocks at the segments' ends.
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
