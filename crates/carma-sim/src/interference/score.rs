//! Accuracy of a model on measured pairs and crowds.

use super::model::InterferenceModel;
use super::observations::{CrowdTrial, PairRun};
use super::together::{AddedJob, START_UP, run_together};
use crate::catalogue::{Catalogue, WorkloadId};
use carma_core::mean;

/// The next job of a crowd starts when the previous one has been on the GPU for this long.
const OBSERVED: f64 = 30.0;

/// A measured number and its prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Measured value.
    pub measured: f64,
    /// Predicted value.
    pub predicted: f64,
}

impl Scored {
    /// Signed error relative to the measured value.
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

/// Mean of absolute errors.
///
/// ```
/// use carma_sim::{Scored, mean_absolute_error};
/// let scored = [Scored { measured: 100.0, predicted: 110.0 }, Scored { measured: 100.0, predicted: 98.0 }];
/// assert!((mean_absolute_error(&scored) - 0.06).abs() < 1e-12);
/// ```
pub fn mean_absolute_error(scored: &[Scored]) -> f64 {
    mean(&scored.iter().map(|one| one.error().abs()).collect::<Vec<_>>())
}

impl InterferenceModel {
    fn entrant(&self, catalogue: &Catalogue, workload: WorkloadId, alone: f64, launch: f64) -> AddedJob {
        let workload = catalogue.get(workload);
        AddedJob { interference: self.rank_interference(workload, &workload.ranks[0]), alone, launch }
    }

    /// The wall times of both jobs of a pair.
    pub fn score_pair(&self, catalogue: &Catalogue, pair: &PairRun) -> [Scored; 2] {
        let entrants = [0, 1].map(|side| self.entrant(catalogue, pair.workloads[side], pair.alone[side], 0.0));
        let took = run_together(self, &entrants);
        [0, 1].map(|side| Scored { measured: pair.paired[side], predicted: took[side] })
    }

    /// The mean slowdown of a crowd.
    pub fn score_crowd(&self, catalogue: &Catalogue, crowd: &CrowdTrial) -> Scored {
        let launches = (0..).map(|place| f64::from(place) * (START_UP + OBSERVED));
        let jobs = crowd.workloads.iter().zip(&crowd.alone).zip(launches);
        let entrants: Vec<AddedJob> = jobs.map(|((workload, alone), launch)| self.entrant(catalogue, *workload, *alone, launch)).collect();
        let slowdowns: Vec<f64> = run_together(self, &entrants).iter().zip(&crowd.alone).map(|(took, alone)| took / alone).collect();
        Scored { measured: crowd.mean_slowdown, predicted: mean(&slowdowns) }
    }
}
