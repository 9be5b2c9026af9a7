//! GPUs that are kept by prediction, and memory that is given back.

use crate::lab::*;
use carma_core::*;

fn lasting(seconds: u64, spec: JobSpec) -> JobSpec {
    JobSpec { expected_duration: Some(secs(seconds)), ..spec }
}

fn exclusive(id: u64) -> JobSpec {
    JobSpec { exclusive: true, ..job(id) }
}

fn wide(id: u64) -> JobSpec {
    JobSpec { gpus: 2, ..exclusive(id) }
}

fn with_memory(id: u64, memory: MemoryNeed) -> JobSpec {
    JobSpec { memory, utilisation: Utilisation::of([(Metric::Smact, 0.1), (Metric::Drama, 0.1)]), ..job(id) }
}

/// Three GPUs: two are busy for so long, the third is idle, and a long job of two GPUs waits.
fn half_free(busy: u64) -> Lab {
    let mut lab = Lab::new(Config::default(), 3);
    assert_eq!(lab.submit(lasting(busy, exclusive(1))), [(1, vec![0])]);
    assert_eq!(lab.submit(lasting(busy, exclusive(5))), [(5, vec![1])]);
    assert_eq!(lab.submit(lasting(40_000, wide(2))), []);
    lab
}

fn kept(lab: &Lab) -> Vec<DeviceId> {
    lab.scheduler.head_reservation().map(|kept| kept.devices).unwrap_or_default()
}

#[test]
fn gpus_that_are_soon_free_are_kept_for_the_longest_job() {
    let mut lab = half_free(300);
    assert_eq!(kept(&lab), [gpu(0), gpu(2)]);
    assert_eq!(lab.submit(lasting(1_000, exclusive(3))), [], "it would end after that");
    assert_eq!(lab.submit(lasting(100, exclusive(4))), [(4, vec![2])], "it ends in time");
    lab.exit(4, Verdict::Succeeded);
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(2, vec![0, 2])]);
    let mut later = half_free(9_000);
    assert_eq!(kept(&later), []);
    assert_eq!(later.submit(lasting(1_000, exclusive(3))), [(3, vec![2])], "the GPU would be idle for too long");
}

/// A prediction that fails must not keep a GPU idle.
#[test]
fn a_job_that_ends_much_later_than_predicted_keeps_no_gpu_idle() {
    let mut lab = half_free(300);
    assert_eq!(lab.submit(lasting(1_000, exclusive(3))), []);
    let started: Vec<_> = (0..40).flat_map(|_| lab.wait(100)).collect();
    assert_eq!(started, [(3, vec![2])], "without any other event");
}

#[test]
fn a_head_that_has_waited_for_its_own_length_gets_the_gpus_that_are_free_first() {
    let mut lab = Lab::new(Config::default(), 2);
    lab.submit(lasting(3_000, exclusive(1)));
    lab.submit(lasting(90_000, exclusive(5)));
    assert_eq!(lab.submit(lasting(2_000, wide(2))), [], "the head");
    lab.exit(5, Verdict::Succeeded);
    let fill = |lab: &mut Lab, id| lab.submit(lasting(1_900, exclusive(id)));
    assert_eq!(fill(&mut lab, 3), [(3, vec![1])], "it has not waited");
    lab.exit(3, Verdict::Succeeded);
    lab.wait(2_100);
    assert_eq!(fill(&mut lab, 4), [], "the other GPU is predicted to be free in 900 s");
    assert_eq!(kept(&lab), [gpu(0), gpu(1)]);
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(2, vec![0, 1])]);
}

#[test]
fn unused_reserved_memory_is_given_back() {
    let start = |first: MemoryNeed| {
        let mut lab = Lab::new(Config::default(), 1);
        lab.submit(with_memory(1, first));
        lab.settle(1, 10_000);
        assert_eq!(lab.submit(with_memory(2, MemoryNeed::known(MiB(15_000)))), []);
        let before = lab.wait(200);
        (before, lab.wait(100))
    };
    assert_eq!(start(MemoryNeed::known(MiB(30_000))), (vec![], vec![(2, vec![0])]), "five minutes after its memory last rose");
    assert_eq!(start(MemoryNeed::estimated(MiB(25_000), MiB(30_000))).1, [(2, vec![0])]);
    assert_eq!(start(MemoryNeed::estimated(MiB(15_000), MiB(30_000))).1, [], "the estimate is poor: it may still need that much");
}

#[test]
fn rising_memory_is_not_given_back() {
    let mut lab = Lab::new(Config::default(), 1);
    lab.submit(with_memory(1, MemoryNeed::known(MiB(30_000))));
    lab.settle(1, 8_000);
    assert_eq!(lab.submit(with_memory(2, MemoryNeed::known(MiB(15_000)))), []);
    for memory in [9_000, 10_000, 11_000, 12_000] {
        lab.wait(200);
        lab.seen(1, memory);
    }
    assert_eq!(lab.wait(250), []);
    assert_eq!(lab.wait(60), [(2, vec![0])]);
}
