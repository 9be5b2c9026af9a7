//! A job that takes more GPU memory than it reserved: with limits it fails alone, without them another job fails.

use std::fs;
use std::path::PathBuf;

use carma_core::{JobId, MiB, RequeueReason, Verdict};
use carma_emu::DriverVersion;
use carma_emu::state::MemoryLimits;
use carma_manager::api::{GpuTenant, JobAction};
use carma_manager::event::JobEvent;
use carma_manager::request::{JobCommand, JobRequest};
use carma_manager::store::AttemptEnd;
use carma_testing::need;

use super::lab::{Lab, block_on, until};

const GIB: u64 = 1 << 30;

/// A training process that waits for a file before it takes memory, and keeps it for these seconds.
fn job(lab: &Lab, reserved: u64, takes: &str, file: &str, seconds: u32) -> JobRequest {
    let wait = format!("while ! test -e {}; do sleep 0.02; done", lab.folder().join(file).display());
    let train = lab.train(&format!("--workload resnet18_cifar100_bs128_20e --memory {takes} --seconds {seconds}"));
    let JobCommand::Program(words) = &train.command else { panic!("a program") };
    let mut request = lab.shell(&format!("{wait}; {}", words[2]));
    request.resources.memory = Some(MiB(reserved << 10));
    request
}

fn runs(lab: &Lab, job: JobId) {
    until(|| lab.job(job).job.job.state.active().map(|_| ()));
}

/// How the first attempt of a job ended.
fn first_end(lab: &Lab, job: JobId) -> Option<AttemptEnd> {
    lab.job(job).attempts.first()?.end.clone()
}

fn tenant(lab: &Lab, job: JobId) -> Option<GpuTenant> {
    let gpus = block_on(lab.handle().gpus()).unwrap();
    gpus.into_iter().flat_map(|gpu| gpu.tenants).find(|tenant| tenant.attempt.job == job)
}

/// First fit goes by reservations alone, so that all three jobs are placed together.
const POLICY: &str = "policy = \"ff\"\n";
const HARD: &str = "policy = \"ff\"\n[enforce]\nmemory = \"hard\"\n";

/// Two good jobs, and one that takes 20 GiB with 5 GiB reserved, before the others take theirs.
struct Trio {
    lab: Lab,
    good: [JobId; 2],
    wrong: JobId,
}

impl Trio {
    fn start(lab: Lab, wrong: impl FnOnce(&mut JobRequest)) -> Self {
        let good = [(); 2].map(|()| lab.submit(job(&lab, 15, "14GiB", "good", 60)));
        // It is still there when the others take theirs, also on a busy host.
        let mut request = job(&lab, 5, "20GiB", "wrong", 900);
        wrong(&mut request);
        let trio = Self { good, wrong: lab.submit(request), lab };
        for job in [trio.good[0], trio.good[1], trio.wrong] {
            runs(&trio.lab, job);
        }
        fs::write(trio.lab.folder().join("wrong"), "").unwrap();
        let held = || trio.lab.machine.with(|state| state.contexts().iter().map(|context| context.bytes).max()).unwrap();
        until(|| (held().unwrap_or_default() >= 20 * GIB || first_end(&trio.lab, trio.wrong).is_some()).then_some(()));
        trio
    }

    /// The good jobs take their memory. How the three ended.
    fn ends(&self) -> [AttemptEnd; 3] {
        fs::write(self.lab.folder().join("good"), "").unwrap();
        [self.good[0], self.good[1], self.wrong].map(|job| until(|| first_end(&self.lab, job)))
    }
}

fn verdicts(ends: &[AttemptEnd; 3]) -> [Verdict; 3] {
    ends.each_ref().map(|end| end.verdict.clone())
}

const WRONG_ONE_FAILS: [Verdict; 3] = [Verdict::Succeeded, Verdict::Succeeded, Verdict::OutOfMemory];

#[test]
fn with_mps_limits_a_wrong_estimate_fails_alone() {
    let lab = Lab::new("1xA100-40GB", 60.0, &format!("{POLICY}[manager.gpus]\nmps = [\"all\"]\n"));
    let ends = Trio::start(lab, |_| ()).ends();
    assert_eq!(verdicts(&ends), WRONG_ONE_FAILS);
    let reason = ends[2].reason.as_deref().unwrap();
    assert!(reason.contains("it reached its limit of 5.0 GiB, enforced by MPS"), "{reason}");
}

#[test]
fn without_limits_a_wrong_estimate_fails_another_job() {
    let [first, second, wrong] = verdicts(&Trio::start(Lab::new("1xA100-40GB", 60.0, POLICY), |_| ()).ends());
    assert_eq!(wrong, Verdict::Succeeded);
    assert!([first, second].contains(&Verdict::OutOfMemory), "one of those that kept to their reservation");
}

#[test]
fn with_hard_limits_a_wrong_estimate_fails_alone() {
    let lab = need!(Lab::with_memory_limits("1xA100-40GB", 60.0, HARD));
    let ends = Trio::start(lab, |_| ()).ends();
    assert_eq!(verdicts(&ends), WRONG_ONE_FAILS);
    let reason = ends[2].reason.as_deref().unwrap();
    assert!(reason.contains("it reached its limit of 5.0 GiB, enforced by the driver"), "{reason}");
}

#[test]
fn with_soft_limits_a_job_borrows_until_others_need_memory() {
    let lab = need!(Lab::with_memory_limits("1xA100-40GB", 60.0, POLICY));
    let trio = Trio::start(lab, |_| ());
    let borrower = until(|| tenant(&trio.lab, trio.wrong).filter(|tenant| tenant.borrowed.is_some()));
    assert_eq!((borrower.limit, borrower.reserved), (Some(MiB(40_960)), MiB(5_120)));
    let ends = trio.ends();
    assert_eq!(verdicts(&ends), WRONG_ONE_FAILS, "the driver takes back what it borrowed");
    let reason = ends[2].reason.as_deref().unwrap();
    assert!(reason.contains("it used 15."), "{reason}");
}

#[test]
fn a_borrower_that_can_checkpoint_is_stopped_before_the_driver_evicts_it() {
    let lab = need!(Lab::with_memory_limits("1xA100-40GB", 60.0, POLICY));
    let trio = Trio::start(lab, |wrong| wrong.may_checkpoint = true);
    let end = until(|| first_end(&trio.lab, trio.wrong));
    let reason = end.reason.unwrap();
    assert!(reason.starts_with("it was stopped: it used "), "{reason}");
    let floor = trio.lab.job(trio.wrong).events.into_iter().find_map(|stored| match stored.event.event {
        JobEvent::Requeued { reason: RequeueReason::Borrowed, floor, .. } => floor,
        _ => None,
    });
    // It is stopped when it has taken the first 16 of its 20 GiB.
    assert!(floor >= Some(MiB(18 << 10)), "{floor:?}");
    let [first, second, _] = verdicts(&trio.ends());
    assert_eq!([first, second], [Verdict::Succeeded, Verdict::Succeeded]);
}

/// The control group of a job's first attempt.
fn group(lab: &Lab, job: JobId) -> PathBuf {
    let file = lab.folder().join(format!("attempts/{}/1/shim.pid", job.0));
    let text = until(|| fs::read(&file).ok());
    serde_json::from_slice::<serde_json::Value>(&text).unwrap()["cgroup"].as_str().unwrap().into()
}

#[test]
fn limits_follow_the_reservation_outlive_the_manager_and_end_with_the_attempt() {
    let rules = "policy = \"ff\"\nenforce.memory = \"hard\"\nadmission.trim_after = 20\n";
    let mut lab = need!(Lab::with_memory_limits("1xA100-40GB", 60.0, rules));
    let job = lab.submit(job(&lab, 15, "4GiB", "go", 1_000_000));
    runs(&lab, job);
    let group = group(&lab, job);
    let limits = |lab: &Lab| lab.machine.with(|state| state.memory_limits(0, &group)).unwrap();
    assert_eq!(limits(&lab), Some(MemoryLimits { soft: 15 * GIB, hard: 15 * GIB }), "before it takes anything");
    fs::write(lab.folder().join("go"), "").unwrap();
    let trimmed = until(|| limits(&lab).filter(|limits| limits.soft < 6 * GIB));
    assert_eq!(trimmed.hard, 15 * GIB, "it may still have what it was launched with");
    lab.stop();
    assert_eq!(limits(&lab), Some(trimmed));
    let abandoned = group.with_file_name("carma-4711-1-4000000-1");
    fs::create_dir(&abandoned).unwrap();
    lab.start();
    assert!(!abandoned.exists(), "its maker is gone, and no attempt is in it");
    until(|| tenant(&lab, job));
    assert_eq!(limits(&lab).map(|limits| limits.hard), Some(15 * GIB));
    block_on(lab.handle().act(vec![job], JobAction::Cancel, "me".to_owned())).unwrap();
    until(|| (!group.exists()).then_some(()));
    assert_eq!(limits(&lab), None);
}

#[test]
fn a_job_that_must_be_limited_waits_for_a_driver_that_can() {
    let lab = need!(Lab::with_memory_limits("1xA100-40GB", 60.0, HARD));
    lab.machine.set_driver(DriverVersion::R575).unwrap();
    let job = lab.submit(job(&lab, 15, "4GiB", "go", 10));
    let status = || block_on(lab.handle().status()).unwrap();
    let problem = until(|| status().problems.into_iter().find(|problem| problem.contains("cannot be limited")));
    assert!(problem.contains("enforce.memory is hard"), "{problem}");
    lab.machine.set_driver(DriverVersion::R615).unwrap();
    fs::write(lab.folder().join("go"), "").unwrap();
    assert_eq!(until(|| first_end(&lab, job)).verdict, Verdict::Succeeded);
}

#[test]
fn a_job_that_may_borrow_runs_without_limits_and_says_so() {
    let lab = need!(Lab::with_memory_limits("1xA100-40GB", 60.0, POLICY));
    lab.machine.set_driver(DriverVersion::R575).unwrap();
    fs::write(lab.folder().join("go"), "").unwrap();
    let job = lab.submit(job(&lab, 15, "4GiB", "go", 10));
    assert_eq!(until(|| first_end(&lab, job)).verdict, Verdict::Succeeded);
    let told = |event: &JobEvent| event.text().contains("the memory of job 1");
    let events = lab.job(job).events;
    assert!(events.iter().any(|stored| told(&stored.event.event)), "{events:?}");
}
