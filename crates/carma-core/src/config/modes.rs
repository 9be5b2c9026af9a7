//! How GPUs are shared, where that may be chosen.

use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::section::settings;

settings!(
    /// How GPUs are shared, where that may be chosen.
    ModeSettings {
        /// Modes that an idle GPU may be switched to when that is predicted to pay: any of `streams`, `mps` and `mig`; empty: none is switched.
        allowed: Vec<SharingMode>,
    }
);

/// How GPUs are shared, where that may be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModeConfig {
    /// Modes a GPU may be switched to; none: GPUs stay as they are.
    pub allowed: Vec<SharingMode>,
}

/// A way of sharing a GPU that can be switched to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharingMode {
    /// Time slices between plain processes.
    Streams,
    /// An MPS server.
    Mps,
    /// Instances of MIG.
    Mig,
}

impl ModeConfig {
    /// As if there were no such thing, as published.
    pub(super) const fn none() -> Self {
        Self { allowed: Vec::new() }
    }
}

impl ModeSettings {
    pub(super) fn over(self, base: &ModeConfig, check: &mut Checker) -> ModeConfig {
        let _ = check;
        ModeConfig { allowed: self.allowed.unwrap_or_else(|| base.allowed.clone()) }
    }
}

impl From<&ModeConfig> for ModeSettings {
    fn from(config: &ModeConfig) -> Self {
        Self { allowed: Some(config.allowed.clone()) }
    }
}
