//! Between which watts a device's draw lies.

use serde::{Deserialize, Serialize};

use crate::units::Watts;

/// Between which watts a device's draw lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerRange {
    /// When nothing runs; of a MIG instance, what it adds to its GPU's.
    pub idle: Watts,
    /// At most.
    pub limit: Watts,
}

impl PowerRange {
    /// An A100, which the model of a job's power was fitted on.
    pub const A100: Self = Self { idle: Watts(52.0), limit: Watts(400.0) };

    /// A device whose limit alone is known idles at the same share of it as an A100.
    ///
    /// ```
    /// use carma_core::{PowerRange, Watts};
    /// assert_eq!(PowerRange::up_to(Watts(400.0)), PowerRange::A100);
    /// ```
    pub fn up_to(limit: Watts) -> Self {
        Self { idle: Watts(limit.0 * Self::A100.idle.0 / Self::A100.limit.0), limit }
    }

    /// An instance with this share of a device: its GPU idles whether it is there or not.
    #[must_use]
    pub fn instance(self, share: f64) -> Self {
        Self { idle: Watts(0.0), limit: Watts(self.span() * share) }
    }

    /// What lies between.
    pub(crate) fn span(self) -> f64 {
        (self.limit.0 - self.idle.0).max(0.0)
    }
}
