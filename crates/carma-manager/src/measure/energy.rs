//! Energy in whole thousandths of a joule, so that parts add up to the whole exactly.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use carma_core::{Seconds, Watts};
use serde::{Deserialize, Serialize};

/// Energy, as GPUs count it.
///
/// ```
/// use carma_manager::measure::Millijoules;
/// assert_eq!(Millijoules(5_400_000).to_string(), "1.50 Wh");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millijoules(pub u64);

impl Millijoules {
    /// The energy of this power over this time.
    pub fn of(power: Watts, span: Seconds) -> Self {
        Self((power.0.max(0.0) * span.get() * 1000.0).round() as u64)
    }

    /// From joules as a plain number.
    pub fn from_joules(joules: f64) -> Self {
        Self((joules.max(0.0) * 1000.0).round() as u64)
    }

    /// In joules.
    pub fn joules(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// Splits it by these weights, to the last millijoule. Without any weight the first part gets it all.
    pub fn split(self, weights: &[f64]) -> Vec<Self> {
        let all: f64 = weights.iter().sum();
        let mut below = 0.0;
        let mut given = 0;
        let last = weights.len().saturating_sub(1);
        let part = |(place, weight): (usize, &f64)| {
            below += weight;
            // The running sum is rounded, not each part: so nothing is lost.
            let until = if place == last || all <= 0.0 { self.0 } else { ((self.0 as f64 * (below / all)) as u64).clamp(given, self.0) };
            Self(until - std::mem::replace(&mut given, until))
        };
        weights.iter().enumerate().map(part).collect()
    }
}

impl Add for Millijoules {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Millijoules {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Saturates at zero.
impl Sub for Millijoules {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Millijoules {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Millijoules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} Wh", self.joules() / 3600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_parts_sum_to_the_whole(energy in any::<u64>(), weights in prop::collection::vec(0.0..1e6_f64, 1..9)) {
            let parts = Millijoules(energy).split(&weights);
            prop_assert_eq!(parts.len(), weights.len());
            prop_assert_eq!(parts.iter().map(|part| u128::from(part.0)).sum::<u128>(), u128::from(energy));
        }
    }

    #[test]
    fn parts_are_proportional_to_their_weights() {
        assert_eq!(Millijoules(1000).split(&[1.0, 3.0]), [Millijoules(250), Millijoules(750)]);
        assert_eq!(Millijoules(10).split(&[0.0, 0.0]), [Millijoules(10), Millijoules(0)]);
        assert_eq!(Millijoules(10).split(&[]), []);
    }
}
