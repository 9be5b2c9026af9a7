//! What is predicted of jobs that share a GPU, and how far that may go.

use super::check::Checker;
use super::section::settings;

settings!(
    /// What is predicted of jobs that share, and how far that may go; only policies that predict go by it.
    ForecastSettings {
        /// The most that any job may be slowed down by sharing, as predicted: run time over time alone.
        slowdown: f64,
        /// The least total progress that one more job must add to a GPU, in jobs at full speed.
        gain: f64,
        /// Most SM activity predicted for a GPU: the sum of what its jobs show alone.
        smact: f64,
        /// Most DRAM activity predicted for a GPU, likewise.
        drama: f64,
        /// Whether forecasts learn from the progress that jobs tell, beside others and alone.
        learn: bool,
    }
);

/// What is predicted of jobs that share, and how far that may go; only policies that predict go by it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ForecastConfig {
    /// The most that any job may be slowed down.
    pub slowdown: f64,
    /// The least total progress that one more job must add.
    pub gain: f64,
    /// Most SM activity of a GPU; the sum of what its jobs show alone.
    pub smact: f64,
    /// Most DRAM activity of a GPU, likewise.
    pub drama: f64,
    /// Whether forecasts learn.
    pub learn: bool,
}

impl ForecastConfig {
    /// The limits of every preset but `carma`, which allows more.
    pub(super) const fn usual() -> Self {
        Self { slowdown: 2.2, gain: 0.25, smact: 3.0, drama: 1.0, learn: true }
    }
}

impl ForecastSettings {
    pub(super) fn over(self, base: ForecastConfig, check: &mut Checker) -> ForecastConfig {
        ForecastConfig {
            slowdown: check.number("forecast.slowdown", self.slowdown, base.slowdown, 1.0, 100.0, ""),
            gain: check.number("forecast.gain", self.gain, base.gain, 0.0, 1.0, ""),
            smact: check.number("forecast.smact", self.smact, base.smact, 0.0, 10.0, ""),
            drama: check.number("forecast.drama", self.drama, base.drama, 0.0, 10.0, ""),
            learn: self.learn.unwrap_or(base.learn),
        }
    }
}

impl From<&ForecastConfig> for ForecastSettings {
    fn from(config: &ForecastConfig) -> Self {
        let ForecastConfig { slowdown, gain, smact, drama, learn } = *config;
        Self { slowdown: Some(slowdown), gain: Some(gain), smact: Some(smact), drama: Some(drama), learn: Some(learn) }
    }
}
