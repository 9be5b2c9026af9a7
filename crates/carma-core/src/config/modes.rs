//! `[modes]`: which sharing modes GPUs are switched to.

use crate::section;
use crate::sharing::SharingMode;
use crate::units::{Fraction, Seconds};

section! {
    /// Sharing modes: idle GPUs are switched where that is predicted to pay.
    ModeSettings => #[derive(Eq)] ModeConfig {
        /// Modes that an idle GPU may be switched to. Empty: GPUs are not switched.
        allowed: Vec<SharingMode> = Vec::new();
        /// How much more progress another mode must predict, as a share, after the cost of the switch.
        gain: Fraction = Fraction::clamped(0.05);
        /// Minimum time between two switches of a GPU.
        every: Seconds [60.0..=10_000_000.0] = Seconds::from_secs(600);
        /// MPS clients are limited to the SMs that they are predicted to need, unless `mps.active_threads` limits them.
        thread_shares: bool = false;
    }
}

impl ModeConfig {
    /// Whether GPUs may be switched to this mode.
    pub fn allows(&self, mode: SharingMode) -> bool {
        self.allowed.contains(&mode)
    }

    /// Whether the MIG instances of a GPU may be joined again: only where it could also be partitioned.
    pub(crate) fn joins(&self) -> bool {
        self.allows(SharingMode::Mig) && (self.allows(SharingMode::Streams) || self.allows(SharingMode::Mps))
    }
}
