//! Predicted times, as they are now.

use carma_core::{Fraction, Job, JobId, Stall, Time};

use super::View;
use crate::api::{JobPrediction, PredictedTime};
use crate::engine::predictions::Range;

impl View<'_> {
    /// How far an unfinished job is, and what is predicted of it.
    pub(crate) fn prediction_for(self, job: JobId) -> JobPrediction {
        self.decisions.job(job).map(|job| self.prediction(job)).unwrap_or_default()
    }

    pub(super) fn prediction(self, job: &Job) -> JobPrediction {
        let progress = job.progress.map(Fraction::get);
        let Some(predicted) = self.predictions.of(job.id()).filter(|_| job.state.outcome().is_none()) else {
            return JobPrediction { progress, ..JobPrediction::default() };
        };
        let hangs = job.state.active().is_some_and(|active| matches!(active.stall, Some(Stall::Hanging { .. })));
        let end_is_known = !hangs && !self.predictions.is_overdue(self.decisions, job.id());
        let from_now = |range: Option<Range>| range.and_then(|range| from(range, self.decisions.now()));
        JobPrediction {
            progress,
            starts: if job.state.waiting().is_some() { from_now(predicted.starts) } else { None },
            ends: from_now(predicted.ends.filter(|_| end_is_known)),
            basis: predicted.basis.clone(),
        }
    }
}

/// What should have happened by now says nothing any more.
fn from(range: Range, now: Time) -> Option<PredictedTime> {
    let from_now = |time: Time| time - now;
    (range.latest > now).then(|| PredictedTime {
        earliest: from_now(range.earliest),
        likely: from_now(range.likely),
        latest: from_now(range.latest),
    })
}
