//! Power: how much a server may draw, and whether jobs are packed or spread.

use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::section::settings;
use crate::units::Watts;

settings!(
    /// Power.
    PowerSettings {
        /// Most watts that all GPUs of a server may draw together; 0: no limit.
        budget: f64,
        /// Most watts that each GPU may draw, where the driver lets us set it; 0: as it is.
        cap: f64,
        /// Where there is a choice: `spread` jobs over idle GPUs, or `pack` them and let GPUs idle.
        prefer: PowerPreference,
    }
);

/// Power.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerConfig {
    /// Most watts of all GPUs of a server; unset: no limit.
    pub budget: Option<Watts>,
    /// Most watts of each GPU; unset: as it is.
    pub cap: Option<Watts>,
    /// Whether jobs are spread or packed.
    pub prefer: PowerPreference,
}

/// Where a job goes when both an idle GPU and one in use would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerPreference {
    /// Onto the idle one: it ends sooner.
    #[default]
    Spread,
    /// Onto the one in use, where that pays: the idle one draws less.
    Pack,
}

impl PowerConfig {
    /// As if there were no such thing, as published.
    pub(super) const fn none() -> Self {
        Self { budget: None, cap: None, prefer: PowerPreference::Spread }
    }
}

impl PowerSettings {
    pub(super) fn over(self, base: PowerConfig, check: &mut Checker) -> PowerConfig {
        let mut watts = |key, given, base: Option<Watts>| {
            let watts = check.number(key, given, base.map_or(0.0, |watts| watts.0), 0.0, 1e6, " W");
            (watts > 0.0).then_some(Watts(watts))
        };
        PowerConfig {
            budget: watts("power.budget", self.budget, base.budget),
            cap: watts("power.cap", self.cap, base.cap),
            prefer: self.prefer.unwrap_or(base.prefer),
        }
    }
}

impl From<&PowerConfig> for PowerSettings {
    fn from(config: &PowerConfig) -> Self {
        let watts = |watts: Option<Watts>| Some(watts.map_or(0.0, |watts| watts.0));
        Self { budget: watts(config.budget), cap: watts(config.cap), prefer: Some(config.prefer) }
    }
}
