//! The usage of an attempt on all its GPUs, and the lesson for later estimates.

use std::collections::BTreeMap;

use carma_core::{DeviceId, Interference, MiB, Seconds, Utilisation};
use carma_estimate::history::{Measured, RunEnd};
use serde::{Deserialize, Serialize};

use super::energy::Millijoules;
use super::share::Basis;
use super::usage::Usage;

/// The usage of an attempt, by GPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Measurement {
    /// Of each.
    pub gpus: BTreeMap<DeviceId, Usage>,
}

impl Measurement {
    /// The most memory on any GPU.
    pub fn peak_memory(&self) -> MiB {
        self.gpus.values().map(|usage| usage.peak_memory).max().unwrap_or_default()
    }

    /// All its energy.
    pub fn energy(&self) -> Millijoules {
        self.gpus.values().map(|usage| usage.energy).sum()
    }

    /// The lesson for later estimates, from its fullest GPU. `took` is the duration of a complete run. None if it never
    /// had memory. Guessed shares are left out.
    pub fn learned(&self, took: Option<Seconds>, interference: Option<Interference>) -> Option<Measured> {
        let usage = self.gpus.values().max_by_key(|usage| usage.peak_memory).filter(|usage| usage.peak_memory > MiB::ZERO)?;
        let sure = usage.basis <= Basis::Utilisation;
        Some(Measured {
            memory: usage.peak_memory,
            utilisation: if sure { usage.means() } else { Utilisation::NONE },
            watts: usage.power().filter(|_| sure),
            seconds: took,
            interference,
            end: RunEnd::Completed,
        })
    }
}
