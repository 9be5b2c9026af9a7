//! Recovery: the ladder, budgets, jobs of lost GPUs.

use carma_core::*;

use crate::lab::{A100, Lab, gpu, job, known, launches};

fn requeues(actions: &[Action]) -> Vec<(u64, bool)> {
    let requeue = |action: &Action| match action {
        Action::Requeue { floor, whole_gpu, .. } => Some((floor.0, *whole_gpu)),
        _ => None,
    };
    actions.iter().filter_map(requeue).collect()
}

#[test]
fn preset_paper_recovers_on_an_idle_gpu_and_suspends_sharing() {
    let mut lab = Lab::with_policy(Preset::Paper, "or-magm", 2);
    for id in [1, 2] {
        lab.submit(job(id));
        lab.settle(id, 9_000);
    }
    (0..2).for_each(|ordinal| drop(lab.load(ordinal, 9_000, 0.1)));
    assert_eq!(lab.submit(job(3)), [(3, vec![0])]);
    let crash = lab.exit(3, Verdict::OutOfMemory);
    assert_eq!(requeues(&crash), [(40_960, true)]);
    assert_eq!(lab.state(3).name(), "recovering");
    assert!(lab.obstacles(3, 0).iter().any(|obstacle| matches!(obstacle, Obstacle::NotIdle { .. })));
    assert_eq!(lab.submit(job(4)), [], "there is room, but nothing is collocated");
    assert!(lab.obstacles(4, 1).contains(&Obstacle::CollocationSuspended { recovering: JobId(3) }));
    let idle = lab.exit(2, Verdict::Succeeded);
    assert_eq!(launches(&idle), [(3, vec![1]), (4, vec![0])], "recovery first, then collocation goes on");
    lab.exit(3, Verdict::OutOfMemory);
    assert_eq!(*lab.outcome(3), Outcome::OutOfMemory, "a whole GPU was not enough");
}

#[test]
fn the_successor_raises_the_floor_step_by_step() {
    let mut lab = Lab::with_policy(Preset::Aegis, "or-magm", 1);
    lab.submit(job(1));
    for floor in [10_240, 18_432, 20_480, 28_672, 30_720] {
        let crash = lab.exit(1, Verdict::OutOfMemory);
        assert_eq!(requeues(&crash), [(floor, false)]);
        assert_eq!(launches(&crash), [(1, vec![0])], "an idle GPU has more than any floor");
    }
    assert_eq!(requeues(&lab.exit(1, Verdict::OutOfMemory)), [(40_960, true)]);
    lab.exit(1, Verdict::OutOfMemory);
    assert_eq!(*lab.outcome(1), Outcome::OutOfMemory);
}

#[test]
fn a_recovered_job_waits_until_its_floor_is_free_and_goes_before_the_queue() {
    let mut lab = Lab::with_policy(Preset::Aegis, "or-magm", 1);
    lab.submit(job(1));
    lab.settle(1, 9_000);
    lab.load(0, 30_000, 0.1);
    assert_eq!(lab.submit(job(2)), [(2, vec![0])]);
    lab.settle(2, 11_000);
    let crash = lab.exit(2, Verdict::OutOfMemory);
    assert_eq!(requeues(&crash), [(19_192, false)], "it had reached 11,000 MiB: the next bucket is 20,480, the largest step 8,192");
    assert_eq!(lab.submit(job(3)), [], "strictly behind the recovery queue");
    assert_eq!(lab.load(0, 40_960 - 512 - 19_191, 0.1), [], "1 MiB short of the floor");
    assert_eq!(lab.load(0, 40_960 - 512 - 19_192, 0.1), [(2, vec![0])]);
}

#[test]
fn only_out_of_memory_climbs() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(JobSpec { retries: RetryBudget { failure: 9, out_of_memory: None }, ..known(1, 5_000) });
    lab.exit(1, Verdict::Failed { code: 1 });
    lab.exit(1, Verdict::HostOutOfMemory);
    assert_eq!(lab.scheduler.job(JobId(1)).unwrap().climb, LadderPosition::default());
    assert_eq!(requeues(&lab.exit(1, Verdict::OutOfMemory)), [(8_072, false)], "our ladder: the 6,024 MiB it had and 2,048 more");
    assert_eq!(lab.scheduler.fleet().device(gpu(0)).unwrap().reserved(), MiB(8_072));
    assert_eq!(requeues(&lab.exit(1, Verdict::OutOfMemory)), [(10_240, false)], "then buckets");
}

#[test]
fn every_step_of_aegis_requests_more_memory() {
    let mut lab = Lab::with_policy(Preset::Aegis, "magm", 1);
    lab.submit(known(1, 10_000));
    assert_eq!(requeues(&lab.exit(1, Verdict::OutOfMemory)), [(18_704, false)], "it had 10,512, more than the first bucket");
}

#[test]
fn a_job_that_shared_its_whole_gpu_gets_another() {
    let mut lab = Lab::with_policy(Preset::Paper, "or-magm", 1);
    lab.submit(job(1));
    lab.exit(1, Verdict::OutOfMemory);
    lab.settle(1, 9_000);
    lab.load(0, 9_000, 0.1);
    assert_eq!(lab.submit(job(2)), [(2, vec![0])], "as published: only readings count");
    assert_eq!(requeues(&lab.exit(1, Verdict::OutOfMemory)), [(40_960, true)], "it was not alone");
    assert_eq!(launches(&lab.exit(2, Verdict::Succeeded)), [(1, vec![0])]);
    lab.exit(1, Verdict::OutOfMemory);
    assert_eq!(*lab.outcome(1), Outcome::OutOfMemory);
}

#[test]
fn a_job_without_gpus_cannot_climb() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(JobSpec { gpus: 0, ..job(1) });
    lab.exit(1, Verdict::OutOfMemory);
    assert_eq!(*lab.outcome(1), Outcome::OutOfMemory);
}

#[test]
fn a_climb_beyond_every_server_ends_at_once() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 2);
    lab.attach(DeviceSpec::new(gpu(2), MiB(81_920)));
    lab.submit(JobSpec { gpus: 2, exclusive: true, ..job(1) });
    lab.exit(1, Verdict::OutOfMemory);
    assert_eq!(*lab.outcome(1), Outcome::OutOfMemory, "there is one larger GPU, not two");

    let mut cut = Lab::new(Config::from(Preset::Standard), 1);
    cut.attach(DeviceSpec::new(gpu(0).instance(0), MiB(19_968)));
    cut.submit(JobSpec { exclusive: true, ..job(1) });
    cut.exit(1, Verdict::OutOfMemory);
    assert_eq!(*cut.outcome(1), Outcome::OutOfMemory, "the GPU that is partitioned into instances is no larger device");
}

#[test]
fn the_retry_budget_ends_the_climb() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(JobSpec { retries: RetryBudget { out_of_memory: Some(1), failure: 0 }, ..job(1) });
    assert_eq!(lab.exit(1, Verdict::OutOfMemory).len(), 2);
    lab.exit(1, Verdict::OutOfMemory);
    assert_eq!(*lab.outcome(1), Outcome::OutOfMemory);
    lab.submit(JobSpec { retries: RetryBudget { out_of_memory: Some(0), failure: 5 }, ..job(2) });
    lab.exit(2, Verdict::OutOfMemory);
    assert_eq!(*lab.outcome(2), Outcome::OutOfMemory);
}

#[test]
fn a_job_that_ran_out_of_memory_alone_needs_a_larger_gpu() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.attach(DeviceSpec::new(gpu(1), MiB(81_920)));
    lab.submit(JobSpec { exclusive: true, ..job(1) });
    let crash = lab.exit(1, Verdict::OutOfMemory);
    assert_eq!((requeues(&crash), launches(&crash)), (vec![(81_920, true)], vec![(1, vec![1])]));
    lab.exit(1, Verdict::OutOfMemory);
    assert_eq!(*lab.outcome(1), Outcome::OutOfMemory);
}

#[test]
fn jobs_of_a_lost_gpu_are_requeued_a_limited_number_of_times() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 2);
    lab.submit(JobSpec { gpus: 1, ..job(1) });
    for round in 0..4 {
        let granted = lab.state(1).active().unwrap().placement.devices[0].device;
        let lost = lab.event(Event::GpuLost { device: granted });
        assert!(matches!(lost[..], [Action::Signal { signal: Signal::Kill, reason: StopReason::GpuLost, .. }]), "{lost:?}");
        assert!(lab.state(1).active().is_some(), "until it is seen to have ended it may still run");
        let back = lab.exit(1, Verdict::Failed { code: 137 });
        if round < 3 {
            assert_eq!(requeues(&back), [(0, false)], "no step on the ladder");
            assert_eq!(launches(&back).len(), 1, "the other GPU takes it");
        }
        lab.event(Event::GpuRecovered { device: granted });
        lab.event(Event::GpuWindow { device: granted, window: crate::lab::window(0, 0.0, 0.0, 0.0) });
    }
    assert_eq!(*lab.outcome(1), Outcome::GpuLost);
}

#[test]
fn a_lost_gpu_takes_its_instances_with_it() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.attach(DeviceSpec::new(gpu(0).instance(3), MiB(19_968)));
    lab.submit(known(1, 1_000));
    assert_eq!(lab.event(Event::GpuLost { device: gpu(0) }).len(), 1);
    lab.exit(1, Verdict::GpuLost);
    assert!(matches!(lab.scheduler.explain(JobId(1)).unwrap().reason, WaitReason::TooLarge { .. }), "there is no GPU left");
    lab.event(Event::GpuRecovered { device: gpu(0) });
    let window = crate::lab::window(0, 0.0, 0.0, 0.0);
    assert_eq!(launches(&lab.event(Event::GpuWindow { device: gpu(0).instance(3), window })), [(1, vec![0])]);
}

#[test]
fn clients_of_a_dead_mps_server_are_requeued() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 0);
    let mode = CollocationMode::Mps { exclusive_process: true };
    lab.attach(DeviceSpec { mode, ..DeviceSpec::new(gpu(0), A100) });
    lab.submit(known(1, 1_000));
    lab.settle(1, 1_000);
    lab.submit(known(2, 1_000));
    let died = lab.event(Event::MpsServerDied { device: gpu(0) });
    assert_eq!(died.len(), 2);
    let back = lab.exit(1, Verdict::OutOfMemory);
    assert_eq!(requeues(&back), [(0, false)], "whatever it died of, the server's death came first");
    lab.exit(2, Verdict::MpsServerDied);
    assert_eq!(lab.scheduler.job(JobId(2)).unwrap().displacements, 1);
}

#[test]
fn a_cancelled_job_is_not_requeued_after_a_fault() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(job(1));
    lab.event(Event::GpuLost { device: gpu(0) });
    lab.event(Event::JobCancelled { job: JobId(1) });
    lab.exit(1, Verdict::GpuLost);
    assert_eq!(*lab.outcome(1), Outcome::Cancelled);
}

#[test]
fn the_next_attempt_requests_the_memory_that_a_crash_showed() {
    let mut lab = Lab::with_policy(Preset::Standard, "or-magm", 1);
    lab.submit(job(1));
    let needed = |lab: &mut Lab, memory| lab.event(Event::MemoryNeeded { attempt: lab.attempt(1), needed: MiB(memory) });
    needed(&mut lab, 21_000);
    assert_eq!(requeues(&lab.exit(1, Verdict::OutOfMemory)), [(23_048, false)], "what it had and wanted, and 2,048 more");
    needed(&mut lab, 24_000);
    assert_eq!(requeues(&lab.exit(1, Verdict::OutOfMemory)), [(30_720, false)], "the next bucket above");
}

#[test]
fn a_job_that_needs_more_than_its_gpu_moves_to_a_larger_one() {
    let mut lab = Lab::with_policy(Preset::Standard, "or-magm", 0);
    for (ordinal, gib) in [(0, 11), (1, 24), (2, 80)] {
        lab.attach(DeviceSpec::new(gpu(ordinal), MiB(gib * 1024)));
    }
    let spec = JobSpec { memory: MemoryNeed::estimated(MiB(9_000), MiB(9_000)), ..job(1) };
    lab.event(Event::GpuDrained { device: gpu(1) });
    lab.event(Event::GpuDrained { device: gpu(2) });
    assert_eq!(lab.submit(spec), [(1, vec![0])]);
    lab.event(Event::GpuResumed { device: gpu(1) });
    lab.event(Event::GpuResumed { device: gpu(2) });
    lab.event(Event::MemoryNeeded { attempt: lab.attempt(1), needed: MiB(30_000) });
    assert_eq!(launches(&lab.exit(1, Verdict::OutOfMemory)), [(1, vec![2])], "24 GiB would not do either");
    lab.event(Event::MemoryNeeded { attempt: lab.attempt(1), needed: MiB(90_000) });
    lab.exit(1, Verdict::OutOfMemory);
    assert_eq!(*lab.outcome(1), Outcome::OutOfMemory, "nothing is that large");
}
