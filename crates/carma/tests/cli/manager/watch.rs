//! Jobs that hang, and GPUs with faults that repeat.

use carma_core::{DeviceId, JobId, MiB, OnHang, Outcome, RequeueReason, Stall, State};
use carma_emu::fault::{Fault, ThrottleReason, clear};
use carma_manager::api::{JobAction, QueueQuery};
use carma_manager::request::JobRequest;

use super::lab::{Lab, block_on, me, program, until};

/// Samples are further apart than usual, so that a slow machine makes no gaps.
const RULES: &str =
    "[gate]\nobserve = 1\n[screen]\nenabled = false\n[window]\nperiod = 5\n[manager.gpus]\nperiod = 5\n[manager.watch]\nhang_after = 600\n";

/// A job that works on its GPU until the file exists, and then holds its memory without a word. When it is resumed, it succeeds.
fn hangs_later(lab: &Lab, on_hang: OnHang) -> JobRequest {
    let occupy = format!("{} emu occupy --gpu 0 --memory 4000MiB", program().display());
    let script = format!(
        "test \"$CARMA_ATTEMPT\" = 1 || exit 0; {occupy} --smact 0.5 & while ! test -e {stop}; do sleep 0.02; done; kill $!; wait; {occupy}; exit 1",
        stop = lab.folder().join("stop").display()
    );
    let mut request = lab.shell(&script);
    request.resources.memory = Some(MiB(6000));
    request.on_hang = on_hang;
    request
}

fn stop_working(lab: &Lab, job: JobId) {
    until(|| matches!(lab.job(job).job.job.state, State::Running(_)).then_some(()));
    std::fs::write(lab.folder().join("stop"), "").unwrap();
}

fn stall(lab: &Lab, job: JobId) -> Option<Stall> {
    lab.job(job).job.job.state.active()?.stall
}

fn kinds(lab: &Lab, job: JobId) -> Vec<String> {
    lab.job(job).events.iter().map(|stored| stored.event.event.kind()).collect()
}

#[test]
fn a_job_that_hangs_is_restarted_if_its_user_wants_that() {
    let lab = Lab::new("1xA100-40GB", 60.0, RULES);
    let job = lab.submit(hangs_later(&lab, OnHang::Restart));
    stop_working(&lab, job);
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
    let known = lab.job(job);
    assert_eq!((known.job.job.hangs, known.job.job.failures, known.attempts.len()), (1, 0, 2));
    let requeued = known.events.iter().find(|stored| stored.event.event.kind() == "requeued").unwrap();
    assert_eq!(serde_json::from_value::<RequeueReason>(requeued.event.event.parts().1["reason"].clone()).unwrap(), RequeueReason::Hung);
    let reason = known.attempts[0].end.as_ref().unwrap().reason.clone().unwrap();
    assert!(reason.contains("it hung"), "{reason}");
}

#[test]
fn only_the_hanging_one_of_two_jobs_is_reported() {
    let lab = Lab::new("1xA100-40GB", 60.0, RULES);
    let hangs = lab.submit(hangs_later(&lab, OnHang::Report));
    let occupy = format!("exec {} emu occupy --gpu 0 --memory 4000MiB --smact 0.3", program().display());
    let works = lab.submit(JobRequest { resources: hangs_later(&lab, OnHang::Report).resources, ..lab.shell(&occupy) });
    until(|| matches!(lab.job(works).job.job.state, State::Running(_)).then_some(()));
    stop_working(&lab, hangs);
    let seen = until(|| stall(&lab, hangs));
    assert!(seen.hangs(), "{seen:?}");
    assert_eq!((stall(&lab, works), lab.job(works).attempts.len()), (None, 1), "its neighbour works, also without a word");
    let rows = block_on(lab.handle().queue(QueueQuery::default())).unwrap().jobs;
    let remark = rows.iter().find(|row| row.id == hangs).and_then(|row| row.reason.clone()).unwrap();
    assert!(remark.starts_with("hanging for "), "{remark}");
    assert!(block_on(lab.handle().why(hangs)).unwrap().summary.contains("is hanging"));
    let problems = block_on(lab.handle().status()).unwrap().problems;
    assert!(problems.iter().any(|problem| problem.contains("is hanging")), "{problems:?}");
    assert_eq!(block_on(lab.handle().facts()).unwrap().running.iter().filter(|job| job.stall.is_some()).count(), 1);
    assert_eq!(kinds(&lab, hangs).iter().filter(|kind| *kind == "stall").count(), 1, "it is told of once, and goes on");
    block_on(lab.handle().act(vec![hangs, works], JobAction::Cancel, "me".to_owned())).unwrap();
    assert_eq!(lab.outcome(hangs), Outcome::Cancelled);
}

#[test]
fn a_gpu_with_faults_that_repeat_is_drained_and_its_job_moved() {
    let mut lab = Lab::new("2xA100-40GB", 60.0, RULES);
    let checkpoint = lab.folder().join("checkpoint.json");
    let mut request =
        lab.train(&format!("--workload efficientnet_cifar100_bs128_20e --seconds 100000 --checkpoint {}", checkpoint.display()));
    request.may_checkpoint = true;
    let job = lab.submit(request);
    let on = |lab: &Lab| lab.job(job).job.job.state.active().map(|active| active.placement.devices[0].device);
    until(|| matches!(lab.job(job).job.job.state, State::Running(_)).then_some(()));
    let device = on(&lab).unwrap();
    let gpu = usize::from(device.gpu.ordinal);
    let detail = |lab: &Lab, device: DeviceId| block_on(lab.handle().gpus()).unwrap().into_iter().find(|gpu| gpu.device == device).unwrap();
    for _ in 0..3 {
        assert!(!detail(&lab, device).drained);
        lab.machine.with(|state| Fault::Xid { gpu, code: 119, pid: None }.inject(state)).unwrap().unwrap();
    }
    until(|| detail(&lab, device).drained_for.filter(|faults| faults.starts_with("Xid 119") && faults.contains("3 times")));
    until(|| on(&lab).filter(|now| *now != device));
    assert!(checkpoint.exists(), "it has written how far it was");
    lab.stop();
    lab.start();
    assert!(detail(&lab, device).drained_for.is_some(), "a new manager knows why");
    let problems = block_on(lab.handle().status()).unwrap().problems;
    assert!(problems.iter().any(|problem| problem.contains("is drained because of its faults: Xid 119")), "{problems:?}");
    block_on(lab.handle().drain(device, false, me().name)).unwrap();
    let resumed = detail(&lab, device);
    assert_eq!((resumed.drained, resumed.drained_for), (false, None));
    block_on(lab.handle().act(vec![job], JobAction::Cancel, "me".to_owned())).unwrap();
}

#[test]
fn the_reason_for_throttling_is_shown() {
    let lab = Lab::new("1xA100-40GB", 60.0, RULES);
    let shown = || block_on(lab.handle().gpus()).unwrap()[0].throttling.iter().map(ToString::to_string).collect::<Vec<_>>();
    lab.machine.with(|state| Fault::Throttle { gpu: 0, reason: ThrottleReason::Thermal }.inject(state)).unwrap().unwrap();
    until(|| (shown() == ["thermal"]).then_some(()));
    lab.machine.with(|state| clear(state, None)).unwrap();
    until(|| shown().is_empty().then_some(()));
}
