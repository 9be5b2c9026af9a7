//! Counters that outlive restarts: launches, requeues, ends, and how long jobs waited and ran.

use carma_core::{AttemptId, MiB, Outcome, PerRank, RequeueReason, Verdict};

use crate::engine::decide::Decisions;
use crate::measure::Measurement;
use crate::tally::{Histogram, Tally, kind_of};

/// An attempt is launched. With the first attempt, the wait of the job ends.
pub(crate) fn count_launch(decisions: &mut Decisions, attempt: AttemptId) {
    let waited = decisions.job(attempt.job).filter(|_| attempt.number == 1).map(|job| decisions.now() - job.submitted_at);
    decided(decisions, "launch");
    if let Some(waited) = waited {
        decisions.batch.tallies.observe(Histogram::Wait, waited.get());
    }
}

pub(crate) fn count_signal(decisions: &mut Decisions) {
    decided(decisions, "signal");
}

pub(crate) fn count_requeue(decisions: &mut Decisions, reason: &RequeueReason) {
    let reason = match reason {
        RequeueReason::After(verdict) => kind_of(verdict),
        reason => kind_of(reason),
    };
    decided(decisions, "requeue");
    decisions.batch.tallies.count(Tally::Requeued(reason));
}

pub(crate) fn count_finish(decisions: &mut Decisions, outcome: &Outcome) {
    decided(decisions, "finish");
    decisions.batch.tallies.count(Tally::Finished(kind_of(outcome)));
}

fn decided(decisions: &mut Decisions, what: &str) {
    decisions.batch.tallies.count(Tally::Decided(what.to_owned()));
}

/// An attempt is over, and the core still knows it as running.
pub(crate) fn count_end(decisions: &mut Decisions, user: Option<&str>, attempt: AttemptId, measurement: &Measurement, verdict: &Verdict) {
    let job = decisions.job(attempt.job);
    let ran = job.and_then(|job| job.state.active()).map(|active| active.ran(decisions.now()));
    let memory = job.map(|job| job.spec.memory.clone());
    let tallies = &mut decisions.batch.tallies;
    tallies.count(Tally::Ended(kind_of(verdict)));
    if let Some(ran) = ran {
        tallies.observe(Histogram::Run, ran.get());
    }
    if let Some(user) = user.filter(|_| !measurement.gpus.is_empty()) {
        tallies.add(Tally::Energy(user.to_owned()), measurement.energy().joules());
    }
    let peak = measurement.peak_memory();
    let Some(memory) = memory.filter(|_| *verdict == Verdict::Succeeded && peak > MiB::ZERO) else { return };
    let estimated = memory.estimated.as_ref().and_then(|ranks| PerRank::values(ranks).iter().map(|rank| rank.expected).max());
    let declared = memory.known.as_ref().and_then(|ranks| PerRank::values(ranks).iter().copied().max());
    for (histogram, expected) in [(Histogram::PeakOfEstimate, estimated), (Histogram::PeakOfDeclared, declared)] {
        if let Some(expected) = expected.filter(|expected| *expected > MiB::ZERO) {
            tallies.observe(histogram, peak.0 as f64 / expected.0 as f64);
        }
    }
}
