//! Backfill's promise: what is kept for a head is there when it was said to be.

use std::collections::{BTreeMap, BTreeSet};

use carma_core::*;
use proptest::prelude::*;

use crate::lab::{Lab, job, secs};

/// A job that wants GPUs for itself, with a limit that it keeps.
#[derive(Debug, Clone)]
struct Limited {
    gap: u64,
    gpus: u32,
    limit: u64,
    used: u64,
}

fn limited() -> impl Strategy<Value = Limited> {
    (0_u64..40, 1_u32..5, 1_u64..200)
        .prop_flat_map(|(gap, gpus, limit)| (1..=limit).prop_map(move |used| Limited { gap, gpus, limit, used }))
}

proptest! {
    /// Every job that reaches the head of the queue starts no later than the time first promised to it.
    #[test]
    fn a_head_starts_when_it_was_promised_to(jobs in prop::collection::vec(limited(), 1..25)) {
        let mut lab = Lab::new(Config::default(), 4);
        let mut ends: BTreeSet<(Time, u64)> = BTreeSet::new();
        let mut promised: BTreeMap<JobId, Time> = BTreeMap::new();
        let mut arrivals = jobs.iter().zip(1..).scan(lab.now, |at, (job, id)| {
            *at = *at + secs(job.gap);
            Some((*at, id))
        }).peekable();
        loop {
            let arrival = arrivals.peek().map(|(at, _)| *at);
            let end = ends.first().map(|(at, _)| *at);
            let actions = match (arrival, end) {
                (None, None) => break,
                (Some(at), end) if end.is_none_or(|end| at < end) => {
                    let (_, id) = arrivals.next().unwrap();
                    let Limited { gpus, limit, .. } = jobs[id as usize - 1];
                    lab.now = at;
                    let spec = JobSpec { gpus, exclusive: true, time_limit: Some(secs(limit)), ..job(id) };
                    lab.event(Event::JobSubmitted(Box::new(spec)))
                }
                (_, _) => {
                    let (at, id) = ends.pop_first().unwrap();
                    lab.now = at;
                    lab.exit(id, Verdict::Succeeded)
                }
            };
            for action in &actions {
                if let Action::Launch { attempt, .. } = action {
                    let started = lab.now;
                    ends.insert((started + secs(jobs[attempt.job.0 as usize - 1].used), attempt.job.0));
                    let by = promised.get(&attempt.job);
                    prop_assert!(by.is_none_or(|by| started <= *by), "{} started at {started}, promised {by:?}", attempt.job);
                }
            }
            if let Some(kept) = lab.scheduler.head_reservation() {
                let from = kept.from.unwrap();
                promised.entry(kept.head).or_insert(from);
            }
        }
        prop_assert!(lab.scheduler.jobs().all(|job| job.state.outcome().is_some()));
    }
}
