//! What is done about placements that turn out badly.

use super::check::Checker;
use super::section::settings;
use crate::units::Seconds;

settings!(
    /// What is done about placements that turn out badly.
    CorrectionSettings {
        /// A GPU takes nobody more, and one that can checkpoint is moved, when a job is slowed down by so many times what was predicted; 0: never.
        slowdown: f64,
        /// The same when memory that grows will reach the GPU's in so many seconds; 0: never.
        memory_horizon: f64,
    }
);

/// What is done about placements that turn out badly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorrectionConfig {
    /// How many times the predicted slowdown is too much; unset: nothing is.
    pub slowdown: Option<f64>,
    /// How far ahead growing memory is looked at; unset: it is not.
    pub memory_horizon: Option<Seconds>,
}

impl CorrectionConfig {
    /// As if there were no such thing, as published.
    pub(super) const fn none() -> Self {
        Self { slowdown: None, memory_horizon: None }
    }

    /// Our own: twice the predicted slowdown is beyond what forecasts err by, and five minutes are enough to write a checkpoint.
    pub(super) const fn standard() -> Self {
        Self { slowdown: None, memory_horizon: Some(Seconds::from_secs(300)) }
    }

    /// Whether anything is done at all.
    pub(crate) const fn is_on(&self) -> bool {
        self.slowdown.is_some() || self.memory_horizon.is_some()
    }
}

impl CorrectionSettings {
    pub(super) fn over(self, base: CorrectionConfig, check: &mut Checker) -> CorrectionConfig {
        let slowdown = check.number("correction.slowdown", self.slowdown, base.slowdown.unwrap_or(0.0), 0.0, 100.0, "");
        let horizon =
            check.seconds("correction.memory_horizon", self.memory_horizon, base.memory_horizon.unwrap_or_default(), 0.0, 86_400.0);
        CorrectionConfig { slowdown: (slowdown > 0.0).then_some(slowdown), memory_horizon: (horizon.get() > 0.0).then_some(horizon) }
    }
}

impl From<&CorrectionConfig> for CorrectionSettings {
    fn from(config: &CorrectionConfig) -> Self {
        Self { slowdown: Some(config.slowdown.unwrap_or(0.0)), memory_horizon: Some(config.memory_horizon.unwrap_or_default().get()) }
    }
}
