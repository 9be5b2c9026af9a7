//! The published policies step by step on four A100s, with answers worked out by hand.
//!
//! Every GPU has 40,960 MiB, including a guard of 512. A job of known need requires need + 2,048 MiB (`paper`).

use carma_core::*;

use crate::lab::{Lab, known};

/// Four GPUs with foreign processes, so that none is idle: memory used, SM activity.
const LOADS: [(u64, f64); 4] = [(30_000, 0.30), (10_000, 0.60), (20_000, 0.10), (35_000, 0.05)];

/// Available: 10,448, 30,448, 20,448, 5,448 MiB.
fn four_shared_gpus(policy: &str) -> Lab {
    let mut lab = Lab::with_policy(Preset::Paper, policy, 4);
    for (ordinal, (used, smact)) in (0..).zip(LOADS) {
        lab.load(ordinal, used, smact);
    }
    lab
}

/// Submits jobs of these needs one after the other. Gates close behind each, so that every job finds the GPUs of those
/// before it shut; `None` where it must wait.
fn placed(policy: &str, needs: &[u64]) -> Vec<Option<u16>> {
    let mut lab = four_shared_gpus(policy);
    let place = |(id, need): (u64, &u64)| lab.submit(known(id, *need)).first().map(|(_, gpus)| gpus[0]);
    (1..).zip(needs).map(place).collect()
}

#[test]
fn first_fit_takes_the_first_with_enough() {
    // 3,400 + 2,048 = 5,448: all fit. 12,000: 1 and 2 do, 0 does not. 8,400 = 10,448 exactly: 0 does, but is shut.
    assert_eq!(placed("ff", &[3_400, 12_000, 3_400, 3_400]), [Some(0), Some(1), Some(2), Some(3)]);
    assert_eq!(placed("ff", &[12_000, 8_400, 3_401, 3_400]), [Some(1), Some(0), Some(2), Some(3)]);
    assert_eq!(placed("ff", &[28_400]), [Some(1)], "30,448 exactly");
    assert_eq!(placed("ff", &[28_401]), [None], "1 MiB too much");
}

#[test]
fn best_fit_takes_the_least_that_is_enough() {
    assert_eq!(placed("bf", &[3_400, 3_400, 3_400, 3_400]), [Some(3), Some(0), Some(2), Some(1)]);
    assert_eq!(placed("bf", &[8_401, 8_400, 3_401, 1]), [Some(2), Some(0), Some(1), Some(3)]);
}

#[test]
fn most_available_memory_takes_the_gpu_with_the_most_memory() {
    assert_eq!(placed("magm", &[1, 1, 1, 1]), [Some(1), Some(2), Some(0), Some(3)]);
    assert_eq!(placed("magm", &[1, 18_400, 8_401, 1]), [Some(1), Some(2), None, None], "the third does not fit, the fourth may not pass");
}

#[test]
fn least_utilised_takes_the_least_busy_with_enough_memory() {
    assert_eq!(placed("lug", &[3_400, 3_400, 3_400, 3_400]), [Some(3), Some(2), Some(0), Some(1)]);
    assert_eq!(placed("lug", &[3_401, 8_400, 3_400]), [Some(2), Some(0), Some(3)]);
}

#[test]
fn the_floor_replaces_the_need_in_or_variants() {
    // 5,120 MiB must be free, whatever the job declares.
    assert_eq!(placed("or-bf", &[40_000, 40_000, 40_000, 40_000]), [Some(3), Some(0), Some(2), Some(1)]);
    assert_eq!(placed("or-magm", &[40_000, 1]), [Some(1), Some(2)]);
}

#[test]
fn estimates_replace_the_need_in_est_variants() {
    let mut lab = four_shared_gpus("est-ff");
    let estimated = |id, upper| {
        let memory = MemoryNeed { known: Some(PerRank::Same(MiB(1))), ..MemoryNeed::estimated(MiB(100), MiB(upper)) };
        JobSpec { memory, ..known(id, 1) }
    };
    assert_eq!(lab.submit(estimated(1, 12_000)), [(1, vec![1])], "12,000 is counted with, not 1 or 100");
    assert_eq!(lab.submit(known(2, 40_000)), [(2, vec![0])], "no estimate: the floor");
}

#[test]
fn a_wide_job_takes_the_best_gpus_or_none() {
    let wide = |id, gpus, need| JobSpec { gpus, ..known(id, need) };
    assert_eq!(four_shared_gpus("magm").submit(wide(1, 2, 8_400)), [(1, vec![1, 2])]);
    assert_eq!(four_shared_gpus("bf").submit(wide(1, 3, 3_401)), [(1, vec![0, 2, 1])]);
    assert_eq!(four_shared_gpus("lug").submit(wide(1, 4, 3_400)), [(1, vec![3, 2, 0, 1])]);
    assert_eq!(four_shared_gpus("magm").submit(wide(1, 4, 3_401)), [], "only three have 5,449 MiB");
}

#[test]
fn idle_gpus_come_first_and_in_order() {
    for policy in ["ff", "bf", "magm", "lug", "rr", "horus", "lucid", "exclusive"] {
        let mut lab = Lab::with_policy(Preset::Paper, policy, 4);
        lab.load(0, 20_000, 0.1);
        let placed: Vec<_> = (1..=3).flat_map(|id| lab.submit(known(id, 30_000))).collect();
        assert_eq!(placed, [(1, vec![1]), (2, vec![2]), (3, vec![3])], "{policy}");
    }
}

#[test]
fn too_few_idle_gpus_for_a_wide_job_are_filled_up_with_shared_ones() {
    let mut lab = Lab::with_policy(Preset::Paper, "magm", 2);
    lab.load(0, 20_000, 0.1);
    assert_eq!(lab.submit(JobSpec { gpus: 2, ..known(1, 10_000) }), [(1, vec![1, 0])], "the idle one has more memory");
}

#[test]
fn without_idle_first_the_policy_decides_at_once() {
    let config = Config { mapping: "bf".parse().unwrap(), ..Preset::Paper.into() };
    let config = Config { admission: AdmissionConfig { idle_first: false, ..config.admission }, ..config };
    let mut lab = Lab::new(config, 2);
    lab.load(1, 20_000, 0.1);
    assert_eq!(lab.submit(known(1, 10_000)), [(1, vec![1])]);
    assert_eq!(lab.submit(known(2, 40_700)), [(2, vec![0])], "what fits on no shared GPU still gets an idle one");
}
