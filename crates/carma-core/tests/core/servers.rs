//! Servers that come, end at a known time, drain, are lost and go.

use carma_core::*;

use crate::lab::{A100, Lab, gpu, job, known, launches, secs};

const FIRST: ServerId = ServerId(0);
const SECOND: ServerId = ServerId(1);

/// A lab whose server ends after this many seconds.
fn ending_after(seconds: u64, gpus: u16) -> Lab {
    let mut lab = Lab::new(Config::from(Preset::Standard), gpus);
    ends_after(&mut lab, seconds);
    lab
}

fn ends_after(lab: &mut Lab, seconds: u64) -> Vec<Action> {
    let at = Some(lab.now + secs(seconds));
    lab.event(Event::ServerEnds { server: FIRST, at })
}

/// Attaches another server with one GPU that has been watched. It ends after this many seconds, or does not.
fn attach(lab: &mut Lab, server: ServerId, seconds: Option<u64>) -> Vec<Action> {
    let ends = seconds.map(|seconds| lab.now + secs(seconds));
    lab.event(Event::ServerAttached(ServerSpec { ends, ..ServerSpec::new(server) }));
    let device = DeviceId::gpu(server, 0);
    lab.event(Event::GpuAttached(DeviceSpec::new(device, A100)));
    lab.event(Event::GpuWindow { device, window: crate::lab::window(0, 0.0, 0.0, 0.0) })
}

fn limited(id: u64, seconds: u64) -> JobSpec {
    JobSpec { time_limit: Some(secs(seconds)), ..job(id) }
}

fn why(lab: &Lab, id: u64) -> String {
    lab.scheduler.explain(JobId(id)).unwrap().to_string()
}

fn on(lab: &Lab, id: u64) -> ServerId {
    lab.state(id).active().unwrap().placement.server
}

#[test]
fn a_job_starts_where_its_limit_ends_before_the_server() {
    let mut lab = ending_after(100, 3);
    assert_eq!(lab.submit(limited(1, 101)), [], "1 s too long");
    assert_eq!(lab.obstacles(1, 0), [Obstacle::EndsTooSoon { needed: secs(101), left: secs(100) }]);
    assert_eq!(why(&lab, 1).lines().next().unwrap(), "job 1 waits for a server that lasts 101 s: the suitable servers end earlier");
    assert!(why(&lab, 1).contains("its server ends in 100 s, and the job needs 101 s"));
    assert_eq!(lab.submit(limited(2, 100)), [(2, vec![0])], "job 1 blocks no job");
    assert_eq!(lab.submit(JobSpec { may_checkpoint: true, ..limited(3, 5_000) }), [(3, vec![1])], "it can continue elsewhere");
    assert_eq!(lab.submit(job(4)), [(4, vec![2])], "it may end in time");
    let change = Event::JobChanged { job: JobId(1), priority: None, time_limit: LimitChange::Set(secs(100)) };
    lab.exit(2, Verdict::Succeeded);
    assert_eq!(launches(&lab.event(change)), [(1, vec![0])]);
}

#[test]
fn an_extended_server_takes_waiting_jobs() {
    let mut lab = ending_after(100, 1);
    lab.submit(limited(1, 200));
    assert_eq!(launches(&ends_after(&mut lab, 199)), []);
    assert_eq!(launches(&ends_after(&mut lab, 200)), [(1, vec![0])]);
    let mut lab = ending_after(100, 1);
    lab.submit(limited(1, 200));
    assert_eq!(launches(&lab.event(Event::ServerEnds { server: FIRST, at: None })), [(1, vec![0])]);
    assert_eq!(lab.refused(Event::ServerEnds { server: ServerId(9), at: None }), "server 9 is not known");
}

#[test]
fn other_jobs_pass_a_head_that_no_server_lasts_for() {
    let queue = QueueConfig { order: QueueOrder::Submission, backfill: None, ..Config::from(Preset::Standard).queue };
    let mut lab = Lab::new(Config { queue, ..Preset::Standard.into() }, 1);
    ends_after(&mut lab, 100);
    lab.load(0, 39_000, 0.1);
    assert_eq!(lab.submit(JobSpec { time_limit: Some(secs(60)), ..known(1, 9_000) }), [], "too little memory");
    assert_eq!(lab.submit(JobSpec { time_limit: Some(secs(10)), ..known(2, 100) }), [], "the first goes first");
    assert_eq!(lab.wait(40), [], "the server lasts for 60 s");
    assert_eq!(lab.scheduler.next_wakeup(), Some(lab.now + Seconds::TICK));
    assert_eq!(lab.wait(1), [(2, vec![0])]);
    assert!(why(&lab, 1).starts_with("job 1 waits for a server that lasts 60 s"), "{}", why(&lab, 1));
}

#[test]
fn jobs_without_gpus_respect_the_end_of_a_server() {
    let mut lab = ending_after(100, 0);
    let cpu = |id, seconds| JobSpec { gpus: 0, cpus: Some(1), ..limited(id, seconds) };
    assert_eq!(lab.submit(cpu(1, 200)), []);
    assert!(why(&lab, 1).contains("its server ends in 100 s, and the job needs 200 s"));
    assert_eq!(lab.submit(cpu(2, 100)), [(2, vec![])], "the first does not block it");
    lab.event(Event::ServerDraining { server: FIRST });
    assert_eq!(lab.submit(JobSpec { gpus: 0, ..job(3) }), []);
    assert!(why(&lab, 3).ends_with("its server ends soon"), "{}", why(&lab, 3));
    assert_eq!(launches(&attach(&mut lab, SECOND, None)), [], "started when the server came");
    assert_eq!((on(&lab, 1), on(&lab, 3)), (SECOND, SECOND));
}

#[test]
fn a_draining_server_takes_no_jobs_and_moves_those_that_can_checkpoint() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 3);
    lab.submit(JobSpec { may_checkpoint: true, exclusive: true, ..job(1) });
    lab.submit(JobSpec { exclusive: true, ..job(2) });
    let asked = lab.event(Event::ServerDraining { server: FIRST });
    let attempt = lab.attempt(1);
    assert_eq!(asked, [Action::Signal { attempt, signal: Signal::Checkpoint, reason: StopReason::ServerEnding }]);
    assert_eq!(lab.event(Event::ServerDraining { server: FIRST }), [], "asked once");
    assert_eq!(lab.submit(job(3)), []);
    assert_eq!(lab.obstacles(3, 2), [Obstacle::ServerEnding]);
    assert_eq!(why(&lab, 3).lines().next().unwrap(), "job 3 waits for a server: the suitable servers end soon");
    assert!(lab.scheduler.survey().all(|report| report.obstacles.contains(&Obstacle::ServerEnding)));
    let left = lab.exit(1, Verdict::Failed { code: 143 });
    let again = Action::Requeue { job: JobId(1), floor: MiB::ZERO, whole_gpu: false, reason: RequeueReason::ServerEnding };
    assert_eq!(left, [again]);
    assert_eq!(lab.state(1).name(), "preempted");
    let moved = attach(&mut lab, SECOND, None);
    assert_eq!(launches(&moved)[0], (1, vec![0]));
    assert_eq!((on(&lab, 1), on(&lab, 2)), (SECOND, FIRST), "the other goes on");
    assert_eq!((lab.scheduler.job(JobId(1)).unwrap().displacements, lab.scheduler.job(JobId(1)).unwrap().failures), (0, 0));
}

#[test]
fn a_job_that_loses_its_server_is_queued_again_however_often() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(known(1, 5_000));
    lab.exit(1, Verdict::OutOfMemory);
    let before = lab.scheduler.job(JobId(1)).unwrap().climb;
    for _ in 0..50 {
        lab.wait(1);
        let lost = lab.exit(1, Verdict::ServerLost);
        assert!(
            matches!(&lost[0], Action::Requeue { reason: RequeueReason::After(Verdict::ServerLost), floor, .. } if *floor == before.floor)
        );
        assert_eq!(launches(&lost), [(1, vec![0])]);
    }
    let known = lab.scheduler.job(JobId(1)).unwrap();
    assert_eq!((known.displacements, known.failures, known.climb, known.outlasted), (0, 0, before, None));
}

#[test]
fn cancelled_and_timed_out_jobs_are_not_requeued_after_a_lost_server() {
    let mut lab = ending_after(100, 2);
    lab.submit(limited(1, 100));
    lab.submit(limited(2, 50));
    lab.event(Event::JobCancelled { job: JobId(1) });
    lab.exit(1, Verdict::ServerLost);
    assert_eq!(*lab.outcome(1), Outcome::Cancelled);
    lab.wait(50);
    lab.exit(2, Verdict::ServerLost);
    assert_eq!(*lab.outcome(2), Outcome::TimeLimit);
    let mut lab = ending_after(100, 1);
    lab.submit(limited(1, 100));
    lab.now = lab.now + secs(100);
    lab.exit(1, Verdict::ServerLost);
    assert_eq!(*lab.outcome(1), Outcome::TimeLimit, "server and limit ended at once");
}

#[test]
fn a_job_that_outlasted_its_server_gets_one_that_lasts_longer() {
    let mut lab = ending_after(100, 1);
    lab.submit(job(1));
    lab.wait(40);
    lab.exit(1, Verdict::ServerLost);
    assert_eq!(lab.scheduler.job(JobId(1)).unwrap().outlasted, None, "lost before its end: that says nothing");
    lab.wait(60);
    lab.exit(1, Verdict::ServerLost);
    assert_eq!(lab.scheduler.job(JobId(1)).unwrap().outlasted, Some(secs(60)));
    attach(&mut lab, SECOND, Some(60));
    assert_eq!(lab.state(1).name(), "queued", "as long as it ran is not enough");
    let too_soon = Obstacle::EndsTooSoon { needed: secs(60) + Seconds::TICK, left: secs(60) };
    assert!(lab.scheduler.explain(JobId(1)).unwrap().devices[1].obstacles.contains(&too_soon));
    attach(&mut lab, ServerId(2), Some(61));
    assert_eq!(on(&lab, 1), ServerId(2));
    lab.event(Event::ServerDraining { server: ServerId(2) });
    lab.wait(59);
    lab.exit(1, Verdict::ServerLost);
    assert_eq!(lab.scheduler.job(JobId(1)).unwrap().outlasted, Some(secs(60)), "what it is known to need stays");
    attach(&mut lab, ServerId(3), None);
    assert_eq!(on(&lab, 1), ServerId(3));
}

#[test]
fn a_detached_server_is_forgotten() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    attach(&mut lab, SECOND, None);
    let plain = lab.scheduler.fleet().clone();
    for past in 2..40 {
        attach(&mut lab, ServerId(past), Some(100));
        lab.event(Event::ServerDetached { server: ServerId(past) });
        assert_eq!(*lab.scheduler.fleet(), plain, "as if it had never been there");
    }
    lab.submit(JobSpec { exclusive: true, ..job(1) });
    assert_eq!(lab.refused(Event::ServerDetached { server: FIRST }), "server 0 has jobs on it");
    lab.exit(1, Verdict::ServerLost);
    lab.event(Event::HostShort { server: FIRST });
    lab.exit(1, Verdict::ServerLost);
    assert_eq!(on(&lab, 1), SECOND);
    lab.event(Event::ServerDetached { server: FIRST });
    assert_eq!(lab.refused(Event::GpuLost { device: gpu(0) }), "device s0/gpu0 is not known");
    lab.submit(JobSpec { gpus: 0, ..job(2) });
    lab.exit(1, Verdict::Succeeded);
    assert_eq!(lab.refused(Event::ServerDetached { server: SECOND }), "server 1 has jobs on it", "one without GPUs");
    lab.exit(2, Verdict::Succeeded);
    lab.event(Event::ServerDetached { server: SECOND });
    assert_eq!(lab.scheduler.fleet().servers(), []);
}

#[test]
fn without_a_server_jobs_wait() {
    let mut lab = Lab { scheduler: Scheduler::new(Config::from(Preset::Standard)), now: Time::from_secs(1) };
    lab.submit(JobSpec { gpus: 0, ..job(1) });
    lab.submit(JobSpec { gpus: 0, cpus: Some(2), ..job(2) });
    lab.submit(known(3, 9_000));
    lab.submit(JobSpec { gpus: 2, ..job(4) });
    lab.wait(100);
    for id in 1..=4 {
        assert_eq!(why(&lab, id), format!("job {id} waits for a server: there is none"));
    }
    attach(&mut lab, FIRST, None);
    assert_eq!([1, 2, 3].map(|id| on(&lab, id)), [FIRST; 3]);
    assert!(why(&lab, 4).starts_with("job 4 can never start: it needs 2 GPUs"));
    let device = DeviceSpec::new(gpu(1), A100);
    lab.exit(3, Verdict::Succeeded);
    lab.attach(device);
    assert_eq!(on(&lab, 4), FIRST);
}

#[test]
fn round_robin_continues_after_a_lost_server() {
    let mut lab = Lab::with_policy(Preset::Standard, "rr", 1);
    for server in 1..4 {
        attach(&mut lab, ServerId(server), None);
    }
    let alone = |id| JobSpec { exclusive: true, ..job(id) };
    lab.submit(alone(1));
    lab.submit(alone(2));
    lab.exit(1, Verdict::Succeeded);
    lab.exit(2, Verdict::Succeeded);
    lab.event(Event::ServerDetached { server: SECOND });
    lab.submit(alone(3));
    assert_eq!(on(&lab, 3), ServerId(2));
}

#[test]
fn jobs_restored_on_a_draining_server_are_asked_to_leave() {
    let mut lab = ending_after(100, 2);
    lab.submit(JobSpec { may_checkpoint: true, exclusive: true, ..job(1) });
    lab.submit(JobSpec { exclusive: true, ..job(2) });
    lab.wait(10);
    let jobs: Vec<Job> = lab.scheduler.jobs().cloned().collect();
    let mut after = Lab { scheduler: Scheduler::new(Config::from(Preset::Standard)), now: lab.now };
    after.event(Event::ServerAttached(lab.scheduler.fleet().server(FIRST).unwrap().spec.clone()));
    (0..2).for_each(|ordinal| after.attach(DeviceSpec::new(gpu(ordinal), A100)));
    after.event(Event::ServerDraining { server: FIRST });
    let attempt = lab.attempt(1);
    let asked = Action::Signal { attempt, signal: Signal::Checkpoint, reason: StopReason::ServerEnding };
    assert_eq!(after.event(Event::JobsRestored { jobs }), [asked]);
    after.wait(90);
    after.exit(2, Verdict::ServerLost);
    let restored: Job = serde_json::from_str(&serde_json::to_string(after.scheduler.job(JobId(2)).unwrap()).unwrap()).unwrap();
    assert_eq!(restored.outlasted, Some(secs(100)));
}
