//! How long something takes, as far as it is known: a median and a spread.

use carma_core::Seconds;

/// Shorter lengths than this count as this: their logarithm would say nothing.
const SHORTEST: f64 = 1.0;
/// Beyond this many deviations the tail is not computed.
const MOST_DEVIATIONS: f64 = 5.0;

/// A length of time whose logarithm is normally distributed.
///
/// ```
/// use carma_core::Seconds;
/// use carma_estimate::durations::Length;
/// let length = Length::new(Seconds::from_secs(600), 0.5);
/// assert_eq!(length.median(), Seconds::from_secs(600));
/// assert!(length.quantile(0.05) < length.median() && length.median() < length.quantile(0.95));
/// // After 20 minutes, it takes longer than was expected.
/// assert!(length.beyond(Seconds::from_secs(1200), 0.5) > Seconds::from_secs(1200));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Length {
    /// The mean of the logarithm of its seconds.
    mean: f64,
    /// The standard deviation of that.
    spread: f64,
}

impl Length {
    /// By median and spread: about two of three lengths are within a factor of e to the power of the spread.
    pub fn new(median: Seconds, spread: f64) -> Self {
        Self { mean: logarithm(median), spread: spread.max(0.0) }
    }

    pub(super) fn of_logarithm(mean: f64, variance: f64) -> Self {
        Self { mean, spread: variance.max(0.0).sqrt() }
    }

    pub(super) const fn mean(&self) -> f64 {
        self.mean
    }

    pub(super) const fn variance(&self) -> f64 {
        self.spread * self.spread
    }

    /// Half of such lengths are shorter.
    pub fn median(&self) -> Seconds {
        seconds(self.mean)
    }

    /// The standard deviation of its logarithm.
    pub const fn spread(&self) -> f64 {
        self.spread
    }

    /// This share of such lengths is shorter.
    pub fn quantile(&self, share: f64) -> Seconds {
        seconds(self.mean + self.spread * deviations(share))
    }

    /// The same among those that are longer than what has passed.
    pub fn beyond(&self, passed: Seconds, share: f64) -> Seconds {
        if self.spread <= 0.0 {
            return self.median().max(passed);
        }
        let before = (logarithm(passed) - self.mean) / self.spread;
        if before >= MOST_DEVIATIONS {
            // It is longer than all earlier runs: at the median, it needs as much time again as it is late.
            return passed + passed.times(share.clamp(0.01, 0.99) / (1.0 - share.clamp(0.01, 0.99)));
        }
        let gone = probability(before);
        self.quantile(gone + share.clamp(0.0, 1.0) * (1.0 - gone)).max(passed)
    }

    /// Of two independent findings about one length, the one with the smaller spread weighs more.
    #[must_use]
    pub fn with(&self, other: Self) -> Self {
        let [own, its] = [self, &other].map(|length| 1.0 / length.variance().max(1e-6));
        Self::of_logarithm((own * self.mean + its * other.mean) / (own + its), 1.0 / (own + its))
    }
}

pub(super) fn logarithm(length: Seconds) -> f64 {
    length.get().max(SHORTEST).ln()
}

fn seconds(logarithm: f64) -> Seconds {
    Seconds::new(logarithm.min(25.0).exp()).unwrap_or_default()
}

/// The share of a normal distribution below this many standard deviations; at most 1e-7 off (Abramowitz and Stegun 26.2.17).
fn probability(deviations: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * deviations.abs());
    let polynomial = t * (0.319_381_530 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = (-deviations * deviations / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * polynomial;
    if deviations >= 0.0 { 1.0 - tail } else { tail }
}

/// The inverse of [`probability`], by bisection: it is needed some thousand times a second at most.
fn deviations(share: f64) -> f64 {
    let (mut low, mut high) = (-MOST_DEVIATIONS - 1.0, MOST_DEVIATIONS + 1.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if probability(middle) < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        for (share, expected) in [(0.5, 0.0), (0.841_345, 1.0), (0.05, -1.644_854), (0.975, 1.959_964)] {
            assert!((deviations(share) - expected).abs() < 1e-4, "{share}: {}", deviations(share));
        }
    }

    proptest! {
        #[test]
        fn the_remaining_time_is_ordered_and_not_negative(
            median in 1_u64..1_000_000, spread in 0.0..3.0, passed in 0_u64..10_000_000, low in 0.0..1.0, high in 0.0..1.0,
        ) {
            let (length, passed) = (Length::new(Seconds::from_secs(median), spread), Seconds::from_secs(passed));
            let (low, high) = if low < high { (low, high) } else { (high, low) };
            prop_assert!(length.quantile(low) <= length.quantile(high));
            prop_assert!(length.beyond(passed, low) >= passed);
            prop_assert!(length.beyond(passed, low) <= length.beyond(passed, high));
        }

        #[test]
        fn two_estimates_are_more_certain_than_one(
            first in 1_u64..1_000_000, second in 1_u64..1_000_000, spreads in (0.01..3.0, 0.01..3.0),
        ) {
            let (first, second) = (Length::new(Seconds::from_secs(first), spreads.0), Length::new(Seconds::from_secs(second), spreads.1));
            let both = first.with(second);
            prop_assert!(both.spread() <= first.spread().min(second.spread()) + 1e-9);
            let (low, high) = (first.median().min(second.median()), first.median().max(second.median()));
            prop_assert!((low.get() * 0.999..=high.get() * 1.001).contains(&both.median().get()));
        }
    }
}
