//! One reading of a GPU's counters.

use serde::{Deserialize, Serialize};

use super::per_metric::Utilisation;
use crate::units::{MiB, Time, Watts};

/// A sample of a GPU. Counters that the GPU or its driver does not offer are absent.
///
/// ```
/// use carma_core::{Fraction, Metric, MiB, Sample, Time, Utilisation};
/// let sample = Sample { utilisation: Utilisation::of([(Metric::Smact, 0.42)]), ..Sample::new(Time::from_secs(1), MiB(5_000)) };
/// assert!(sample.utilisation[Metric::Drama].is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was read.
    pub at: Time,
    /// The device's used memory, by all processes.
    pub memory_used: MiB,
    /// How busy it was.
    #[serde(flatten)]
    pub utilisation: Utilisation,
    /// Power drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Watts>,
}

impl Sample {
    /// A sample of memory alone.
    pub const fn new(at: Time, memory_used: MiB) -> Self {
        Self { at, memory_used, utilisation: Utilisation::NONE, power: None }
    }
}
