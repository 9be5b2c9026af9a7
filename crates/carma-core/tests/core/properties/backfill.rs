//! Backfill's guarantee: what is kept for a head is there at the stated time.

use std::collections::BTreeMap;

use carma_core::*;
use proptest::prelude::*;

use super::stream::{Arrival, run};
use crate::lab::{A100, Lab, job, secs};

/// A job with a limit that it keeps. What it needs to share may be known; else it wants its GPUs for itself.
fn limited() -> impl Strategy<Value = Arrival> {
    let memory = prop::option::of(prop::sample::select(vec![500, 9_000, 20_000, 30_000]));
    (0_u64..40, 1_u32..4, 1_u64..200, memory).prop_flat_map(|(gap, gpus, limit, memory)| {
        let (exclusive, time_limit) = (memory.is_none(), Some(secs(limit)));
        let memory = memory.map_or_else(MemoryNeed::default, |memory| MemoryNeed::known(MiB(memory)));
        let spec = JobSpec { gpus, memory, exclusive, time_limit, ..job(0) };
        (1..=limit).prop_map(move |used| Arrival::new(gap, used, spec.clone()))
    })
}

/// Two servers of two and three GPUs. Gates open as soon as a new job is seen, which is at once: what a gate adds to the
/// time a head waits is known only then.
fn lab() -> Lab {
    let config = Config::from(Preset::Standard);
    let config = Config { gate: GateConfig { observe: Seconds::ZERO, confirmed: Seconds::ZERO, timeout: Some(Seconds::TICK) }, ..config };
    let mut lab = Lab::new(config, 2);
    lab.event(Event::ServerAttached(ServerSpec::new(ServerId(1))));
    for ordinal in 0..3 {
        lab.attach(DeviceSpec::new(DeviceId::gpu(ServerId(1), ordinal), A100));
    }
    lab
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    /// Every job that reaches the head of the queue starts no later than the time first stated for it, give or take the
    /// millisecond of a gate.
    #[test]
    fn a_head_starts_at_its_reserved_time(jobs in prop::collection::vec(limited(), 1..40)) {
        let mut reserved: BTreeMap<JobId, Time> = BTreeMap::new();
        run(&mut lab(), &jobs, |lab, actions| {
            for action in actions {
                if let Action::Launch { attempt, .. } = action {
                    let (started, by) = (lab.now, reserved.get(&attempt.job));
                    assert!(by.is_none_or(|by| started <= *by + Seconds::TICK), "{} started at {started}, reserved from {by:?}", attempt.job);
                }
            }
            if let Some(kept) = lab.scheduler.head_reservation() {
                reserved.entry(kept.head).or_insert(kept.from.unwrap());
            }
        });
    }
}
