//! Switches of a device to another sharing mode: under way, done, refused.

use crate::config::ModeConfig;
use crate::sharing::{GpuMode, SharingMode};
use crate::units::{Seconds, Time};

/// The switches of a device's sharing mode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Switches {
    /// It is being switched to this, and takes no job meanwhile.
    pub to: Option<GpuMode>,
    /// When its mode last changed.
    pub changed_at: Option<Time>,
    /// What it cannot be switched to; requested again only under other rules.
    pub refused: Vec<SharingMode>,
}

impl Switches {
    /// Whether the last change is long enough ago.
    pub(crate) fn have_rested(&self, every: Seconds, now: Time) -> bool {
        self.changed_at.is_none_or(|changed| now - changed >= every)
    }

    /// Whether the instances of a GPU may be joined again.
    pub(crate) fn may_join(&self, modes: &ModeConfig) -> bool {
        [SharingMode::Streams, SharingMode::Mps].iter().any(|mode| modes.allows(*mode) && !self.refused.contains(mode))
    }
}
