//! Jobs that come one after another, and run for as long as they will.

use std::collections::BTreeSet;

use carma_core::*;

use crate::lab::{Lab, secs};

/// A job that arrives this many seconds after the previous one. Each attempt runs for a given time and ends in a given way.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub(super) gap: u64,
    pub(super) spec: JobSpec,
    pub(super) runs: Vec<(u64, Verdict)>,
}

impl Arrival {
    /// One that does in one attempt.
    pub(super) fn new(gap: u64, used: u64, spec: JobSpec) -> Self {
        Self { gap, spec, runs: vec![(used, Verdict::Succeeded)] }
    }
}

/// Hands in all jobs, numbered from 1, and ends their attempts, until nothing is left to happen; `look` sees the actions after each event.
pub(super) fn run(lab: &mut Lab, jobs: &[Arrival], mut look: impl FnMut(&Lab, &[Action])) {
    let mut ends: BTreeSet<(Time, AttemptId)> = BTreeSet::new();
    let come = |at: &mut Time, (job, id): (&Arrival, u64)| {
        *at = *at + secs(job.gap);
        Some((*at, JobSpec { id: JobId(id), ..job.spec.clone() }))
    };
    let mut arrivals = jobs.iter().zip(1..).scan(lab.now, come).peekable();
    let run_of = |attempt: AttemptId| &jobs[attempt.job.0 as usize - 1].runs[attempt.number as usize - 1];
    loop {
        let arrival = arrivals.peek().map(|(at, _)| *at);
        let end = ends.first().map(|(at, _)| *at);
        let wakeup = lab.scheduler.next_wakeup();
        let Some(next) = arrival.into_iter().chain(end).chain(wakeup).min() else { break };
        lab.now = next.max(lab.now);
        let actions = if wakeup == Some(next) {
            lab.event(Event::Tick)
        } else if end == Some(next) {
            let (_, attempt) = ends.pop_first().unwrap();
            lab.event(Event::JobExited { attempt, verdict: run_of(attempt).1.clone() })
        } else {
            lab.event(Event::JobSubmitted(Box::new(arrivals.next().unwrap().1)))
        };
        for action in &actions {
            if let Action::Launch { attempt, .. } = action {
                ends.insert((lab.now + secs(run_of(*attempt).0), *attempt));
            }
        }
        look(lab, &actions);
    }
    assert!(lab.scheduler.jobs().all(|job| job.state.outcome().is_some()));
}
