//! Time slots: how long a job that can checkpoint keeps its GPUs while others wait.

use super::check::Checker;
use super::section::settings;
use crate::units::Seconds;

settings!(
    /// Time slots.
    SlotSettings {
        /// A job that can checkpoint is asked to after so many seconds if others wait for its GPUs; 0: never.
        length: f64,
    }
);

/// Time slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotConfig {
    /// How long a slot is; unset: there are none.
    pub length: Option<Seconds>,
}

impl SlotConfig {
    /// As if there were no such thing, as published.
    pub(super) const fn none() -> Self {
        Self { length: None }
    }
}

impl SlotSettings {
    pub(super) fn over(self, base: SlotConfig, check: &mut Checker) -> SlotConfig {
        let length = check.seconds("slots.length", self.length, base.length.unwrap_or_default(), 0.0, 31_536_000.0);
        SlotConfig { length: (length.get() > 0.0).then_some(length) }
    }
}

impl From<&SlotConfig> for SlotSettings {
    fn from(config: &SlotConfig) -> Self {
        Self { length: Some(config.length.unwrap_or_default().get()) }
    }
}
