//! Collocation risk: how busy a GPU has been, scored over its window, and whether it may take more.

mod screen;
mod weights;

pub use screen::{Bound, Screen, ScreenSettings};
pub use weights::{RiskSettings, RiskWeights};

use serde::{Deserialize, Serialize};

use crate::telemetry::{Metric, PerMetric, Telemetry};
use crate::units::Fraction;

/// The metrics that are scored wherever they are known.
const SCORED: [Metric; 3] = [Metric::Smact, Metric::Smocc, Metric::Drama];

/// A GPU's risk scores; absent where the GPU does not report the metric. Other metrics than SM activity, SM occupancy, DRAM activity and, for want of
/// the first, GPU utilisation have no score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Risk {
    scores: PerMetric<Option<Fraction>>,
}

impl Risk {
    /// Scores the window of a GPU.
    pub fn assess(telemetry: &Telemetry, weights: &RiskWeights) -> Self {
        let score = |metric| telemetry.statistics(metric).map(|statistics| weights.score(&statistics));
        let mut scores = PerMetric::NONE;
        for metric in SCORED {
            scores[metric] = score(metric);
        }
        // Utilisation adds little to SM activity, so it is scored only without that.
        if scores[Metric::Smact].is_none() {
            scores[Metric::Utilisation] = score(Metric::Utilisation);
        }
        Self { scores }
    }

    /// The score of one metric.
    pub fn score(&self, metric: Metric) -> Option<Fraction> {
        self.scores[metric]
    }

    /// The score for how busy the GPU is: SM activity, else utilisation.
    pub fn busy(&self) -> Option<(Metric, Fraction)> {
        [Metric::Smact, Metric::Utilisation].into_iter().find_map(|metric| Some((metric, self.score(metric)?)))
    }
}
