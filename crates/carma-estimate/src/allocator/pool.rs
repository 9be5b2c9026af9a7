//! Free blocks of one pool, ordered by size and then address, as PyTorch orders them.

use super::block::{Blocks, Slot};
use super::bucket::Bucket;
use super::settings::ROUNDING;

/// Base-2 logarithm of the number of buckets per power of two.
const DETAIL: u32 = 3;
/// Words of the bitmap with one bit per bucket: enough for a block of any size.
const WORDS: usize = 7;

#[derive(Debug, Clone, Default)]
pub(super) struct Pool {
    /// By size: all blocks of a bucket are larger than those of earlier buckets, so a search compares only a few.
    buckets: Vec<Bucket>,
    /// One bit per bucket: whether it holds a block.
    occupied: [u64; WORDS],
    searches: u64,
    /// The last block of the growing segment, free or not; only with expandable segments.
    pub(super) tail: Option<Slot>,
}

impl Pool {
    pub(super) fn insert(&mut self, blocks: &mut Blocks, slot: Slot) {
        let block = blocks.get_mut(slot);
        block.put_back = self.searches;
        let bucket = bucket_of(block.size);
        if bucket >= self.buckets.len() {
            self.buckets.resize_with(bucket + 1, Bucket::default);
        }
        self.buckets[bucket].insert(blocks, slot);
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
    }

    pub(super) fn remove(&mut self, blocks: &mut Blocks, slot: Slot) {
        let bucket = bucket_of(blocks.get(slot).size);
        if self.buckets[bucket].remove(blocks, slot) {
            self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        }
    }

    /// The smallest block of at least this size.
    pub(super) fn best_fit(&mut self, blocks: &Blocks, size: u64) -> Option<Slot> {
        self.searches += 1;
        let bucket = bucket_of(size);
        let alike = self.buckets.get(bucket).and_then(|bucket| bucket.first_from(blocks, size));
        alike.or_else(|| self.buckets[self.next_occupied(bucket + 1)?].first_from(blocks, 0))
    }

    /// Blocks of at least this size, smallest first.
    pub(super) fn candidates(&self, blocks: &Blocks, size: u64) -> impl Iterator<Item = Slot> {
        let buckets = std::iter::successors(self.next_occupied(bucket_of(size)), |bucket| self.next_occupied(bucket + 1));
        buckets.flat_map(move |bucket| self.buckets[bucket].iter_from(blocks, size))
    }

    pub(super) fn iter(&self, blocks: &Blocks) -> impl Iterator<Item = Slot> {
        self.candidates(blocks, 0)
    }

    /// The first bucket with a block, from this one on.
    fn next_occupied(&self, bucket: usize) -> Option<usize> {
        let (first, bit) = (bucket / 64, bucket % 64);
        let begun = self.occupied.get(first)? & (u64::MAX << bit);
        if begun != 0 {
            return Some(first * 64 + begun.trailing_zeros() as usize);
        }
        let word = (first + 1..WORDS).find(|&word| self.occupied[word] != 0)?;
        Some(word * 64 + self.occupied[word].trailing_zeros() as usize)
    }

    /// Number of searches since a block was freed.
    pub(super) fn age(&self, blocks: &Blocks, slot: Slot) -> u64 {
        self.searches - blocks.get(slot).put_back
    }

    /// Updates the tail after a split or a merge.
    pub(super) fn tail_moved(&mut self, from: Slot, to: Slot) {
        if self.tail == Some(from) {
            self.tail = Some(to);
        }
    }
}

/// The bucket of a size: its power of two and the next lower bits.
fn bucket_of(size: u64) -> usize {
    let units = size / ROUNDING;
    let magnitude = units.max(1 << DETAIL).ilog2() - DETAIL;
    (u64::from(magnitude << DETAIL) + (units >> magnitude)) as usize
}

#[cfg(test)]
mod tests {
    use super::super::block::Block;
    use super::*;

    #[test]
    fn larger_blocks_are_never_in_earlier_buckets() {
        let sizes = (0..64).flat_map(|power| [0, 1, 5].map(|eighths| (1_u64 << power) + eighths * ((1 << power) / 8)));
        let buckets: Vec<usize> = sizes.chain([u64::MAX]).map(bucket_of).collect();
        assert!(buckets.is_sorted(), "{buckets:?}");
        assert!(buckets.iter().all(|&bucket| bucket < 64 * WORDS));
    }

    #[test]
    fn thousands_of_blocks_keep_their_order() {
        let (mut pool, mut blocks) = (Pool::default(), Blocks::default());
        let mut random = fastrand::Rng::with_seed(1);
        let mut expected: Vec<(u64, u64)> = Vec::new();
        for turn in 0..3000 {
            let (size, address) = (ROUNDING * random.u64(1..40), (turn * 7919) % 3000);
            let slot = blocks.add(Block::segment(address, size, true));
            pool.insert(&mut blocks, slot);
            expected.push((size, address));
            if turn % 3 == 0 {
                let wanted = ROUNDING * random.u64(1..40);
                let found = pool.best_fit(&blocks, wanted);
                expected.sort_unstable();
                let place = expected.iter().position(|&(size, _)| size >= wanted);
                assert_eq!(found.map(|slot| (blocks.get(slot).size, blocks.get(slot).address)), place.map(|place| expected.remove(place)));
                if let Some(slot) = found {
                    pool.remove(&mut blocks, slot);
                }
            }
        }
        expected.sort_unstable();
        assert_eq!(pool.iter(&blocks).map(|slot| (blocks.get(slot).size, blocks.get(slot).address)).collect::<Vec<_>>(), expected);
    }
}
