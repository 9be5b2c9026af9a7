//! The answer: a likely value and a range for each counter.

use carma_core::{Fraction, Watts};
use serde::{Deserialize, Serialize};

use super::features::features;
use super::learned::Learned;
use crate::data::Family;
use crate::model::Model;
use crate::training::Training;

/// What is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Share of time that multiprocessors have work.
    Smact,
    /// Share of warp slots in use.
    Smocc,
    /// Share of time that memory is busy.
    Drama,
    /// Power in watts.
    Power,
}

impl Counter {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Smact, Self::Smocc, Self::Drama, Self::Power];
}

/// A likely value, and between which values nine of ten runs lie that the estimator had not seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimated<T> {
    /// The likely value.
    pub point: T,
    /// Seldom less.
    pub low: T,
    /// Seldom more.
    pub high: T,
}

impl<T> Estimated<T> {
    /// The same in another unit.
    pub fn map<U>(self, unit: impl Fn(T) -> U) -> Estimated<U> {
        Estimated { point: unit(self.point), low: unit(self.low), high: unit(self.high) }
    }
}

/// How busy a job will keep the first of its GPUs when it has it alone, and what that takes in power; means over the run on an A100.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Utilisation {
    /// Share of time that multiprocessors have work.
    pub smact: Estimated<Fraction>,
    /// Share of warp slots in use.
    pub smocc: Estimated<Fraction>,
    /// Share of time that memory is busy.
    pub drama: Estimated<Fraction>,
    /// Power of the GPU.
    pub power: Estimated<Watts>,
}

impl From<Utilisation> for carma_core::Utilisation {
    /// The likely values, as a job's specification states them.
    fn from(estimate: Utilisation) -> Self {
        Self { smact: Some(estimate.smact.point), smocc: Some(estimate.smocc.point), drama: Some(estimate.drama.point), gpu: None }
    }
}

/// Estimates the utilisation of a model as it is trained.
pub fn estimate(model: &Model, training: &Training) -> Utilisation {
    Learned::shipped().estimate(&features(model, training), Family::of(model))
}
