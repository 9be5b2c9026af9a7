//! The caching allocator against sequences worked out by hand from PyTorch's rules, and what must hold for any sequence.

use carma_estimate::allocator::{Allocation, AllocatorSettings, CachingAllocator};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn fresh(settings: &str) -> CachingAllocator {
    CachingAllocator::new(AllocatorSettings::parse(settings).unwrap())
}

fn limited(settings: &str, capacity: u64) -> CachingAllocator {
    CachingAllocator::new(AllocatorSettings { capacity: Some(capacity), ..AllocatorSettings::parse(settings).unwrap() })
}

#[test]
fn small_requests_share_segments_of_two_mebibytes() {
    let mut allocator = fresh("");
    let blocks: Vec<Allocation> = (0..2).map(|_| allocator.allocate(MIB).unwrap()).collect();
    assert_eq!((allocator.live(), allocator.reserved()), (2 * MIB, 2 * MIB));
    allocator.allocate(1).unwrap();
    assert_eq!((allocator.live(), allocator.reserved()), (2 * MIB + 512, 4 * MIB));
    for block in blocks {
        allocator.free(block);
    }
    assert_eq!((allocator.live(), allocator.reserved()), (512, 4 * MIB));
}

#[test]
fn middle_requests_share_segments_of_twenty_and_large_ones_are_rounded_to_two() {
    let mut allocator = fresh("");
    allocator.allocate(MIB + 1).unwrap();
    assert_eq!(allocator.reserved(), 20 * MIB);
    allocator.allocate(9 * MIB).unwrap();
    assert_eq!(allocator.reserved(), 20 * MIB, "the rest of the segment serves");
    allocator.allocate(10 * MIB).unwrap();
    assert_eq!(allocator.reserved(), 30 * MIB);
    allocator.allocate(11 * MIB).unwrap();
    assert_eq!(allocator.reserved(), 42 * MIB);
}

#[test]
fn small_remainders_stay_in_large_blocks() {
    let mut allocator = fresh("");
    let first = allocator.allocate(12 * MIB).unwrap();
    allocator.free(first);
    let second = allocator.allocate(11 * MIB).unwrap();
    assert_eq!(allocator.live(), 12 * MIB, "too little to split off");
    allocator.free(second);
    allocator.allocate(11 * MIB - 512).unwrap();
    assert_eq!(allocator.live(), 11 * MIB - 512);
    assert_eq!(allocator.reserved(), 12 * MIB);
}

#[test]
fn the_smallest_block_that_fits_is_taken() {
    let mut allocator = fresh("");
    let sizes = [40, 24, 32].map(|size| allocator.allocate(size * MIB).unwrap());
    for block in sizes {
        allocator.free(block);
    }
    allocator.allocate(22 * MIB).unwrap();
    allocator.allocate(40 * MIB).unwrap();
    allocator.allocate(32 * MIB).unwrap();
    assert_eq!(allocator.reserved(), 96 * MIB, "22 took the block of 24, so the others still fit");
}

#[test]
fn free_neighbours_merge_whatever_the_order() {
    for order in [[0, 1, 2], [2, 1, 0], [0, 2, 1], [1, 0, 2]] {
        let mut allocator = fresh("");
        let parts = [6, 6, 8].map(|size| allocator.allocate(size * MIB).unwrap());
        assert_eq!(allocator.reserved(), 20 * MIB);
        for part in order {
            allocator.free(parts[part]);
        }
        allocator.allocate(20 * MIB).unwrap();
        assert_eq!(allocator.reserved(), 20 * MIB, "freed in order {order:?}");
    }
}

#[test]
fn blocks_above_the_limit_are_not_split() {
    let mut allocator = fresh("max_split_size_mb:100");
    let large = allocator.allocate(200 * MIB).unwrap();
    allocator.free(large);
    allocator.allocate(50 * MIB).unwrap();
    assert_eq!(allocator.reserved(), 250 * MIB, "a small request may not break a large block");
    allocator.allocate(150 * MIB).unwrap();
    assert_eq!(allocator.reserved(), 400 * MIB, "50 MiB would be wasted, more than the 20 that are tolerated");
    allocator.allocate(190 * MIB).unwrap();
    assert_eq!((allocator.reserved(), allocator.live()), (400 * MIB, 400 * MIB), "190 takes the whole block of 200");
}

#[test]
fn an_expandable_segment_grows_instead_of_leaving_holes() {
    let shapes = [30, 50, 70, 90];
    let holes = |settings| {
        let mut allocator = fresh(settings);
        for size in shapes {
            let block = allocator.allocate(size * MIB).unwrap();
            allocator.free(block);
        }
        allocator.reserved()
    };
    assert_eq!(holes(""), 240 * MIB);
    assert_eq!(holes("expandable_segments:True"), 100 * MIB, "pages of 20 MiB up to 90");
}

#[test]
fn cached_segments_go_back_before_memory_runs_out() {
    let mut allocator = limited("", 100 * MIB);
    let first = allocator.allocate(60 * MIB).unwrap();
    allocator.free(first);
    allocator.allocate(80 * MIB).unwrap();
    assert_eq!((allocator.reserved(), allocator.peak_reserved()), (80 * MIB, 80 * MIB));
    let refused = allocator.allocate(30 * MIB).unwrap_err();
    assert_eq!(refused.to_string(), "out of memory: 31457280 bytes asked for, 83886080 of 104857600 reserved and none to give back");
    assert_eq!(allocator.live(), 80 * MIB, "a refusal changes nothing");
}

#[test]
fn cached_memory_is_collected_above_the_threshold() {
    let run = |settings| {
        let mut allocator = limited(settings, 200 * MIB);
        for size in [30, 40, 50, 60] {
            let block = allocator.allocate(size * MIB).unwrap();
            allocator.free(block);
        }
        allocator.reserved()
    };
    assert_eq!(run(""), 180 * MIB);
    assert_eq!(run("garbage_collection_threshold:0.5"), 150 * MIB, "120 MiB were above 100, and the oldest segment went");
}

#[test]
fn unknown_settings_are_refused() {
    for (text, message) in [
        ("max_split_size_mb", "`max_split_size_mb` is not of the form key:value"),
        ("max_split_size_mb:20", "max_split_size_mb must be a number of MiB above 20, not `20`"),
        ("expandable_segments:maybe", "expandable_segments must be True or False, not `maybe`"),
        ("garbage_collection_threshold:1.5", "garbage_collection_threshold must be between 0 and 1, not `1.5`"),
    ] {
        assert_eq!(AllocatorSettings::parse(text).unwrap_err().to_string(), message);
    }
    assert!(AllocatorSettings::parse("colour:red").unwrap_err().to_string().contains("unknown allocator setting `colour`"));
}

/// Requests (`Some(bytes)`) and frees of the n-th live allocation.
fn sequences() -> impl Strategy<Value = Vec<(u64, Option<usize>)>> {
    let size = prop_oneof![1..4096u64, 1..2 * MIB, MIB..64 * MIB];
    proptest::collection::vec((size, proptest::option::of(0..32usize)), 1..120)
}

fn settings() -> impl Strategy<Value = AllocatorSettings> {
    let split = prop_oneof![Just(u64::MAX), (21..200u64).prop_map(|size| size * MIB)];
    let capacity = proptest::option::of(64 * MIB..1024 * MIB);
    (any::<bool>(), split, proptest::option::of(0.1..0.9f64), capacity).prop_map(
        |(expandable_segments, max_split_size, threshold, capacity)| AllocatorSettings {
            expandable_segments,
            max_split_size,
            garbage_collection_threshold: threshold,
            capacity,
        },
    )
}

proptest! {
    #[test]
    fn reserved_covers_live_and_stays_within_the_capacity(settings in settings(), sequence in sequences()) {
        let mut allocator = CachingAllocator::new(settings);
        let mut alive = Vec::new();
        let mut asked = 0;
        for (bytes, free) in sequence {
            match free {
                Some(number) if !alive.is_empty() => {
                    let (block, bytes) = alive.swap_remove(number % alive.len());
                    asked -= bytes;
                    allocator.free(block);
                }
                _ => if let Ok(block) = allocator.allocate(bytes) {
                    asked += bytes;
                    alive.push((block, bytes));
                }
            }
            prop_assert!(allocator.live() >= asked);
            prop_assert!(allocator.reserved() >= allocator.live());
            prop_assert!(allocator.peak_reserved() >= allocator.reserved() && allocator.peak_live() >= allocator.live());
            prop_assert!(settings.capacity.is_none_or(|capacity| allocator.reserved() <= capacity));
        }
        for (block, _) in alive {
            allocator.free(block);
        }
        prop_assert_eq!(allocator.live(), 0);
    }

    #[test]
    fn after_freeing_all_earlier_requests_reuse_segments(
        sizes in proptest::collection::vec(1..64 * MIB, 1..40),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 40),
        again in any::<prop::sample::Index>(),
    ) {
        let mut allocator = CachingAllocator::new(AllocatorSettings::default());
        let mut blocks: Vec<Allocation> = sizes.iter().map(|&bytes| allocator.allocate(bytes).unwrap()).collect();
        for index in &order {
            if !blocks.is_empty() {
                allocator.free(blocks.swap_remove(index.index(blocks.len())));
            }
        }
        let reserved = allocator.reserved();
        // Neighbours have merged, so every segment is whole again.
        allocator.allocate(sizes[again.index(sizes.len())]).unwrap();
        prop_assert_eq!(allocator.reserved(), reserved);
    }

    #[test]
    fn the_order_of_frees_of_equal_sizes_does_not_matter_to_the_live_peak(
        bytes in 1..8 * MIB,
        orders in proptest::collection::vec(any::<prop::sample::Index>(), 2..40),
    ) {
        let peak = |pick: &dyn Fn(&prop::sample::Index, usize) -> usize| {
            let mut allocator = CachingAllocator::new(AllocatorSettings::default());
            let mut alive: Vec<Allocation> = Vec::new();
            for (step, index) in orders.iter().enumerate() {
                if step % 3 == 2 {
                    let block = alive.swap_remove(pick(index, alive.len()));
                    allocator.free(block);
                } else {
                    alive.push(allocator.allocate(bytes).unwrap());
                }
            }
            allocator.peak_live()
        };
        prop_assert_eq!(peak(&|index, length| index.index(length)), peak(&|_, _| 0));
    }
}
