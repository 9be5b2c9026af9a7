//! What an attempt took of all its GPUs, and what later estimates learn from it.

use std::collections::BTreeMap;

use carma_core::{DeviceId, Fraction, Interference, MiB, Seconds};
use carma_estimate::history::{Measured, RunEnd};
use serde::{Deserialize, Serialize};

use super::energy::Millijoules;
use super::share::Basis;
use super::usage::{Level, Usage};

/// What an attempt took, by GPU.
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

    /// What estimates learn from it: of its fullest GPU. `took` is from start to end of a run that came to its end. None where it was never
    /// seen with memory. Parts that are only guessed teach nothing of what it does.
    pub fn learned(&self, took: Option<Seconds>, interference: Option<Interference>) -> Option<Measured> {
        let usage = self.gpus.values().max_by_key(|usage| usage.peak_memory).filter(|usage| usage.peak_memory > MiB::ZERO)?;
        let sure = usage.basis <= Basis::Utilisation;
        let mean = |level: &Level| -> Option<Fraction> { level.mean().filter(|_| sure) };
        Some(Measured {
            memory: usage.peak_memory,
            smact: mean(&usage.smact),
            smocc: mean(&usage.smocc),
            drama: mean(&usage.drama),
            watts: usage.power().filter(|_| sure),
            seconds: took,
            interference,
            end: RunEnd::Completed,
        })
    }
}
