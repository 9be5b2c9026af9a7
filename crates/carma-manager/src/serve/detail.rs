//! Everything about a job: from the store, and what the engine has measured so far.

use carma_core::{JobId, JobSpec, MiB, Outcome, PerRank};

use super::Shared;
use super::caller::Caller;
use super::privacy::{Redact, View};
use crate::api::{ArrayPlace, AttemptDetail, Ending, EstimateDetail, JobDetail, JobEstimate, Problem, ProblemKind};
use crate::declaration::far_off;
use crate::engine::{Unfinished, measured};
use crate::last_output::last_output;
use crate::measure::Measurement;
use crate::store::{JobHistory, JobReasons, Joules, Measured, Phase, StoredAttempt};
use crate::supervise::AttemptFolder;

impl Shared {
    /// A job as the caller may see it.
    pub(super) async fn job_detail(&self, job: JobId, caller: &Caller) -> Result<JobDetail, Problem> {
        let history = self.readers.read(caller.uid, move |reader| reader.job(job)?.ok_or_else(|| gone(job))).await?;
        let is_over = history.job.job.state.outcome().is_some();
        // It may have ended meanwhile; then the next read of the store has its measurements.
        let known = if is_over { Unfinished::default() } else { self.handle.of(caller.uid).unfinished(job).await.unwrap_or_default() };
        let view = caller.view(history.job.owner.uid);
        let mut detail = detail(history, known);
        if let Some(attempt) = detail.attempts.last().filter(|_| view != View::Other && detail.has_failed()) {
            let folder = AttemptFolder::of(&self.places.state, attempt.attempt);
            detail.last_output = self.blocking.run(caller.uid, move || last_output(&folder)).await?;
        }
        Ok(detail.visible_to(view))
    }
}

/// The error for a job that was deleted meanwhile.
pub(super) fn gone(job: JobId) -> Problem {
    ProblemKind::NotFound.because(format!("{job} is no longer stored"))
}

/// Builds the detail. What the engine has measured so far belongs to the last attempt.
pub(super) fn detail(history: JobHistory, Unfinished { so_far, prediction, reserved, .. }: Unfinished) -> JobDetail {
    let JobHistory { job: stored, reasons: JobReasons { held_by, cancelled, estimate }, attempts, events } = history;
    let job = stored.job;
    let mut so_far = so_far;
    let mut attempts: Vec<AttemptDetail> = attempts.into_iter().rev().map(|attempt| attempt_detail(attempt, &mut so_far)).collect();
    attempts.reverse();
    if let Some(running) = attempts.last_mut().filter(|attempt| attempt.ended.is_none()) {
        let now = |device| reserved.iter().find(|(other, _)| *other == device).map(|(_, reserved)| *reserved);
        running.placement.devices.iter_mut().for_each(|granted| granted.reserved = now(granted.device).unwrap_or(granted.reserved));
    }
    let peak = attempts.iter().flat_map(|attempt| &attempt.peaks).max().copied().unwrap_or_default();
    let outcome = job.state.outcome();
    let declared = stored.request.resources.memory.filter(|_| outcome.is_some());
    let declaration = declared.and_then(|declared| far_off(declared, peak, outcome.is_some_and(Outcome::succeeded)));
    let energies: Vec<f64> = attempts.iter().filter_map(|attempt| attempt.energy).map(|Joules(joules)| joules).collect();
    let mut request = stored.request;
    request.schedule.priority = job.spec.priority;
    request.resources.time_limit = job.spec.time_limit;
    JobDetail {
        id: job.id(),
        owner: stored.owner,
        estimate: estimate_detail(&job.spec, request.resources.memory, estimate.unwrap_or_default()),
        request,
        phase: Phase::from(&job.state),
        outcome: job.state.outcome().map(ToString::to_string),
        ending: job.state.outcome().map(Ending::from),
        held_by,
        cancelled,
        submitted: stored.submitted,
        ended: stored.ended,
        array: job.spec.array.map(ArrayPlace::from),
        state: job.state,
        attempts,
        events,
        energy: (!energies.is_empty()).then(|| Joules(energies.iter().sum())),
        prediction,
        declaration,
        last_output: None,
    }
}

fn attempt_detail(stored: StoredAttempt, so_far: &mut Option<Measurement>) -> AttemptDetail {
    let StoredAttempt { attempt, placement, launched, end, .. } = stored;
    let taken = || so_far.take().map(|so_far| measured(&so_far, &placement)).unwrap_or_default();
    let Measured { peaks, utilisation, energy } = end.as_ref().map_or_else(taken, |end| end.measured.clone());
    let (ended, blame) = (end.as_ref().map(|end| end.at), end.as_ref().and_then(|end| end.blame));
    let (exit, verdict, reason) = end.map_or((None, None, None), |end| (end.exit, Some(end.verdict), end.reason));
    let ending = verdict.as_ref().map(Ending::from);
    AttemptDetail { attempt, placement, launched, ended, verdict, ending, reason, blame, exit, peaks, utilisation, energy }
}

fn estimate_detail(spec: &JobSpec, declared: Option<MiB>, latest: JobEstimate) -> EstimateDetail {
    let neediest =
        spec.memory.estimated.as_ref().and_then(|estimate| PerRank::values(estimate).iter().max_by_key(|estimate| estimate.upper));
    let JobEstimate { source, notes, parts, .. } = latest;
    EstimateDetail {
        declared,
        expected: neediest.map(|estimate| estimate.expected),
        upper: neediest.map(|estimate| estimate.upper),
        utilisation: spec.utilisation,
        duration: spec.expected_duration,
        source: source.or_else(|| declared.map(|_| "declared".to_owned())),
        notes,
        parts,
    }
}
