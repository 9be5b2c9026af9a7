//! Queues: order, priorities, dependencies, arrays, backfill.

use carma_core::*;

use crate::lab::{Lab, gpu, job, known, launches, secs};

fn exclusive(id: u64) -> JobSpec {
    JobSpec { exclusive: true, ..job(id) }
}

fn limited(id: u64, gpus: u32, seconds: u64) -> JobSpec {
    JobSpec { gpus, time_limit: Some(secs(seconds)), ..exclusive(id) }
}

#[test]
fn in_strict_fifo_no_job_passes() {
    let mut lab = Lab::with_policy(Preset::Paper, "magm", 2);
    lab.submit(exclusive(1));
    assert_eq!(lab.submit(JobSpec { gpus: 2, ..exclusive(2) }), []);
    assert_eq!(lab.submit(known(3, 10)), [], "GPU 1 is idle, but job 2 is before it");
    assert_eq!(lab.scheduler.explain(JobId(3)).unwrap().reason, WaitReason::Behind { head: JobId(2), ahead: 1, precedence: None });
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(2, vec![0, 1])]);
}

#[test]
fn higher_priority_goes_first_and_can_change() {
    let mut lab = Lab::with_policy(Preset::Paper, "exclusive", 1);
    lab.submit(job(1));
    lab.submit(job(2));
    lab.submit(job(3));
    lab.submit(JobSpec { priority: Priority(5), ..job(4) });
    lab.event(Event::JobChanged { job: JobId(3), priority: Some(Priority(9)), time_limit: LimitChange::Keep });
    let order: Vec<u64> = lab.scheduler.queue().map(|job| job.id().0).collect();
    assert_eq!(order, [3, 4, 2]);
}

#[test]
fn dependencies_are_met_by_success_or_by_any_end() {
    let after = |id, on, condition| JobSpec { dependencies: vec![Dependency { job: JobId(on), condition }], ..job(id) };
    let mut lab = Lab::new(Config::from(Preset::Standard), 4);
    lab.submit(job(1));
    assert_eq!(lab.submit(after(2, 1, Condition::Ok)), []);
    assert_eq!(lab.submit(after(3, 1, Condition::Any)), []);
    assert_eq!(lab.submit(after(4, 2, Condition::Ok)), []);
    assert_eq!(lab.submit(after(5, 4, Condition::Any)), []);
    assert!(matches!(lab.scheduler.explain(JobId(2)).unwrap().reason, WaitReason::Dependencies { on } if on[0].job == JobId(1)));
    assert_eq!(lab.refused(Event::JobForgotten { job: JobId(1) }), "job 1 cannot be deleted: it has not ended, or other jobs depend on it");
    let ended = lab.exit(1, Verdict::Failed { code: 1 });
    assert_eq!(*lab.outcome(2), Outcome::DependencyFailed { on: JobId(1), member: None });
    assert_eq!(*lab.outcome(4), Outcome::DependencyFailed { on: JobId(2), member: None }, "and so on down the chain");
    assert_eq!(launches(&ended).iter().map(|(id, _)| *id).collect::<Vec<_>>(), [3, 5], "any end will do for these");
    lab.submit(after(6, 1, Condition::Ok));
    assert_eq!(*lab.outcome(6), Outcome::DependencyFailed { on: JobId(1), member: None }, "too late to hope");
    assert_eq!(lab.submit(after(7, 1, Condition::Any)).len(), 1);
}

#[test]
fn a_job_waits_for_all_it_depends_on() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 4);
    lab.submit(job(1));
    lab.submit(job(2));
    let on = |id| Dependency { job: JobId(id), condition: Condition::Ok };
    lab.submit(JobSpec { dependencies: vec![on(1), on(2)], ..job(3) });
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), []);
    assert_eq!(launches(&lab.exit(2, Verdict::Succeeded)).len(), 1);
}

#[test]
fn an_array_respects_its_limit() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 4);
    let member = |id| JobSpec { array: Some(ArrayMember { array: ArrayId(1), index: id as u32, at_most: Some(2) }), ..exclusive(id) };
    let launched: Vec<_> = (1..=5).flat_map(|id| lab.submit(member(id))).collect();
    assert_eq!(launched, [(1, vec![0]), (2, vec![1])]);
    assert_eq!(lab.scheduler.explain(JobId(3)).unwrap().reason, WaitReason::ArrayLimit { at_most: 2 });
    assert_eq!(lab.submit(exclusive(9)), [(9, vec![2])], "an array at its limit blocks no job");
    lab.event(Event::JobChanged { job: JobId(5), priority: Some(Priority(1)), time_limit: LimitChange::Keep });
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(5, vec![0])], "the next of the array by priority");
    lab.event(Event::JobHeld { job: JobId(3) });
    assert_eq!(launches(&lab.exit(5, Verdict::Succeeded)), [(4, vec![0])]);
    assert_eq!(launches(&lab.event(Event::JobReleased { job: JobId(3) })), []);
    assert_eq!(launches(&lab.exit(2, Verdict::Succeeded)), [(3, vec![1])]);
}

#[test]
fn an_estimate_keeps_the_place_of_a_job_in_its_array() {
    let mut lab = Lab::with_policy(Preset::Paper, "exclusive", 1);
    lab.submit(job(1));
    let member = |id| JobSpec { array: Some(ArrayMember { array: ArrayId(1), index: 0, at_most: Some(1) }), ..job(id) };
    lab.submit(member(2));
    lab.submit(member(3));
    lab.event(Event::EstimateReady { job: JobId(2), estimate: Box::default() });
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(2, vec![0])]);
}

/// Job 1 holds GPUs 0 and 1 until second 100, job 2 GPU 2 until second 50; the head, job 3, wants three GPUs.
fn waiting_head() -> Lab {
    let mut lab = Lab::new(Config::from(Preset::Standard), 4);
    lab.submit(limited(1, 2, 100));
    lab.submit(limited(2, 1, 50));
    assert_eq!(lab.submit(JobSpec { gpus: 3, ..exclusive(3) }), []);
    lab
}

#[test]
fn backfill_keeps_the_soonest_gpus_for_the_head() {
    let lab = waiting_head();
    let kept = lab.scheduler.head_reservation().unwrap();
    assert_eq!(kept.devices, [gpu(0), gpu(2), gpu(3)], "3 is idle, 2 is free in 50 s, 0 in 100 s");
    assert_eq!(kept.from, Some(lab.now + secs(100)));
}

#[test]
fn backfill_lets_a_job_pass_that_ends_in_time() {
    let mut lab = waiting_head();
    assert_eq!(lab.submit(limited(4, 1, 101)), [], "1 s too long for GPU 3");
    let reserved = Obstacle::ReservedForHead { head: JobId(3), from: Some(lab.now + secs(100)) };
    assert!(lab.obstacles(4, 3).contains(&reserved));
    assert_eq!(lab.submit(exclusive(5)), [], "without a limit it counts as endless");
    assert_eq!(lab.submit(limited(6, 1, 100)), [(6, vec![3])], "gone just in time");
    lab.now = lab.now + secs(50);
    assert_eq!(launches(&lab.exit(2, Verdict::Succeeded)), [], "jobs 4 and 5 would keep the head waiting on GPU 2");
    assert_eq!(lab.submit(limited(7, 1, 50)), [(7, vec![2])]);
    lab.now = lab.now + secs(50);
    assert_eq!(launches(&lab.exit(6, Verdict::Succeeded)), [(4, vec![3])], "0, 1 and 2 are due now, so the head does not need 3");
    assert_eq!(launches(&lab.exit(7, Verdict::Succeeded)), []);
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(3, vec![0, 1, 2])]);
}

#[test]
fn backfill_uses_unreserved_gpus() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 3);
    lab.submit(limited(1, 2, 100));
    lab.submit(JobSpec { gpus: 1, hold: true, ..exclusive(9) });
    assert_eq!(lab.submit(JobSpec { gpus: 2, ..exclusive(2) }), []);
    assert_eq!(lab.scheduler.head_reservation().unwrap().devices, [gpu(0), gpu(2)]);
    lab.event(Event::JobCancelled { job: JobId(2) });
    assert_eq!(lab.submit(JobSpec { gpus: 1, ..exclusive(3) }), [(3, vec![2])]);
    assert_eq!(lab.submit(JobSpec { gpus: 2, ..exclusive(4) }), [], "the head now waits for job 1's GPUs");
    lab.exit(3, Verdict::Succeeded);
    assert_eq!(lab.scheduler.head_reservation().unwrap().devices, [gpu(0), gpu(2)], "GPU 2 is free now, GPU 0 first of equals");
    assert_eq!(lab.submit(limited(5, 1, 1_000)), [], "GPU 1 is busy, GPU 2 kept from second 100 on");
    assert_eq!(lab.submit(limited(6, 1, 100)), [(6, vec![2])]);
}

#[test]
fn no_job_takes_reserved_gpus_of_a_head_behind_an_unlimited_job() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 2);
    lab.submit(exclusive(1));
    assert_eq!(lab.submit(JobSpec { gpus: 2, ..exclusive(2) }), []);
    assert_eq!(lab.scheduler.head_reservation().unwrap().from, None);
    assert_eq!(lab.submit(limited(3, 1, 1)), []);
    assert_eq!(lab.obstacles(3, 1), [Obstacle::ReservedForHead { head: JobId(2), from: None }]);
}

#[test]
fn backfill_continues_without_a_reservation() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 4);
    lab.event(Event::GpuDrained { device: gpu(3) });
    assert_eq!(lab.submit(JobSpec { gpus: 4, ..exclusive(1) }), []);
    assert_eq!(lab.submit(limited(2, 1, 10)), [(2, vec![0])], "it is unknown when the fourth GPU is resumed");
}

#[test]
fn reserved_gpus_suit_each_rank() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.attach(DeviceSpec::new(gpu(1), MiB(81_920)));
    lab.attach(DeviceSpec::new(gpu(2), MiB(40_960)));
    lab.submit(JobSpec { time_limit: Some(secs(300)), ..known(1, 39_000) });
    lab.submit(JobSpec { time_limit: Some(secs(200)), ..known(2, 70_000) });
    lab.submit(JobSpec { time_limit: Some(secs(100)), ..known(3, 39_000) });
    let needs = MemoryNeed { known: Some(PerRank::Each(vec![MiB(60_000), MiB(10_000)])), estimated: None };
    assert_eq!(lab.submit(JobSpec { gpus: 2, memory: needs, ..job(4) }), []);
    let kept = lab.scheduler.head_reservation().unwrap();
    assert_eq!((kept.devices, kept.from), (vec![gpu(1), gpu(2)], Some(lab.now + secs(200))));
}

#[test]
fn no_gpu_is_reserved_that_does_not_admit_the_head() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 2);
    lab.submit(known(1, 5_000));
    lab.submit(JobSpec { time_limit: Some(secs(200)), ..known(2, 20_000) });
    lab.settle(1, 5_000);
    lab.settle(2, 20_000);
    lab.busy(0, 5_000, 0.95, 0.6, 0.6);
    let at = lab.now;
    assert_eq!(lab.submit(known(3, 30_000)), []);
    let kept = lab.scheduler.head_reservation().unwrap();
    assert_eq!((kept.devices, kept.from), (vec![gpu(1)], Some(Time::from_secs(1200))), "GPU 0 has the memory, but is busy for ever");
    let late = JobSpec { time_limit: Some(Time::from_secs(1201) - at), ..known(4, 10_000) };
    assert_eq!(lab.submit(late), [], "it would be in the head's way");
}

#[test]
fn the_soonest_server_is_found_behind_a_better_looking_one() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 2);
    lab.event(Event::ServerAttached(ServerSpec::new(ServerId(1))));
    let other = |ordinal| DeviceId::gpu(ServerId(1), ordinal);
    (0..2).for_each(|ordinal| lab.attach(DeviceSpec::new(other(ordinal), crate::lab::A100)));
    let limited = |id, memory, seconds| JobSpec { time_limit: Some(secs(seconds)), ..known(id, memory) };
    for (id, memory, seconds) in [(1, 5_000, 5_000), (2, 30_000, 1_000), (3, 30_000, 1_500), (4, 30_000, 1_500)] {
        lab.submit(limited(id, memory, seconds));
        lab.settle(id, memory);
    }
    assert_eq!(lab.submit(JobSpec { gpus: 2, ..known(5, 20_000) }), []);
    let kept = lab.scheduler.head_reservation().unwrap();
    assert_eq!(kept.devices, [gpu(0), gpu(1)], "there only one of two GPUs has to lose a job");
}

#[test]
fn backfill_looks_further_once_a_job_has_passed() {
    let settings = Settings {
        queue: Some(QueueSettings { backfill: Some(1.0), ..QueueSettings::default() }),
        preset: Some(Preset::Standard),
        ..Settings::default()
    };
    let mut lab = Lab::new(settings.check().unwrap(), 3);
    lab.submit(limited(1, 1, 100));
    lab.event(Event::HostShort { server: ServerId(0) });
    lab.submit(JobSpec { gpus: 3, ..exclusive(2) });
    lab.submit(limited(3, 1, 10));
    lab.submit(limited(4, 1, 10));
    assert_eq!(launches(&lab.event(Event::HostRecovered { server: ServerId(0) })), [(3, vec![1]), (4, vec![2])]);
}

#[test]
fn arrays_whose_members_allow_different_numbers() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 4);
    let member = |id, most| JobSpec { array: Some(ArrayMember { array: ArrayId(1), index: 0, at_most: Some(most) }), ..exclusive(id) };
    for (id, most) in [(1, 3), (2, 3), (3, 3), (4, 1), (5, 3)] {
        lab.submit(member(id, most));
    }
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(5, vec![0])], "job 4 wants to be the only one");
}

#[test]
fn backfill_has_a_depth() {
    let settings = Settings {
        queue: Some(QueueSettings { backfill: Some(2.0), ..QueueSettings::default() }),
        preset: Some(Preset::Standard),
        ..Settings::default()
    };
    let mut lab = Lab::new(settings.check().unwrap(), 2);
    lab.submit(limited(1, 1, 100));
    lab.submit(JobSpec { gpus: 2, ..exclusive(2) });
    lab.submit(limited(3, 1, 200));
    lab.submit(limited(4, 1, 200));
    assert_eq!(lab.submit(limited(5, 1, 10)), [], "third behind the head");
    assert_eq!(launches(&lab.event(Event::JobCancelled { job: JobId(4) })), [(5, vec![1])]);
}

#[test]
fn memory_is_reserved_for_a_sharing_head_where_it_is_free_first() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 2);
    lab.submit(JobSpec { time_limit: Some(secs(300)), ..known(1, 35_000) });
    lab.submit(JobSpec { time_limit: Some(secs(200)), ..known(2, 30_000) });
    lab.settle(1, 100);
    lab.settle(2, 100);
    assert_eq!(lab.submit(known(3, 20_000)), []);
    let kept = lab.scheduler.head_reservation().unwrap();
    assert_eq!((&kept.devices[..], kept.from), (&[gpu(1)][..], Some(Time::from_secs(1200))));
    assert_eq!(lab.submit(known(4, 4_000)), [(4, vec![0])], "GPU 0 is not kept");
    assert_eq!(lab.submit(JobSpec { time_limit: Some(secs(139)), ..known(5, 9_000) }), [], "until 1201");
    assert_eq!(lab.submit(JobSpec { time_limit: Some(secs(138)), ..known(6, 9_000) }), [(6, vec![1])], "until 1200");
}
