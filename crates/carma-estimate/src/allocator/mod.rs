//! A model of PyTorch's CUDA caching allocator: the same rounding, pools, best fit, splits and merges, on artificial addresses.
//!
//! `nvidia-smi` shows for a training process what this allocator has reserved plus the CUDA context. So the peak of *reserved*
//! memory, not of live tensors, decides whether a job fits.

mod block;
mod bucket;
mod expandable;
mod pool;
mod settings;

pub use settings::{AllocatorSettings, SettingsError};

use block::{Blocks, Slot};
use pool::Pool;
use settings::{LARGE_BUFFER, MIN_LARGE_ALLOCATION, ROUND_LARGE, ROUNDING, SMALL_BUFFER, SMALL_SIZE};

/// A live allocation; free it with [`CachingAllocator::free`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation(Slot);

/// The driver has no memory for a new segment, even after all cached ones are released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: {requested} bytes asked for, {reserved} of {capacity} reserved and none to give back")]
pub struct OutOfMemory {
    /// Requested bytes.
    pub requested: u64,
    /// Bytes reserved at that moment.
    pub reserved: u64,
    /// Total bytes of the driver.
    pub capacity: u64,
}

/// The allocator's state on one device and one stream.
///
/// ```
/// use carma_estimate::allocator::{AllocatorSettings, CachingAllocator};
/// let mut allocator = CachingAllocator::new(AllocatorSettings::default());
/// let small = allocator.allocate(700)?;
/// assert_eq!(allocator.live(), 1024);
/// assert_eq!(allocator.reserved(), 2 << 20);
/// allocator.free(small);
/// assert_eq!((allocator.live(), allocator.reserved()), (0, 2 << 20));
/// # Ok::<(), carma_estimate::allocator::OutOfMemory>(())
/// ```
#[derive(Debug, Clone)]
pub struct CachingAllocator {
    settings: AllocatorSettings,
    blocks: Blocks,
    small: Pool,
    large: Pool,
    live: u64,
    reserved: u64,
    peak_live: u64,
    peak_reserved: u64,
    next_address: u64,
}

impl CachingAllocator {
    /// An allocator without reserved memory.
    pub fn new(settings: AllocatorSettings) -> Self {
        Self {
            settings,
            blocks: Blocks::default(),
            small: Pool::default(),
            large: Pool::default(),
            live: 0,
            reserved: 0,
            peak_live: 0,
            peak_reserved: 0,
            next_address: 0,
        }
    }

    /// Bytes in live blocks, after rounding.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Bytes reserved from the driver.
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Peak of live bytes.
    pub fn peak_live(&self) -> u64 {
        self.peak_live
    }

    /// Peak of reserved bytes.
    pub fn peak_reserved(&self) -> u64 {
        self.peak_reserved
    }

    /// Allocates memory for a tensor's storage.
    pub fn allocate(&mut self, bytes: u64) -> Result<Allocation, OutOfMemory> {
        let size = bytes.max(1).saturating_add(ROUNDING - 1) / ROUNDING * ROUNDING;
        let small = size <= SMALL_SIZE;
        let found = match self.take_cached(size, small) {
            Some(slot) => slot,
            None => self.take_new(size, small)?,
        };
        self.split(found, size, small);
        let block = self.blocks.get_mut(found);
        block.free = false;
        self.live += block.size;
        self.peak_live = self.peak_live.max(self.live);
        Ok(Allocation(found))
    }

    /// Frees a block and merges it with free neighbours; its segment stays reserved.
    pub fn free(&mut self, allocation: Allocation) {
        let Allocation(slot) = allocation;
        let block = self.blocks.get_mut(slot);
        block.free = true;
        self.live -= block.size;
        let small = block.small;
        let merged = self.merge(slot, small);
        let (pool, blocks) = self.parts(small);
        pool.insert(blocks, merged);
    }

    fn parts(&mut self, small: bool) -> (&mut Pool, &mut Blocks) {
        (if small { &mut self.small } else { &mut self.large }, &mut self.blocks)
    }

    /// Best fit among cached blocks.
    fn take_cached(&mut self, size: u64, small: bool) -> Option<Slot> {
        let AllocatorSettings { expandable_segments, max_split_size: limit, .. } = self.settings;
        let (pool, blocks) = self.parts(small);
        let slot = if expandable_segments { expandable::best_fit(pool, blocks, size) } else { pool.best_fit(blocks, size) }?;
        let found = blocks.get(slot).size;
        // Blocks above the limit serve only requests above it that are not much smaller.
        if !expandable_segments && ((size < limit && found >= limit) || (size >= limit && found >= size.saturating_add(LARGE_BUFFER))) {
            return None;
        }
        pool.remove(blocks, slot);
        Some(slot)
    }

    /// A new segment from the driver; releases cached ones if the driver has no more.
    fn take_new(&mut self, size: u64, small: bool) -> Result<Slot, OutOfMemory> {
        let segment = segment_size(size);
        self.collect_garbage();
        if let Some(slot) = self.reserve(segment, small) {
            return Ok(slot);
        }
        self.release_cached();
        self.reserve(segment, small).ok_or(OutOfMemory {
            requested: size,
            reserved: self.reserved,
            capacity: self.settings.capacity.unwrap_or(u64::MAX),
        })
    }

    fn reserve(&mut self, segment: u64, small: bool) -> Option<Slot> {
        if self.settings.expandable_segments {
            return self.expand(segment, small);
        }
        if !self.fits(segment) {
            return None;
        }
        self.grow(segment);
        let address = self.next_address;
        self.next_address = address.saturating_add(segment);
        Some(self.blocks.add(block::Block::segment(address, segment, small)))
    }

    fn fits(&self, more: u64) -> bool {
        self.settings.capacity.is_none_or(|capacity| self.reserved.saturating_add(more) <= capacity)
    }

    fn grow(&mut self, more: u64) {
        self.reserved = self.reserved.saturating_add(more);
        self.peak_reserved = self.peak_reserved.max(self.reserved);
    }

    /// Splits off the unused part of a block, unless it is too small to be useful.
    fn split(&mut self, slot: Slot, size: u64, small: bool) {
        let rest = self.blocks.get(slot).size - size;
        let worth = if small || self.settings.expandable_segments {
            rest >= ROUNDING
        } else {
            size < self.settings.max_split_size && rest > SMALL_SIZE
        };
        if worth {
            let (pool, blocks) = self.parts(small);
            let remaining = blocks.cut(slot, size);
            pool.tail_moved(slot, remaining);
            pool.insert(blocks, remaining);
        }
    }

    fn merge(&mut self, slot: Slot, small: bool) -> Slot {
        let (pool, blocks) = self.parts(small);
        let mut merged = slot;
        if let Some(next) = blocks.free_next(merged) {
            pool.remove(blocks, next);
            pool.tail_moved(next, merged);
            blocks.join(merged, next);
        }
        if let Some(previous) = blocks.free_previous(merged) {
            pool.remove(blocks, previous);
            pool.tail_moved(merged, previous);
            blocks.join(previous, merged);
            merged = previous;
        }
        merged
    }

    /// Releases whole free segments to the driver.
    fn release_cached(&mut self) {
        if self.settings.expandable_segments {
            return self.release_tails();
        }
        for small in [true, false] {
            let (pool, blocks) = self.parts(small);
            let whole: Vec<Slot> = pool.iter(blocks).filter(|&slot| blocks.is_whole_segment(slot)).collect();
            for slot in whole {
                self.release(slot, small);
            }
        }
    }

    fn release(&mut self, slot: Slot, small: bool) {
        let (pool, blocks) = self.parts(small);
        pool.remove(blocks, slot);
        let size = blocks.get(slot).size;
        blocks.remove(slot);
        self.reserved -= size;
    }

    /// With a threshold set: if more than that share of the capacity is reserved, releases whole segments that have been unused for longer
    /// than the average, until enough is free.
    fn collect_garbage(&mut self) {
        let (Some(threshold), Some(capacity)) = (self.settings.garbage_collection_threshold, self.settings.capacity) else { return };
        // An expandable segment is one piece: no whole segment can be released.
        let allowed = if self.settings.expandable_segments { u64::MAX } else { (capacity as f64 * threshold) as u64 };
        while self.reserved > allowed {
            let unused: Vec<Slot> = self.large.iter(&self.blocks).filter(|&slot| self.blocks.is_whole_segment(slot)).collect();
            if unused.is_empty() {
                return;
            }
            let average = unused.iter().map(|&slot| self.large.age(&self.blocks, slot)).sum::<u64>() / unused.len() as u64;
            for slot in unused {
                if self.reserved > allowed && self.large.age(&self.blocks, slot) >= average {
                    self.release(slot, false);
                }
            }
        }
    }
}

/// Bytes to reserve from the driver for a request.
fn segment_size(size: u64) -> u64 {
    if size <= SMALL_SIZE {
        SMALL_BUFFER
    } else if size < MIN_LARGE_ALLOCATION {
        LARGE_BUFFER
    } else {
        size.saturating_add(ROUND_LARGE - 1) / ROUND_LARGE * ROUND_LARGE
    }
}
