//! `[correction]`: what happens when a placement turns out badly.

use crate::keys::ZeroIsNone;
use crate::section;
use crate::units::Seconds;

section! {
    /// Correction of placements that turn out badly: the GPU takes no further job, and a job that can checkpoint is moved.
    CorrectionSettings => #[derive(Copy)] CorrectionConfig {
        /// Correct when a job is slowed down by more than this many times the prediction. 0: never.
        slowdown: ZeroIsNone<f64> [0.0..=100.0] = None;
        // Five minutes are enough to write a checkpoint.
        /// Correct when growing memory will fill the GPU within this time. 0: never.
        memory_horizon: ZeroIsNone<Seconds> [0.0..=86_400.0] = None, Standard: Some(Seconds::from_secs(300));
    }
}

impl CorrectionConfig {
    /// Whether anything is corrected at all.
    pub(crate) const fn is_on(&self) -> bool {
        self.slowdown.is_some() || self.memory_horizon.is_some()
    }
}
