//! One reading of a GPU's counters.

use serde::{Deserialize, Serialize};

use crate::units::{Fraction, MiB, Time, Watts};

/// What one look at a GPU showed. Counters that the GPU or its driver does not offer are absent.
///
/// ```
/// use carma_core::{Fraction, MiB, Sample, Time};
/// let sample = Sample { smact: Some(Fraction::clamped(0.42)), ..Sample::new(Time::from_secs(1), MiB(5_000)) };
/// assert!(sample.drama.is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was read.
    pub at: Time,
    /// The device's used memory, whoever uses it.
    pub memory_used: MiB,
    /// Share of time an SM was active, over all SMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smact: Option<Fraction>,
    /// Resident warps over the maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smocc: Option<Fraction>,
    /// Share of time DRAM was busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drama: Option<Fraction>,
    /// Share of time the compute engine was active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gract: Option<Fraction>,
    /// Share of time at least one kernel ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<Fraction>,
    /// Power drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Watts>,
}

impl Sample {
    /// A sample of nothing but memory.
    pub const fn new(at: Time, memory_used: MiB) -> Self {
        Self { at, memory_used, smact: None, smocc: None, drama: None, gract: None, utilisation: None, power: None }
    }

    /// The plain number of one metric.
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        let fraction = match metric {
            Metric::Memory => return Some(self.memory_used.0 as f64),
            Metric::Power => return self.power.map(|watts| watts.0),
            Metric::Smact => self.smact,
            Metric::Smocc => self.smocc,
            Metric::Drama => self.drama,
            Metric::Gract => self.gract,
            Metric::Utilisation => self.utilisation,
        };
        fraction.map(Fraction::get)
    }
}

/// What a sample measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Used memory in MiB.
    Memory,
    /// SM activity.
    Smact,
    /// SM occupancy.
    Smocc,
    /// DRAM activity.
    Drama,
    /// Compute engine activity.
    Gract,
    /// GPU utilisation.
    Utilisation,
    /// Power in watts.
    Power,
}

impl Metric {
    /// Its name as people in the field write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Smact => "SMACT",
            Self::Smocc => "SMOCC",
            Self::Drama => "DRAMA",
            Self::Gract => "GRACT",
            Self::Utilisation => "GPU utilisation",
            Self::Power => "power",
        }
    }
}
