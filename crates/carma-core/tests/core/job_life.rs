//! The life of a job: held, started, stopped, changed, ended.

use carma_core::*;

use crate::lab::{Lab, Launched, gpu, job, known, launches, secs};

fn signals(actions: &[Action]) -> Vec<(Signal, StopReason)> {
    let signal = |action: &Action| match action {
        Action::Signal { signal, reason, .. } => Some((*signal, *reason)),
        _ => None,
    };
    actions.iter().filter_map(signal).collect()
}

#[test]
fn from_submission_to_success() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(known(1, 1_000));
    assert_eq!(lab.state(1).name(), "starting");
    lab.seen(1, 900);
    assert_eq!(lab.state(1).name(), "running");
    let attempt = lab.attempt(1);
    lab.event(Event::Progress { attempt, done: Fraction::clamped(0.5) });
    lab.event(Event::Checkpointed { attempt });
    lab.event(Event::Progress { attempt, done: Fraction::clamped(0.75) });
    let known = lab.scheduler.job(JobId(1)).unwrap();
    assert_eq!((known.progress, known.checkpointed_at), (Some(Fraction::clamped(0.75)), Some(lab.now)));
    assert_eq!(known.saved_progress, Some(Fraction::clamped(0.5)), "what came after is in no checkpoint");
    assert_eq!(lab.exit(1, Verdict::Succeeded), [Action::Finish { job: JobId(1), outcome: Outcome::Succeeded }]);
    assert_eq!(lab.scheduler.next_wakeup(), None);
}

#[test]
fn jobs_without_gpus_are_not_blocked_by_gpus() {
    let mut lab = Lab { scheduler: Scheduler::new(Config::from(Preset::Standard)), now: Time::from_secs(1) };
    lab.event(Event::ServerAttached(ServerSpec { cpu_jobs: Some(2), ..ServerSpec::new(ServerId(0)) }));
    assert_eq!(lab.submit(job(1)), [], "there is no GPU");
    let cpu = |id| JobSpec { gpus: 0, ..job(id) };
    assert_eq!(lab.submit(cpu(2)), [(2, vec![])]);
    assert_eq!(lab.state(2).name(), "running");
    assert_eq!(lab.submit(cpu(3)), [(3, vec![])]);
    assert_eq!(lab.submit(cpu(4)), [], "the host takes two");
    assert_eq!(launches(&lab.exit(2, Verdict::Succeeded)), [(4, vec![])]);
}

fn estimated(lab: &mut Lab, id: u64, memory: u64) -> Vec<Launched> {
    let memory = Some(PerRank::Same(MemoryEstimate::exactly(MiB(memory))));
    launches(&lab.event(Event::EstimateReady { job: JobId(id), estimate: Box::new(Estimate { memory, ..Estimate::default() }) }))
}

#[test]
fn a_job_is_queued_when_its_estimate_is_ready() {
    let mut lab = Lab::new(Config::default(), 2);
    let waits = |id| JobSpec { awaits_estimate: true, ..job(id) };
    assert_eq!(lab.submit(waits(1)), []);
    assert_eq!(lab.scheduler.explain(JobId(1)).unwrap().to_string(), "job 1 is being estimated");
    assert_eq!(lab.scheduler.queue().count(), 0, "it blocks no job");
    assert_eq!(lab.submit(job(2)), [(2, vec![0])]);
    assert_eq!(estimated(&mut lab, 1, 9_000), [(1, vec![1])]);
    assert_eq!(estimated(&mut lab, 1, 9_500), [], "a later estimate changes nothing about where it runs");
}

#[test]
fn a_held_job_whose_estimate_arrives_stays_held() {
    let mut lab = Lab::new(Config::default(), 4);
    let waits = |id| JobSpec { awaits_estimate: true, ..job(id) };
    lab.submit(waits(1));
    lab.event(Event::JobHeld { job: JobId(1) });
    assert_eq!(lab.scheduler.explain(JobId(1)).unwrap().reason, WaitReason::Held);
    assert_eq!(estimated(&mut lab, 1, 9_000), []);
    assert_eq!(*lab.state(1), State::Held { since: lab.now, resumes: Resumes::Queued });
    assert_eq!(launches(&lab.event(Event::JobReleased { job: JobId(1) })), [(1, vec![0])]);
    // Released before its estimate arrives, it waits for that again.
    lab.submit(JobSpec { hold: true, ..waits(2) });
    lab.event(Event::JobReleased { job: JobId(2) });
    assert_eq!(*lab.state(2), State::Estimating { since: lab.now });
    assert_eq!(estimated(&mut lab, 2, 9_000), [(2, vec![1])]);
    // A job that is not held starts without its estimate when it is released.
    lab.submit(waits(3));
    assert_eq!(launches(&lab.event(Event::JobReleased { job: JobId(3) })), [(3, vec![2])]);
    // It can be cancelled like any other.
    lab.submit(waits(4));
    lab.event(Event::JobCancelled { job: JobId(4) });
    assert_eq!(*lab.outcome(4), Outcome::Cancelled);
}

#[test]
fn an_estimated_job_returns_to_its_former_state() {
    let mut lab = Lab::new(Config::default(), 1);
    lab.submit(JobSpec { awaits_estimate: true, ..job(1) });
    lab.submit(JobSpec { awaits_estimate: true, hold: true, ..job(2) });
    let jobs: Vec<Job> = lab.scheduler.jobs().cloned().collect();
    let written = serde_json::to_string(&jobs).unwrap();
    assert!(written.contains(r#""state":"estimating""#) && written.contains(r#""resumes":"estimating""#), "{written}");
    let mut after = Lab::new(Config::default(), 1);
    assert_eq!(after.event(Event::JobsRestored { jobs: serde_json::from_str(&written).unwrap() }), []);
    assert_eq!((after.state(1), after.state(2)), (lab.state(1), lab.state(2)));
    assert_eq!(estimated(&mut after, 1, 9_000), [(1, vec![0])]);
    let held: State = serde_json::from_str(r#"{"state":"held","since":5.0,"resumes":"recovering"}"#).unwrap();
    assert_eq!(held, State::Held { since: Time::from_secs(5), resumes: Resumes::Recovering }, "as written before");
}

#[test]
fn hold_and_release() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    assert_eq!(lab.submit(JobSpec { hold: true, ..job(1) }), []);
    assert_eq!(lab.scheduler.explain(JobId(1)).unwrap().reason, WaitReason::Held);
    assert_eq!(lab.submit(job(2)), [(2, vec![0])], "a held job blocks no other");
    assert_eq!(lab.refused(Event::JobHeld { job: JobId(2) }), "job 2: the job is starting and cannot be held");
    assert_eq!(lab.refused(Event::JobReleased { job: JobId(2) }), "job 2: the job is starting and cannot be released");
    lab.exit(2, Verdict::Succeeded);
    assert_eq!(launches(&lab.event(Event::JobReleased { job: JobId(1) })), [(1, vec![0])]);
}

#[test]
fn a_job_with_a_start_time_starts_then() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    let begin = lab.now + secs(60);
    assert_eq!(lab.submit(JobSpec { begin: Some(begin), ..job(1) }), []);
    assert_eq!(lab.scheduler.explain(JobId(1)).unwrap().reason, WaitReason::NotBefore { begin });
    assert_eq!(lab.scheduler.next_wakeup(), Some(begin));
    assert_eq!(lab.wait(59), []);
    assert_eq!(lab.wait(1), [(1, vec![0])]);
}

#[test]
fn a_start_time_follows_the_wall_clock() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    let begin = lab.now + secs(60);
    lab.submit(JobSpec { begin: Some(begin), ..job(1) });
    assert_eq!(lab.event(Event::BeginMoved { job: JobId(1), begin: begin + secs(86_400) }), [], "the wall clock was set back");
    assert_eq!(lab.wait(3600), [], "the old time means nothing");
    assert_eq!(launches(&lab.event(Event::BeginMoved { job: JobId(1), begin: lab.now })), [(1, vec![0])], "it was set forward");
    lab.event(Event::BeginMoved { job: JobId(1), begin: lab.now + secs(10) });
    lab.exit(1, Verdict::Succeeded);
    assert_eq!(*lab.outcome(1), Outcome::Succeeded, "a running job does not mind");
    assert_eq!(lab.refused(Event::BeginMoved { job: JobId(1), begin }), "job 1: the job is done and cannot be changed");
}

#[test]
fn a_waiting_job_is_cancelled_at_once_and_a_running_one_is_signalled() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(job(1));
    lab.submit(JobSpec { exclusive: true, ..job(2) });
    let cancelled = Action::Finish { job: JobId(2), outcome: Outcome::Cancelled };
    assert_eq!(lab.event(Event::JobCancelled { job: JobId(2) }), [cancelled]);
    let actions = lab.event(Event::JobCancelled { job: JobId(1) });
    assert_eq!(signals(&actions), [(Signal::Terminate, StopReason::Cancelled)]);
    assert_eq!(signals(&lab.event(Event::JobCancelled { job: JobId(1) })), [], "once is enough");
    lab.now = lab.now + secs(30);
    let killed = lab.event(Event::Tick);
    assert_eq!(signals(&killed), [(Signal::Kill, StopReason::Cancelled)], "after the grace");
    lab.exit(1, Verdict::Failed { code: 137 });
    assert_eq!(*lab.outcome(1), Outcome::Cancelled);
    assert_eq!(lab.refused(Event::JobCancelled { job: JobId(1) }), "job 1: the job is done and cannot be cancelled");
}

#[test]
fn success_counts_despite_a_simultaneous_cancel() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(job(1));
    lab.event(Event::JobCancelled { job: JobId(1) });
    lab.exit(1, Verdict::Succeeded);
    assert_eq!(*lab.outcome(1), Outcome::Succeeded);
}

#[test]
fn a_time_limit_ends_the_attempt() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(JobSpec { time_limit: Some(secs(100)), ..job(1) });
    lab.now = lab.now + secs(99);
    assert_eq!(lab.event(Event::Tick), []);
    lab.now = lab.now + secs(1);
    let stopped = lab.event(Event::Tick);
    assert_eq!(signals(&stopped), [(Signal::Terminate, StopReason::TimeLimit)]);
    lab.exit(1, Verdict::Failed { code: 143 });
    assert_eq!(*lab.outcome(1), Outcome::TimeLimit);
}

#[test]
fn a_changed_limit_moves_the_end_of_a_running_attempt() {
    let change = |time_limit| Event::JobChanged { job: JobId(1), priority: None, time_limit };
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(JobSpec { time_limit: Some(secs(100)), ..job(1) });
    lab.event(change(LimitChange::Set(secs(200))));
    lab.now = lab.now + secs(150);
    assert_eq!(signals(&lab.event(Event::Tick)), []);
    lab.event(change(LimitChange::Remove));
    lab.now = lab.now + secs(150);
    assert_eq!(signals(&lab.event(Event::Tick)), []);
    let at_once = lab.event(change(LimitChange::Set(secs(10))));
    assert_eq!(signals(&at_once), [(Signal::Terminate, StopReason::TimeLimit)]);
    assert_eq!(lab.refused(change(LimitChange::Set(Seconds::ZERO))), "job 1 cannot be accepted: a time limit must be more than 0 s");
}

#[test]
fn a_requeued_job_checkpoints_if_it_can_and_is_next() {
    let mut lab = Lab::with_policy(Preset::Standard, "exclusive", 1);
    lab.submit(JobSpec { may_checkpoint: true, ..job(1) });
    lab.submit(job(2));
    let actions = lab.event(Event::JobRequeued { job: JobId(1) });
    assert_eq!(signals(&actions), [(Signal::Checkpoint, StopReason::Requeued)]);
    let actions = lab.exit(1, Verdict::Failed { code: 0 });
    let requeued = Action::Requeue { job: JobId(1), floor: MiB(0), whole_gpu: false, reason: RequeueReason::Requested };
    assert_eq!(actions[0], requeued);
    assert_eq!(launches(&actions), [(1, vec![0])], "it kept its place, so it resumes before job 2");
    assert_eq!(lab.attempt(1).number, 2);
    assert_eq!(lab.refused(Event::JobRequeued { job: JobId(2) }), "job 2: the job is queued and cannot be requeued");
}

#[test]
fn ordinary_failures_are_retried_only_if_requested() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(JobSpec { retries: RetryBudget { failure: 1, ..RetryBudget::default() }, ..job(1) });
    let again = lab.exit(1, Verdict::Failed { code: 3 });
    assert_eq!(launches(&again), [(1, vec![0])]);
    let ended = lab.exit(1, Verdict::Failed { code: 4 });
    assert_eq!(ended, [Action::Finish { job: JobId(1), outcome: Outcome::Failed { code: 4 } }]);
    for (id, verdict, outcome) in [
        (2, Verdict::HostOutOfMemory, Outcome::HostOutOfMemory),
        (3, Verdict::SupervisorLost, Outcome::SupervisorLost),
        (4, Verdict::Failed { code: 2 }, Outcome::Failed { code: 2 }),
    ] {
        lab.submit(job(id));
        lab.exit(id, verdict);
        assert_eq!(*lab.outcome(id), outcome);
    }
}

#[test]
fn a_launch_that_fails_says_why() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(job(1));
    let attempt = lab.attempt(1);
    lab.event(Event::LaunchFailed { attempt, reason: "no such file: train.py".into() });
    assert_eq!(lab.outcome(1).to_string(), "could not start: no such file: train.py");
    assert!(lab.scheduler.fleet().device(gpu(0)).unwrap().tenants.is_empty());
}

#[test]
fn events_of_an_attempt_that_is_not_running_are_refused() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(JobSpec { retries: RetryBudget { failure: 1, ..RetryBudget::default() }, ..job(1) });
    let first = lab.attempt(1);
    lab.exit(1, Verdict::Failed { code: 1 });
    let late = Event::JobExited { attempt: first, verdict: Verdict::Succeeded };
    assert_eq!(lab.refused(late), "job 1 attempt 1 is not running");
    let done = Fraction::ONE;
    assert_eq!(lab.refused(Event::Progress { attempt: first, done }), "job 1 attempt 1 is not running");
    let unknown = AttemptId { job: JobId(9), number: 1 };
    assert_eq!(lab.refused(Event::Checkpointed { attempt: unknown }), "job 9 is not known");
    assert_eq!(lab.refused(Event::JobCancelled { job: JobId(9) }), "job 9 is not known");
}

#[test]
fn invalid_requests_are_refused() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    let submit = |spec| Event::JobSubmitted(Box::new(spec));
    let per_rank = MemoryNeed { known: Some(PerRank::Each(vec![MiB(1); 3])), estimated: None };
    for (spec, message) in [
        (
            JobSpec { gpus: 2, memory: per_rank, ..job(1) },
            "job 1 cannot be accepted: known memory lists 3 ranks, but the job has 2: give one value, or one for each rank",
        ),
        (
            JobSpec { memory: MemoryNeed::estimated(MiB(9), MiB(8)), ..job(1) },
            "job 1 cannot be accepted: the estimate's upper bound 8 MiB is below the expected 9 MiB",
        ),
        (
            JobSpec { dependencies: vec![Dependency { job: JobId(1), condition: Condition::Any }], ..job(1) },
            "job 1 cannot be accepted: a job cannot depend on itself",
        ),
        (JobSpec { gpus: 3_000_000, ..job(1) }, "job 1 cannot be accepted: 3000000 GPUs are too many for one job: give 0 to 16384"),
        (
            JobSpec { array: Some(ArrayMember { array: ArrayId(1), index: 0, at_most: Some(0) }), ..job(1) },
            "job 1 cannot be accepted: an array must allow at least 1 job at once",
        ),
        (
            JobSpec { dependencies: vec![Dependency { job: JobId(5), condition: Condition::Ok }], ..job(1) },
            "job 1 depends on job 5, which is not known",
        ),
    ] {
        assert_eq!(lab.refused(submit(spec)), message);
    }
    lab.submit(job(1));
    assert_eq!(lab.refused(submit(job(1))), "job 1 exists already");
}

#[test]
fn an_estimate_changes_the_request_of_a_waiting_job() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.load(0, 20_000, 0.1);
    lab.submit(known(1, 20_000));
    assert_eq!(lab.state(1).name(), "queued");
    assert_eq!(lab.submit(job(2)), [], "behind job 1, and nothing is known of when it can start");
    let estimate = |memory| Box::new(Estimate { memory: Some(PerRank::Same(memory)), ..Estimate::default() });
    let wrong = MemoryEstimate { expected: MiB(2), upper: MiB(1) };
    let refused = lab.refused(Event::EstimateReady { job: JobId(2), estimate: estimate(wrong) });
    assert_eq!(refused, "job 2 cannot be accepted: the estimate's upper bound 1 MiB is below the expected 2 MiB");
    lab.event(Event::EstimateReady { job: JobId(2), estimate: estimate(MemoryEstimate::exactly(MiB(30_000))) });
    lab.event(Event::JobCancelled { job: JobId(1) });
    assert_eq!(lab.obstacles(2, 0), [Obstacle::Memory { needed: MiB(31_024), available: MiB(20_448) }]);
    lab.event(Event::JobCancelled { job: JobId(2) });
    let late = Event::EstimateReady { job: JobId(2), estimate: estimate(MemoryEstimate::exactly(MiB(1))) };
    assert_eq!(lab.refused(late), "job 2: the job is done and cannot be changed");
}

#[test]
fn an_estimate_above_every_gpu_requests_the_largest_one() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    assert_eq!(lab.submit(known(1, 41_000)), []);
    let too_large = WaitReason::TooLarge { gpus: 1, memory: MiB(41_000), largest: MiB(40_960), most: 1 };
    assert_eq!(lab.scheduler.explain(JobId(1)).unwrap().reason, too_large);
    let estimated = JobSpec { memory: MemoryNeed::estimated(MiB(41_000), MiB(50_000)), ..job(2) };
    assert_eq!(lab.submit(estimated), [(2, vec![0])], "estimates err; it also shows that job 1 blocks no other");
    let large = DeviceSpec::new(gpu(1), MiB(81_920));
    lab.event(Event::GpuAttached(large));
    let sample = Sample::new(lab.now, MiB(0));
    assert_eq!(launches(&lab.event(Event::GpuSampled { device: gpu(1), sample })), [(1, vec![1])], "tried again when a larger GPU comes");
}

#[test]
fn a_wide_estimate_is_compared_with_as_many_gpus() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 2);
    lab.attach(DeviceSpec::new(gpu(2), MiB(81_920)));
    let memory = MemoryNeed::estimated(MiB(50_000), MiB(60_000));
    assert_eq!(lab.submit(JobSpec { gpus: 2, memory, ..job(1) }), [(1, vec![0, 1])], "one GPU has 60,000 MiB, two have 40,960");
}

#[test]
fn finished_jobs_can_be_forgotten() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(job(1));
    assert_eq!(lab.refused(Event::JobForgotten { job: JobId(1) }), "job 1 cannot be deleted: it has not ended, or other jobs depend on it");
    lab.exit(1, Verdict::Succeeded);
    lab.event(Event::JobForgotten { job: JobId(1) });
    assert!(lab.scheduler.job(JobId(1)).is_none());
}

#[test]
fn time_never_runs_backwards() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    let then = lab.now;
    lab.wait(100);
    lab.now = then;
    lab.submit(job(1));
    assert_eq!(lab.state(1).active().unwrap().launched_at, then + secs(100));
}

#[test]
fn restored_jobs_keep_their_gpus() {
    let gpu = DeviceId::gpu(ServerId(0), 0);
    let now = Time::from_secs(10);
    let started = || {
        let mut scheduler = Scheduler::new(Config::from(Preset::Standard));
        scheduler.handle(Event::ServerAttached(ServerSpec::new(ServerId(0))), now).unwrap();
        scheduler.handle(Event::GpuAttached(DeviceSpec::new(gpu, MiB(40_960))), now).unwrap();
        scheduler
    };
    let spec = |id| JobSpec { memory: MemoryNeed::known(MiB(30_000)), ..JobSpec::new(JobId(id)) };
    let mut before = started();
    before.handle(Event::GpuSampled { device: gpu, sample: Sample::new(now, MiB(4)) }, now).unwrap();
    for id in [1, 2] {
        before.handle(Event::JobSubmitted(Box::new(spec(id))), now).unwrap();
    }
    let jobs: Vec<Job> = before.jobs().cloned().collect();
    assert!(jobs[0].state.active().is_some() && jobs[1].state.waiting().is_some());
    let mut after = started();
    // The one that waits is named first, and finds the memory reserved all the same.
    let jobs = vec![jobs[1].clone(), jobs[0].clone()];
    assert_eq!(after.handle(Event::JobsRestored { jobs: jobs.clone() }, now).unwrap(), []);
    let later = Time::from_secs(100);
    let sample = Event::GpuSampled { device: gpu, sample: Sample::new(later, MiB(4)) };
    assert_eq!(after.handle(sample, later).unwrap(), [], "no job is placed into reserved memory");
    assert_eq!(after.handle(Event::JobsRestored { jobs: jobs.clone() }, later), Err(EventError::DuplicateJob(JobId(1))));
    let mut without = Scheduler::new(Config::from(Preset::Standard));
    assert_eq!(without.handle(Event::JobsRestored { jobs }, now), Err(EventError::UnknownDevice(gpu)));
}
