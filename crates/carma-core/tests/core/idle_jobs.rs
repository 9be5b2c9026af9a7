//! Jobs that hold a GPU without using it: flagged, lent, and active again.

use carma_core::*;

use crate::lab::{Lab, gpu, known, launches, secs, share};

fn rules() -> Config {
    let idle_jobs = IdleJobConfig { below: share(0.05), flag_after: Some(secs(600)), lend_after: Some(secs(1800)) };
    Config { idle_jobs, ..Config::from(Preset::Standard) }
}

/// A job that wanted a GPU for itself, has 9,000 MiB of it, and stops working after a while.
fn idle_lab() -> Lab {
    let mut lab = Lab::new(rules(), 1);
    lab.submit(JobSpec { exclusive: true, ..known(1, 10_000) });
    lab.settle(1, 9_000);
    lab.load(0, 9_000, 0.8);
    lab.wait(3_600);
    lab.load(0, 9_000, 0.01);
    lab
}

fn tick(lab: &mut Lab, seconds: u64) -> Vec<Action> {
    lab.now = lab.now + secs(seconds);
    lab.event(Event::Tick)
}

fn lent(lab: &Lab) -> Option<bool> {
    lab.state(1).active().unwrap().idle.map(|idle| idle.lent)
}

#[test]
fn an_idle_job_is_flagged_then_lends_its_gpu_and_keeps_its_memory() {
    let mut lab = idle_lab();
    let since = lab.now;
    assert_eq!(lab.submit(known(2, 4_000)), []);
    assert_eq!(tick(&mut lab, 599), []);
    assert_eq!(tick(&mut lab, 1), [Action::Idle { job: JobId(1), idle: Some(Idle { since, lent: false }) }]);
    let why = lab.scheduler.explain(JobId(2)).unwrap().to_string();
    assert!(why.contains("is held exclusively by job 1") && why.contains("job 1 holds it without using it"), "{why}");
    let actions = tick(&mut lab, 1200);
    assert_eq!(actions[0], Action::Idle { job: JobId(1), idle: Some(Idle { since, lent: true }) });
    assert_eq!(launches(&actions), [(2, vec![0])]);
    let device = lab.scheduler.fleet().device(gpu(0)).unwrap();
    assert_eq!(device.reserved(), MiB(14_000), "its 10,000, no longer the whole GPU, and 4,000");
}

#[test]
fn when_an_idle_job_works_again_no_more_jobs_join() {
    let mut lab = idle_lab();
    lab.submit(known(2, 4_000));
    tick(&mut lab, 1800);
    lab.settle(2, 4_000);
    assert_eq!(lab.load(0, 13_000, 0.5), [], "which job works is unknown, and is taken to be the one that came");
    assert_eq!(lent(&lab), Some(true));
    let attempts = vec![(lab.attempt(1), share(0.6)), (lab.attempt(2), share(0.3))];
    let actions = lab.event(Event::ActivitySeen { device: gpu(0), attempts });
    assert_eq!(actions, [Action::Idle { job: JobId(1), idle: None }]);
    assert_eq!(lab.submit(known(3, 1_000)), []);
    assert_eq!(lab.obstacles(3, 0)[0], Obstacle::HeldExclusively { by: JobId(1) });
    assert!(matches!(lab.state(2), State::Running(_)));
}

#[test]
fn a_job_alone_on_its_gpu_is_active_if_the_gpu_is() {
    let mut lab = idle_lab();
    tick(&mut lab, 700);
    assert_eq!(lent(&lab), Some(false));
    lab.load(0, 9_000, 0.7);
    assert_eq!(lent(&lab), None);
    lab.load(0, 9_000, 0.01);
    assert_eq!(tick(&mut lab, 599), [], "it is counted again");
    assert_eq!(tick(&mut lab, 1).len(), 1);
}

#[test]
fn a_job_of_several_gpus_is_idle_when_all_of_them_are() {
    let mut lab = Lab::new(rules(), 2);
    lab.submit(JobSpec { gpus: 2, ..known(1, 10_000) });
    lab.settle(1, 9_000);
    lab.load(0, 9_000, 0.0);
    lab.load(1, 9_000, 0.5);
    tick(&mut lab, 3_600);
    assert_eq!(lent(&lab), None);
    lab.load(1, 9_000, 0.0);
    tick(&mut lab, 600);
    assert_eq!(lent(&lab), Some(false));
}

#[test]
fn a_restart_keeps_idle_flags() {
    let mut lab = idle_lab();
    lab.submit(known(2, 4_000));
    tick(&mut lab, 1800);
    let jobs = lab.scheduler.jobs().cloned().collect();
    let now = lab.now;
    lab = Lab::new(rules(), 1);
    lab.now = now;
    lab.event(Event::JobsRestored { jobs });
    assert_eq!(lent(&lab), Some(true));
    lab.seen(1, 9_000);
    lab.exit(2, Verdict::Succeeded);
    lab.load(0, 9_000, 0.7);
    assert_eq!(lent(&lab), Some(true), "the window remembers the one that left");
    lab.wait(31);
    lab.load(0, 9_000, 0.7);
    assert_eq!(lent(&lab), None);
}

#[test]
fn a_job_that_never_uses_its_gpu_is_flagged_until_it_does() {
    let mut lab = Lab::new(rules(), 1);
    let since = lab.now;
    lab.submit(known(1, 10_000));
    assert_eq!(tick(&mut lab, 599), []);
    assert_eq!(tick(&mut lab, 1), [Action::Idle { job: JobId(1), idle: Some(Idle { since, lent: false }) }]);
    let jobs = lab.scheduler.jobs().cloned().collect();
    let now = lab.now;
    lab = Lab::new(rules(), 1);
    lab.now = now;
    lab.event(Event::JobsRestored { jobs });
    assert_eq!(lent(&lab), Some(false), "a restart keeps the flag");
    assert!(matches!(lab.state(1), State::Starting(_)), "it is never stopped for that");
    lab.seen(1, 9_000);
    assert_eq!(lent(&lab), None);
    assert!(matches!(lab.state(1), State::Running(_)));
}

#[test]
fn a_job_without_gpus_is_never_idle() {
    let mut lab = Lab::new(rules(), 1);
    lab.submit(JobSpec { gpus: 0, ..JobSpec::new(JobId(1)) });
    assert_eq!(tick(&mut lab, 10_000), []);
}
