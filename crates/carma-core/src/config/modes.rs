//! How GPUs are shared, where that may be chosen.

use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::section::settings;
use crate::units::{Fraction, Seconds};

settings!(
    /// How GPUs are shared, where that may be chosen.
    ModeSettings {
        /// Modes that an idle GPU may be switched to when that is predicted to pay: any of `streams`, `mps` and `mig`; empty: none is switched.
        allowed: Vec<SharingMode>,
        /// How much more progress another mode must promise, as a share, its switch paid for.
        gain: f64,
        /// A GPU is not switched again before so many seconds have passed.
        every: f64,
        /// MPS clients are held to the share of the SMs that they are predicted to need, unless `mps.active_threads` says otherwise.
        thread_shares: bool,
    }
);

/// How GPUs are shared, where that may be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModeConfig {
    /// Modes a GPU may be switched to; none: GPUs stay as they are.
    pub allowed: Vec<SharingMode>,
    /// How much more progress another mode must promise.
    pub gain: Fraction,
    /// The least time between two switches of a GPU.
    pub every: Seconds,
    /// MPS clients are held to what they need of the SMs.
    pub thread_shares: bool,
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
    pub(super) fn none() -> Self {
        Self { allowed: Vec::new(), gain: Fraction::clamped(0.05), every: Seconds::from_secs(600), thread_shares: false }
    }

    /// Whether GPUs may be switched to it.
    pub fn allows(&self, mode: SharingMode) -> bool {
        self.allowed.contains(&mode)
    }

    /// Whether a GPU that is cut into instances may be made whole again: only where it could also be cut.
    pub(crate) fn joins(&self) -> bool {
        self.allows(SharingMode::Mig) && (self.allows(SharingMode::Streams) || self.allows(SharingMode::Mps))
    }
}

impl ModeSettings {
    pub(super) fn over(self, base: &ModeConfig, check: &mut Checker) -> ModeConfig {
        let mut allowed = self.allowed.unwrap_or_else(|| base.allowed.clone());
        allowed.sort_unstable();
        allowed.dedup();
        ModeConfig {
            allowed,
            gain: check.fraction("modes.gain", self.gain, base.gain),
            every: check.seconds("modes.every", self.every, base.every, 60.0, 1e7),
            thread_shares: self.thread_shares.unwrap_or(base.thread_shares),
        }
    }
}

impl From<&ModeConfig> for ModeSettings {
    fn from(config: &ModeConfig) -> Self {
        Self {
            allowed: Some(config.allowed.clone()),
            gain: Some(config.gain.get()),
            every: Some(config.every.get()),
            thread_shares: Some(config.thread_shares),
        }
    }
}
