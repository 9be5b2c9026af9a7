//! Random numbers of the simulator: everything that decides which values a seed gives.
//!
//! Published figures depend on these values, so the generator has a name (PCG XSL RR 128/64, `pcg64` in its paper) and the steps from
//! its bits to a fraction, an index or an order are here, not in a library that may change them.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// The default stream of the reference implementation.
const STREAM: u128 = 0x0A02_BDBF_7BB3_C0A7_AC28_FA16_A64A_BF96;

/// A generator.
#[derive(Debug)]
pub(crate) struct Random(Pcg64);

impl Random {
    /// The generator of a seed. The 128 bits of its state are two numbers of `SplitMix64`.
    pub(crate) fn new(seed: u64) -> Self {
        let (high, low) = (scramble(seed), scramble(seed.wrapping_add(GOLDEN)));
        Self(Pcg64::new((u128::from(high) << 64) | u128::from(low), STREAM))
    }

    /// A fraction from 0 (inclusive) to 1 (exclusive): the upper 53 bits of a number.
    pub(crate) fn fraction(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.0.next_u64() >> 11) as f64 * UNIT
    }

    /// An index below `count`, which must not be 0. All are equally likely, to within `count` in 2^64.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        debug_assert!(count > 0, "there is no index below 0");
        ((u128::from(self.0.next_u64()) * count as u128) >> 64) as usize
    }

    /// Brings items into a random order (Fisher and Yates, from the last to the second).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// The step of `SplitMix64`.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// One number of `SplitMix64`: neighbouring numbers become unrelated ones.
pub(crate) const fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(GOLDEN);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers were also computed from the paper's definitions, outside this program.
    #[test]
    fn a_seed_gives_the_same_values_in_every_version() {
        let mut random = Random::new(1);
        assert_eq!([(); 3].map(|()| random.0.next_u64()), [0x83BB_6722_C3D3_84D7, 0x4403_7E00_7AE3_7724, 0xDA5F_9684_48BA_E337]);
        // As text, because they must be equal to the last bit.
        let fractions = [(); 3].map(|()| random.fraction().to_string());
        assert_eq!(fractions, ["0.7855844875715703", "0.603184380591459", "0.11961532000912944"]);
        assert_eq!([(); 5].map(|()| random.below(10)), [0, 7, 8, 6, 8]);
        let mut items = [0, 1, 2, 3, 4, 5, 6, 7];
        random.shuffle(&mut items);
        assert_eq!(items, [2, 3, 7, 1, 4, 5, 6, 0]);
    }

    #[test]
    fn values_are_spread_evenly() {
        let mut random = Random::new(7);
        let mut counts = [0_u32; 6];
        (0..60_000).for_each(|_| counts[random.below(6)] += 1);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        let mean = (0..10_000).map(|_| random.fraction()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }
}
