//! Collocation risk: how busy a GPU has been, scored over its window, and whether it may take more.

mod screen;
mod weights;

pub use screen::{Bound, Screen};
pub use weights::RiskWeights;

use serde::{Deserialize, Serialize};

use crate::telemetry::{Metric, Telemetry};
use crate::units::Fraction;

/// A GPU's risk scores; absent where the GPU does not report the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Risk {
    /// Of SM activity.
    pub smact: Option<Fraction>,
    /// Of SM occupancy.
    pub smocc: Option<Fraction>,
    /// Of DRAM activity.
    pub drama: Option<Fraction>,
    /// Of GPU utilisation, the fallback.
    pub utilisation: Option<Fraction>,
}

impl Risk {
    /// Scores what was seen of a GPU.
    pub fn assess(telemetry: &Telemetry, weights: &RiskWeights) -> Self {
        let score = |metric| telemetry.statistics(metric).map(|statistics| weights.score(&statistics));
        let smact = score(Metric::Smact);
        Self {
            smact,
            smocc: score(Metric::Smocc),
            drama: score(Metric::Drama),
            // Utilisation says little beside SM activity; it is scored only for want of that.
            utilisation: if smact.is_none() { score(Metric::Utilisation) } else { None },
        }
    }

    /// The score that stands for how busy the GPU is: SM activity, else utilisation.
    pub fn busy(&self) -> Option<(Metric, Fraction)> {
        let smact = self.smact.map(|score| (Metric::Smact, score));
        smact.or_else(|| self.utilisation.map(|score| (Metric::Utilisation, score)))
    }
}
