//! Backfill's promise: what is kept for a head is there when it was said to be.

use std::collections::{BTreeMap, BTreeSet};

use carma_core::*;
use proptest::prelude::*;

use crate::lab::{A100, Lab, job, secs};

/// A job with a limit that it keeps.
#[derive(Debug, Clone)]
struct Limited {
    gap: u64,
    gpus: u32,
    limit: u64,
    used: u64,
    /// What it needs to share; unset: it wants its GPUs for itself.
    memory: Option<u64>,
}

fn limited() -> impl Strategy<Value = Limited> {
    let memory = prop::option::of(prop::sample::select(vec![500, 9_000, 20_000, 30_000]));
    (0_u64..40, 1_u32..4, 1_u64..200, memory)
        .prop_flat_map(|(gap, gpus, limit, memory)| (1..=limit).prop_map(move |used| Limited { gap, gpus, limit, used, memory }))
}

impl Limited {
    fn spec(&self, id: u64) -> JobSpec {
        let memory = self.memory.map_or_else(MemoryNeed::default, |memory| MemoryNeed::known(MiB(memory)));
        JobSpec { gpus: self.gpus, memory, exclusive: self.memory.is_none(), time_limit: Some(secs(self.limit)), ..job(id) }
    }
}

/// Two servers of two and three GPUs. Gates open as soon as a newcomer is seen, which is at once: what a gate adds to the
/// time a head waits is known only then.
fn lab() -> Lab {
    let config = Config::from(Preset::Standard);
    let config = Config { gate: GateConfig { observe: Seconds::ZERO, confirmed: Seconds::ZERO, patience: Some(Seconds::TICK) }, ..config };
    let mut lab = Lab::new(config, 2);
    lab.event(Event::ServerAttached(ServerSpec::new(ServerId(1))));
    for ordinal in 0..3 {
        lab.attach(DeviceSpec::new(DeviceId::gpu(ServerId(1), ordinal), A100));
    }
    lab
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    /// Every job that reaches the head of the queue starts no later than the time first promised to it, give or take the
    /// millisecond of a gate.
    #[test]
    fn a_head_starts_when_it_was_promised_to(jobs in prop::collection::vec(limited(), 1..40)) {
        let mut lab = lab();
        let mut ends: BTreeSet<(Time, u64)> = BTreeSet::new();
        let mut promised: BTreeMap<JobId, Time> = BTreeMap::new();
        let mut arrivals = jobs.iter().zip(1..).scan(lab.now, |at, (job, id)| {
            *at = *at + secs(job.gap);
            Some((*at, id))
        }).peekable();
        loop {
            let arrival = arrivals.peek().map(|(at, _)| *at);
            let end = ends.first().map(|(at, _)| *at);
            let wakeup = lab.scheduler.next_wakeup();
            let Some(next) = arrival.into_iter().chain(end).chain(wakeup).min() else { break };
            lab.now = next.max(lab.now);
            let actions = if wakeup == Some(next) {
                lab.event(Event::Tick)
            } else if end == Some(next) {
                let (_, id) = ends.pop_first().unwrap();
                lab.exit(id, Verdict::Succeeded)
            } else {
                let (_, id) = arrivals.next().unwrap();
                lab.event(Event::JobSubmitted(Box::new(jobs[id as usize - 1].spec(id))))
            };
            for action in &actions {
                if let Action::Launch { attempt, .. } = action {
                    let started = lab.now;
                    ends.insert((started + secs(jobs[attempt.job.0 as usize - 1].used), attempt.job.0));
                    let by = promised.get(&attempt.job);
                    prop_assert!(by.is_none_or(|by| started <= *by + Seconds::TICK), "{} started at {started}, promised {by:?}", attempt.job);
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
