//! The estimate: a likely value and a range for each counter.

use carma_core::{Fraction, Metric, Watts};
use serde::{Deserialize, Serialize};

use super::features::features;
use super::learned::Learned;
use crate::family::Family;
use crate::model::Model;
use crate::training::Training;

/// The estimated counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Share of time that multiprocessors are active.
    Smact,
    /// Share of warp slots in use.
    Smocc,
    /// Share of time that memory is busy.
    Drama,
    /// Power in watts.
    Power,
}

impl Counter {
    /// All counters.
    pub const ALL: [Self; 4] = [Self::Smact, Self::Smocc, Self::Drama, Self::Power];
}

/// A likely value, and a range that contains nine of ten held-out runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimated<T> {
    /// The likely value.
    pub point: T,
    /// Lower end of the range.
    pub low: T,
    /// Upper end of the range.
    pub high: T,
}

impl<T> Estimated<T> {
    /// Converts to another unit.
    pub fn map<U>(self, unit: impl Fn(T) -> U) -> Estimated<U> {
        Estimated { point: unit(self.point), low: unit(self.low), high: unit(self.high) }
    }
}

/// Utilisation and power of a job's first GPU when the job runs alone; means over the run on an A100.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Utilisation {
    /// Share of time that multiprocessors are active.
    pub smact: Estimated<Fraction>,
    /// Share of warp slots in use.
    pub smocc: Estimated<Fraction>,
    /// Share of time that memory is busy.
    pub drama: Estimated<Fraction>,
    /// Power of the GPU.
    pub power: Estimated<Watts>,
}

impl From<Utilisation> for carma_core::Utilisation {
    /// The likely values, for a job's specification.
    fn from(estimate: Utilisation) -> Self {
        Self::NONE
            .with(Metric::Smact, Some(estimate.smact.point))
            .with(Metric::Smocc, Some(estimate.smocc.point))
            .with(Metric::Drama, Some(estimate.drama.point))
    }
}

/// Estimates the utilisation of a model in training.
pub fn estimate(model: &Model, training: &Training) -> Utilisation {
    Learned::shipped().estimate(&features(model, training), Family::of(model))
}
