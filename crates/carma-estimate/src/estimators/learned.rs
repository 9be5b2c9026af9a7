//! Estimates of the shipped learners.

use crate::data::Family;
use crate::learning::dnnperf::DnnPerf;
use crate::learning::gpumemnet::{Architecture, GpuMemNet};
use crate::stack::MIB;

use super::{Answer, Question, Unanswered};

/// Ratio of its own upper bound (the 95th percentile it learned) to the confidence asked for is not known: the bound is that percentile.
pub(super) fn dnnperf(question: &Question<'_>) -> Result<Answer, Unanswered> {
    let learner = DnnPerf::shipped().ok_or(Unanswered::NotTrained)?;
    let (point, upper) = learner.predict_model(question.model()?, question.training);
    Ok(bounded(point, upper))
}

pub(super) fn gpumemnet(question: &Question<'_>, architecture: Architecture) -> Result<Answer, Unanswered> {
    let model = question.model()?;
    let learner = GpuMemNet::shipped(Family::of(model), architecture).ok_or(Unanswered::NotTrained)?;
    let prediction = learner.predict_model(model, question.training.batch);
    Ok(bounded(prediction.point(), prediction.bound(question.confidence)))
}

fn bounded(point: f64, upper: f64) -> Answer {
    Answer { own_bound: Some((upper * MIB) as u64), ..Answer::plain((point * MIB) as u64) }
}
