//! Metrics of the past: counts in the store. All possible labels are exported with 0 from the beginning, so that the first event is a step.

use std::collections::BTreeMap;

use super::exposition::{Labels, Page, counter};
use crate::tally::{Histogram, Tallies, Tally};

/// Verdicts of attempts.
const VERDICTS: [&str; 10] = [
    "succeeded",
    "failed",
    "out_of_memory",
    "host_out_of_memory",
    "gpu_lost",
    "mps_server_died",
    "could_not_start",
    "supervisor_lost",
    "server_lost",
    "hung",
];
/// Other outcomes of jobs.
const OUTCOMES: [&str; 3] = ["time_limit", "cancelled", "dependency_failed"];
/// Why else jobs are put back.
const REQUEUES: [&str; 5] = ["requested", "time_slice_over", "moved", "server_ending", "borrowed"];
const DECISIONS: [&str; 4] = ["launch", "signal", "requeue", "finish"];

pub(super) fn write(page: &mut Page, tallies: &Tallies, names: bool) {
    page.single(counter("carma_jobs_submitted_total", "Jobs that were accepted."), tallies.get(&Tally::Submitted));
    let mut by_word = |metric, label: &str, known: &[&str], word: fn(&Tally) -> Option<&str>| {
        let mut words: BTreeMap<&str, f64> = known.iter().map(|word| (*word, 0.0)).collect();
        for (word, much) in tallies.0.iter().filter_map(|(tally, much)| Some((word(tally)?, much))) {
            *words.entry(word).or_default() += much;
        }
        let samples: Vec<(Labels, f64)> = words.into_iter().map(|(word, much)| (Labels::new([(label, &word)]), much)).collect();
        page.family(metric, samples.iter().map(|(labels, much)| (labels, Some(*much))));
    };
    by_word(counter("carma_decisions_total", "Decisions of the scheduler."), "decision", &DECISIONS, |tally| match tally {
        Tally::Decided(kind) => Some(kind),
        _ => None,
    });
    let outcomes = [&VERDICTS[..], &OUTCOMES].concat();
    by_word(counter("carma_jobs_finished_total", "Finished jobs by outcome."), "outcome", &outcomes, |tally| match tally {
        Tally::Finished(outcome) => Some(outcome),
        _ => None,
    });
    by_word(counter("carma_attempts_ended_total", "Finished attempts by verdict."), "verdict", &VERDICTS, |tally| match tally {
        Tally::Ended(verdict) => Some(verdict),
        _ => None,
    });
    let reasons = [&VERDICTS[1..], &REQUEUES].concat();
    by_word(counter("carma_requeues_total", "Requeued jobs by reason."), "reason", &reasons, |tally| match tally {
        Tally::Requeued(reason) => Some(reason),
        _ => None,
    });
    // Without their names, users are one.
    let user: fn(&Tally) -> Option<&str> = if names {
        |tally| if let Tally::Energy(user) = tally { Some(user) } else { None }
    } else {
        |tally| matches!(tally, Tally::Energy(_)).then_some("")
    };
    by_word(counter("carma_user_energy_joules_total", "Energy of the user's finished attempts."), "user", &[], user);
    histograms(page, tallies);
}

fn histograms(page: &mut Page, tallies: &Tallies) {
    let mut family = |name, help, each: &[(Labels, Histogram)]| {
        let taken = |(labels, histogram): &(Labels, Histogram)| {
            let bucket = |number: usize| tallies.get(&Tally::Bucket(*histogram, number as u8));
            (labels.clone(), (0..=histogram.bounds().len()).map(bucket).collect(), tallies.get(&Tally::Sum(*histogram)))
        };
        let bounds = each.first().map_or(&[][..], |(_, histogram)| histogram.bounds());
        page.histograms(name, help, bounds, &each.iter().map(taken).collect::<Vec<_>>());
    };
    let alone = Labels::default();
    family("carma_job_wait_seconds", "Time from a job's submission to its first launch.", &[(alone.clone(), Histogram::Wait)]);
    family("carma_attempt_run_seconds", "Time from an attempt's launch to its end.", &[(alone, Histogram::Run)]);
    family(
        "carma_memory_peak_ratio",
        "Peak memory of successful attempts as a share of the expected memory.",
        &[(Labels::new([("of", &"estimate")]), Histogram::PeakOfEstimate), (Labels::new([("of", &"declared")]), Histogram::PeakOfDeclared)],
    );
}

#[cfg(test)]
mod tests {
    use carma_core::{JobId, Outcome, RequeueReason, Verdict};

    use super::*;
    use crate::tally::kind_of;

    #[test]
    fn every_state_of_slurm_has_a_meaning() {
        let reason = String::new;
        let verdicts = [
            Verdict::Succeeded,
            Verdict::Failed { code: 1 },
            Verdict::OutOfMemory,
            Verdict::HostOutOfMemory,
            Verdict::GpuLost,
            Verdict::MpsServerDied,
            Verdict::CouldNotStart { reason: reason() },
            Verdict::SupervisorLost,
            Verdict::ServerLost,
            Verdict::Hung,
        ];
        assert_eq!(verdicts.each_ref().map(kind_of), VERDICTS);
        assert_eq!(verdicts.map(Outcome::from).each_ref().map(kind_of), VERDICTS);
        let others = [Outcome::TimeLimit, Outcome::Cancelled, Outcome::DependencyFailed { on: JobId(1), member: None }];
        assert_eq!(others.each_ref().map(kind_of), OUTCOMES);
        let reasons = [
            RequeueReason::Requested,
            RequeueReason::TimeSliceOver,
            RequeueReason::Moved,
            RequeueReason::ServerEnding,
            RequeueReason::Borrowed,
        ];
        assert_eq!(reasons.each_ref().map(kind_of), REQUEUES);
    }
}
