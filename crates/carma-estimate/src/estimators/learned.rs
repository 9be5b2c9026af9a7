//! Estimates by the shipped learned estimators.

use crate::family::Family;
use crate::learned::GraphTrees;
use crate::learned::gpumemnet::{Architecture, GpuMemNet};
use crate::stack::MIB;

use super::{Answer, NoAnswer, Question};

/// The bound is the trained 95th percentile, at any confidence.
pub(super) fn boosted_trees(question: &Question<'_>) -> Result<Answer, NoAnswer> {
    let trees = GraphTrees::shipped().ok_or(NoAnswer::NotTrained)?;
    let (point, upper) = trees.predict_model(question.model()?, question.training);
    Ok(bounded(point, upper))
}

pub(super) fn gpumemnet(question: &Question<'_>, architecture: Architecture) -> Result<Answer, NoAnswer> {
    let model = question.model()?;
    let ensemble = GpuMemNet::shipped(Family::of(model), architecture).ok_or(NoAnswer::NotTrained)?;
    let prediction = ensemble.predict_model(model, question.training.batch);
    Ok(bounded(prediction.point(), prediction.bound(question.confidence)))
}

fn bounded(point: f64, upper: f64) -> Answer {
    Answer { own_bound: Some((upper * MIB) as u64), ..Answer::plain((point * MIB) as u64) }
}
