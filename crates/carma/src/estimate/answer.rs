//! One estimator's answer with its bound, and how long it took.

use std::time::{Duration, Instant};

use carma_estimate::Family;
use carma_estimate::confidence::upper_bound;
use carma_estimate::estimators::{Answer, Estimator, NoAnswer, Question};

/// An estimator's answer, or why there is none.
pub(crate) struct EstimatorAnswer {
    pub(crate) estimator: Estimator,
    /// The answer and its upper bound in bytes.
    pub(crate) result: Result<(Answer, u64), NoAnswer>,
    pub(crate) took: Duration,
}

pub(crate) fn answer(estimator: Estimator, question: &Question<'_>) -> EstimatorAnswer {
    let began = Instant::now();
    let family = question.model.map(Family::of).or_else(|| question.recording.map(Family::of_events));
    let result = estimator
        .estimate(question)
        .map(|answer| (answer, upper_bound(estimator, family, question.stack.kernels, &answer, question.confidence)));
    EstimatorAnswer { estimator, result, took: began.elapsed() }
}
