//! Attempts that hang or are slow, and GPUs with faults.

use carma_core::*;

use crate::lab::{Lab, gpu, known, secs, share};

const HANGING: Stall = Stall::Hanging { since: Time::ZERO };

fn lab(on_hang: OnHang, may_checkpoint: bool) -> Lab {
    let mut lab = Lab::new(Config::from(Preset::Standard), 2);
    lab.submit(JobSpec { on_hang, may_checkpoint, ..known(1, 10_000) });
    lab.settle(1, 9_000);
    lab
}

fn stall(lab: &mut Lab, stall: impl Into<Option<Stall>>) -> Vec<Action> {
    lab.event(Event::StallSeen { attempt: lab.attempt(1), stall: stall.into() })
}

fn told(stall: impl Into<Option<Stall>>) -> Action {
    Action::Stall { job: JobId(1), stall: stall.into() }
}

fn stopped(lab: &Lab, signal: Signal) -> Action {
    Action::Signal { attempt: lab.attempt(1), signal, reason: StopReason::Hanging }
}

#[test]
fn a_stall_is_reported_once_and_cleared() {
    let mut lab = lab(OnHang::Report, true);
    let slow = Stall::Slow { since: Time::ZERO, speed: share(0.2) };
    assert_eq!(stall(&mut lab, slow), [told(slow)]);
    assert_eq!(stall(&mut lab, slow), []);
    assert_eq!(stall(&mut lab, HANGING), [told(HANGING)]);
    assert_eq!(lab.state(1).active().unwrap().stall, Some(HANGING));
    assert_eq!(stall(&mut lab, None), [told(None)]);
    lab.exit(1, Verdict::Succeeded);
    let attempt = AttemptId { job: JobId(1), number: 1 };
    assert!(lab.refused(Event::StallSeen { attempt, stall: None }).contains("job 1"));
}

#[test]
fn a_hanging_job_restarts_until_its_limit_of_hangs() {
    let mut lab = lab(OnHang::Restart, true);
    let hangs = lab.scheduler.config().recovery.hangs;
    for time in 1..=hangs {
        assert_eq!(stall(&mut lab, HANGING), [told(HANGING), stopped(&lab, Signal::Checkpoint)]);
        let ended = lab.exit(1, Verdict::Hung);
        assert!(matches!(&ended[0], Action::Requeue { reason: RequeueReason::Hung, .. }), "{ended:?}");
        let job = lab.scheduler.job(JobId(1)).unwrap();
        assert_eq!((job.hangs, job.failures, job.displacements), (time, 0, 0));
        lab.settle(1, 9_000);
    }
    stall(&mut lab, HANGING);
    lab.exit(1, Verdict::Hung);
    assert_eq!((lab.outcome(1), lab.outcome(1).kind()), (&Outcome::Hung, "hung"));
}

#[test]
fn a_job_may_fail_when_it_hangs_and_is_killed_after_the_grace_time() {
    let mut lab = lab(OnHang::Fail, false);
    assert_eq!(stall(&mut lab, HANGING), [told(HANGING), stopped(&lab, Signal::Terminate)]);
    lab.now = lab.now + lab.scheduler.config().queue.grace;
    assert_eq!(lab.event(Event::Tick), [stopped(&lab, Signal::Kill)]);
    lab.exit(1, Verdict::Hung);
    assert_eq!(lab.outcome(1), &Outcome::Hung);
}

#[test]
fn a_slow_job_is_never_stopped() {
    let mut lab = lab(OnHang::Fail, true);
    let slow = Stall::Slow { since: Time::ZERO, speed: share(0.2) };
    assert_eq!(stall(&mut lab, slow), [told(slow)]);
    assert_eq!(lab.state(1).active().unwrap().stopping, None);
}

#[test]
fn a_cancellation_overrides_a_hang() {
    let mut lab = lab(OnHang::Restart, false);
    stall(&mut lab, HANGING);
    lab.event(Event::JobCancelled { job: JobId(1) });
    lab.exit(1, Verdict::Failed { code: 143 });
    assert_eq!(lab.outcome(1), &Outcome::Cancelled);
}

#[test]
fn jobs_that_can_checkpoint_leave_a_failing_gpu() {
    let mut lab = lab(OnHang::Report, true);
    lab.submit(known(2, 4_000));
    lab.settle(2, 4_000);
    let device = lab.state(1).active().unwrap().placement.devices[0].device;
    let attempt = lab.attempt(1);
    let moved = Action::Signal { attempt, signal: Signal::Checkpoint, reason: StopReason::Moved };
    assert_eq!(lab.event(Event::GpuFailing { device }), [moved]);
    assert!(lab.scheduler.fleet().device(device).unwrap().drained);
    lab.exit(1, Verdict::Failed { code: 143 });
    lab.wait(secs(60).get() as u64);
    let elsewhere = lab.state(1).active().map(|active| active.placement.devices[0].device);
    assert!(elsewhere.is_none_or(|elsewhere| elsewhere != device), "{elsewhere:?}");
    let other = if device == gpu(0) { gpu(1) } else { gpu(0) };
    assert!(!lab.scheduler.fleet().device(other).unwrap().drained);
}
