//! The interference model: its constants, and slowdowns from them.

use std::collections::BTreeMap;

use carma_core::{CollocationMode, Fraction};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::catalogue::{RankProfile, Workload};

/// Error in a file of constants.
#[derive(Debug, Error)]
pub enum ModelError {
    /// Not TOML, or not of this form.
    #[error(transparent)]
    Form(#[from] toml::de::Error),
    /// A constant out of range.
    #[error("{key} is {value}: it must be a number from {least} to {most}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value.
        value: f64,
        /// Minimum.
        least: f64,
        /// Maximum.
        most: f64,
    },
}

/// Exponents of a job's counters in its pressure.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PressureExponents {
    /// Exponent of SMACT / (1 - SMACT): the last tenth of the SMs matters more than the first.
    pub smact_odds: f64,
    /// Exponent of peak memory in units of 4 GiB: larger batches make longer kernels.
    pub memory: f64,
}

/// Exponents of a job's counters in its sensitivity.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SensitivityExponents {
    /// Exponent of GPU utilisation: work outside the GPU is not slowed down.
    pub utilisation: f64,
    /// Exponent of peak memory in units of 4 GiB.
    pub memory: f64,
}

/// Logarithms of a rank's counters; a zero counter is replaced by a small value.
struct Features {
    smact_odds: f64,
    utilisation: f64,
    memory: f64,
}

impl Features {
    fn of(rank: &RankProfile) -> Self {
        let smact = rank.smact.get().clamp(0.005, 0.99);
        Self {
            smact_odds: (smact / (1.0 - smact)).ln(),
            utilisation: rank.utilisation.get().max(0.005).ln(),
            memory: (rank.peak.0.max(1) as f64 / 4096.0).ln(),
        }
    }
}

/// Deviation of a family or a workload from the prediction by counters, as logarithms.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// Deviation of its pressure.
    pub pressure: f64,
    /// Deviation of its sensitivity.
    pub sensitivity: f64,
}

/// Interference on one kind of GPU.
///
/// ```
/// use carma_sim::{Catalogue, InterferenceModel};
/// let (catalogue, model) = (Catalogue::shipped(), InterferenceModel::shipped());
/// let of = |name| { let workload = catalogue.get(catalogue.find(name).unwrap()); model.rank_interference(workload, &workload.ranks[0]) };
/// let (heavy, light) = (of("vgg16_imagenet_bs128"), of("resnet18_cifar100_bs64_20e"));
/// assert!(heavy.pressure > 10.0 * light.pressure);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterferenceModel {
    /// Slowdown that a job of SMACT 1/2 and 4 GiB adds to one of full utilisation and 4 GiB, as a logarithm.
    pub level: f64,
    /// Exponent of the number of co-runners: several add more than their sum.
    pub crowd: f64,
    /// Factor on interference between clients of an MPS server.
    pub mps: f64,
    /// Deviation of a single pair from the model: standard deviation of the logarithm of the added slowdown.
    pub pair_deviation: f64,
    /// From counters to pressure.
    pub pressure: PressureExponents,
    /// From counters to sensitivity.
    pub sensitivity: SensitivityExponents,
    /// Effects of families, from measured pairs.
    #[serde(default)]
    pub families: BTreeMap<String, Effect>,
    /// Further effects of single workloads, from measured pairs.
    #[serde(default)]
    pub workloads: BTreeMap<String, Effect>,
}

/// Pressure and sensitivity of a rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankInterference {
    /// Its effect on others.
    pub pressure: f64,
    /// The effect of others on it.
    pub sensitivity: f64,
}

/// Sum over the neighbours of a job on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Neighbours {
    sum: f64,
    squares: f64,
}

impl Neighbours {
    /// Adds a neighbour by its pressure.
    pub fn add(&mut self, pressure: f64) {
        self.sum += pressure;
        self.squares += pressure * pressure;
    }
}

impl InterferenceModel {
    /// The shipped constants, as written by `carma calibrate`.
    ///
    /// # Panics
    /// Never: a test reads them.
    #[expect(clippy::expect_used, reason = "the file is part of the program, and a test reads it")]
    pub fn shipped() -> Self {
        Self::parse(include_str!("constants.toml")).expect("the shipped constants are well-formed")
    }

    /// Parses constants that `carma calibrate` wrote.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let model: Self = toml::from_str(text)?;
        let effects = || model.families.values().chain(model.workloads.values());
        let exponents = [
            ("level", model.level),
            ("pressure.smact_odds", model.pressure.smact_odds),
            ("pressure.memory", model.pressure.memory),
            ("sensitivity.utilisation", model.sensitivity.utilisation),
            ("sensitivity.memory", model.sensitivity.memory),
        ];
        let exponents = exponents.map(|(key, value)| (key, value, -20.0, 20.0)).into_iter();
        let of_effects =
            effects().flat_map(|effect| [("an effect's pressure", effect.pressure), ("an effect's sensitivity", effect.sensitivity)]);
        let sizes = [("crowd", model.crowd, 0.0, 3.0), ("mps", model.mps, 0.0, 3.0), ("pair_deviation", model.pair_deviation, 0.0, 3.0)];
        let all = exponents.chain(of_effects.map(|(key, value)| (key, value, -20.0, 20.0))).chain(sizes);
        // Not-a-number is in no range.
        match all.into_iter().find(|(_, value, least, most)| !(least..=most).contains(&value)) {
            Some((key, value, least, most)) => Err(ModelError::Value { key, value, least, most }),
            None => Ok(model),
        }
    }

    /// Pressure and sensitivity of a rank, from its counters and, if the workload is known, from its measured pairs.
    pub fn rank_interference<'a>(&self, workload: impl Into<Option<&'a Workload>>, rank: &RankProfile) -> RankInterference {
        // A rank that holds memory and runs nothing causes and suffers no interference.
        if rank.smact == Fraction::ZERO {
            return RankInterference { pressure: 0.0, sensitivity: 0.0 };
        }
        let Features { smact_odds, utilisation, memory } = Features::of(rank);
        let mut pressure = self.level + self.pressure.smact_odds * smact_odds + self.pressure.memory * memory;
        let mut sensitivity = self.sensitivity.utilisation * utilisation + self.sensitivity.memory * memory;
        if let Some(workload) = workload.into() {
            for effect in [self.families.get(&workload.family), self.workloads.get(&workload.name)].into_iter().flatten() {
                pressure += effect.pressure;
                sensitivity += effect.sensitivity;
            }
        }
        RankInterference { pressure: pressure.clamp(-20.0, 3.0).exp(), sensitivity: sensitivity.clamp(-20.0, 3.0).exp() }
    }

    /// Factor on step time beside these neighbours. Jobs on different MIG instances are not neighbours.
    pub fn slowdown(&self, sensitivity: f64, neighbours: Neighbours, mode: CollocationMode) -> f64 {
        if neighbours.squares <= 0.0 {
            return 1.0;
        }
        let several = (neighbours.sum * neighbours.sum / neighbours.squares).powf(self.crowd);
        let mode = if matches!(mode, CollocationMode::Mps { .. }) { self.mps } else { 1.0 };
        1.0 + mode * sensitivity * neighbours.sum * several
    }
}
