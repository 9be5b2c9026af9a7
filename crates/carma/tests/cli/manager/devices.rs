//! GPUs that cannot be sampled, and GPUs that an administrator repartitions.

use carma_core::{JobId, Outcome, RequestedMode};
use carma_emu::fault::{CallAnswer, Fault, clear, recover_gpu};
use carma_gpu::mig::{self, Layout};
use carma_gpu::{Allocation, DEADLINE, Driver, Limits};

use super::lab::{Lab, block_on, until};

fn fails(lab: &Lab, call: &str) {
    let answer = CallAnswer::Fails("UNKNOWN".parse().unwrap());
    let fault = Fault::Call { gpu: None, call: Some(call.to_owned()), answer };
    lab.machine.with(|state| fault.inject(state)).unwrap().unwrap();
}

fn gpus(lab: &Lab) -> u32 {
    block_on(lab.handle().status()).unwrap().gpus
}

/// A job that holds a GPU until a file exists.
fn held(lab: &Lab) -> JobId {
    let job = lab.submit(lab.shell(&format!("while ! test -e {}; do sleep 0.02; done", lab.folder().join("end").display())));
    until(|| lab.job(job).job.job.state.active().map(|_| ()));
    job
}

#[test]
fn a_gpu_without_a_power_limit_reading_is_used() {
    let mut lab = Lab::new("2xA100-40GB", 60.0, "");
    lab.stop();
    fails(&lab, "nvmlDeviceGetPowerManagementDefaultLimit");
    lab.start();
    assert_eq!(gpus(&lab), 2);
}

#[test]
fn attempts_on_unreadable_gpus_continue() {
    let mut lab = Lab::new("1xA100-40GB", 60.0, "");
    let job = held(&lab);
    lab.stop();
    fails(&lab, "nvmlDeviceGetCount");
    lab.start();
    let problems = block_on(lab.handle().status()).unwrap().problems;
    assert!(problems.iter().any(|problem| problem.contains("cannot be read")), "{problems:?}");
    lab.machine.with(|state| clear(state, None)).unwrap();
    until(|| (gpus(&lab) == 1).then_some(()));
    std::fs::write(lab.folder().join("end"), "").unwrap();
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
    assert_eq!(lab.job(job).attempts.len(), 1, "{:#?}", lab.job(job).events);
}

/// Cuts the GPU as an administrator would.
pub(super) fn cut(lab: &Lab, layout: &Layout) {
    let driver = Driver::open(Some(&lab.machine.library()), DEADLINE).unwrap();
    let gpu = driver.inventory().unwrap().gpus.remove(0).uuid;
    mig::apply(&driver, &gpu, layout).unwrap();
}

#[test]
fn a_destroyed_instance_is_removed_and_its_gpu_used() {
    let mut lab = Lab::new("1xA100-40GB", 60.0, "");
    lab.stop();
    cut(&lab, &"3g.20gb".parse().unwrap());
    lab.start();
    let job = held(&lab);
    lab.stop();
    cut(&lab, &Layout::Off);
    lab.start();
    let placed = until(|| lab.job(job).attempts.get(1).map(|attempt| attempt.placement.devices[0].device));
    assert_eq!(placed.instance, None);
    std::fs::write(lab.folder().join("end"), "").unwrap();
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
}

#[test]
fn a_gpu_that_waits_for_its_mig_instances_takes_no_jobs() {
    let mut lab = Lab::new("2xA100-40GB", 60.0, "");
    lab.stop();
    cut(&lab, &Layout::Instances(Vec::new()));
    lab.start();
    assert_eq!(gpus(&lab), 1);
}

#[test]
fn a_gpu_without_its_mps_daemon_falls_back_to_streams() {
    let mut lab = Lab::new("2xA100-40GB", 60.0, "");
    lab.stop();
    std::fs::remove_file(lab.machine.programs().join(carma_gpu::mps::PROGRAM)).unwrap();
    lab.configure("[manager.gpus]\nmps = [\"1\"]\n");
    lab.start();
    let message = |words: &str| lab.reader().events_after(0, 1000).unwrap().iter().filter(|stored| stored.text.contains(words)).count();
    until(|| (message("no MPS on s0/gpu1") > 0).then_some(()));
    cut(&lab, &"3g.20gb".parse().unwrap());
    until(|| (message("came: ") > 0).then_some(()));
    assert_eq!(message("no MPS on s0/gpu1"), 1, "it is not asked for again with every change of another GPU");
}

#[test]
fn an_mps_daemon_that_is_no_longer_wanted_ends_with_the_last_job_that_uses_it() {
    let mut lab = Lab::new("1xA100-40GB", 60.0, "[manager.gpus]\nmps = [\"all\"]\n");
    let job = held(&lab);
    lab.stop();
    lab.configure("");
    lab.start();
    let daemons = || lab.reader().load().unwrap().machine_changes.len();
    assert_eq!(daemons(), 1, "the job uses it");
    std::fs::write(lab.folder().join("end"), "").unwrap();
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
    until(|| (daemons() == 0).then_some(()));
}

#[test]
fn a_new_mps_gpu_has_its_daemon_before_its_first_job() {
    let mut lab = Lab::new("2xA100-40GB", 60.0, "");
    lab.stop();
    lab.machine.with(|state| Fault::Lost { gpu: 1 }.inject(state)).unwrap().unwrap();
    lab.configure("[manager.gpus]\nmps = [\"1\"]\n");
    lab.start();
    let mut client = lab.shell("test -e $CUDA_MPS_PIPE_DIRECTORY/control");
    client.resources.mode = RequestedMode::Mps;
    let client = lab.submit(client);
    lab.machine.with(|state| recover_gpu(state, 1)).unwrap();
    // Devices are found by it.
    cut(&lab, &"3g.20gb".parse().unwrap());
    assert_eq!(lab.outcome(client), Outcome::Succeeded);
}

#[test]
fn links_are_those_of_the_remaining_gpus() {
    let mut lab = Lab::new("2xA100-40GB,2xRTX-4090-24GB", 60.0, "");
    lab.stop();
    let allocation = Allocation::from_variables(|name| (name == "CUDA_VISIBLE_DEVICES").then(|| "1,2,3".to_owned()));
    lab.limit(Limits { allocation, ..Limits::default() });
    lab.start();
    // The event log is complete after the end.
    lab.stop();
    let record = std::fs::read_to_string(lab.folder().join("record.jsonl.1")).unwrap();
    let attached = record.lines().find(|line| line.contains("\"topology\"")).unwrap();
    assert!(attached.contains(r#""topology":[[1,2,"node"],[1,3,"node"],[2,3,"switches"]]"#), "{attached}");
}
