//! GPUs that are switched between streams, MPS and MIG while jobs wait.

use carma_core::{DeviceId, JobId, Limits, MiB, Outcome, RequestedMode, ServerId};
use carma_gpu::{Allocation, DEADLINE, Driver, mig};

use super::lab::{Lab, block_on, until};

fn gpu() -> DeviceId {
    DeviceId::gpu(ServerId(0), 0)
}

/// Jobs that wait together: the GPU is drained until all are submitted.
fn together(lab: &Lab, jobs: usize) -> Vec<JobId> {
    block_on(lab.handle().drain(gpu(), true, "me".to_owned())).unwrap();
    let request = || lab.train("--workload efficientnet_cifar100_bs128_20e --seconds 30");
    let jobs = (0..jobs).map(|_| lab.submit(request())).collect();
    block_on(lab.handle().drain(gpu(), false, "me".to_owned())).unwrap();
    jobs
}

fn limits(lab: &Lab, job: JobId) -> Limits {
    assert_eq!(lab.outcome(job), Outcome::Succeeded, "{:#?}", lab.job(job).events);
    lab.job(job).attempts[0].placement.devices[0].limits
}

#[test]
fn an_idle_gpu_gets_an_mps_server_for_jobs_that_gain_by_it_and_keeps_it_after_a_restart() {
    let mut lab = Lab::new("1xA100-40GB", 20.0, "[modes]\nallowed = [\"streams\", \"mps\"]\n");
    for job in together(&lab, 4) {
        assert!(matches!(limits(&lab, job), Limits::Mps { .. }), "{:?}", limits(&lab, job));
    }
    lab.stop();
    lab.start();
    let job = lab.submit(lab.shell("true"));
    assert!(matches!(limits(&lab, job), Limits::Mps { .. }), "{:?}", limits(&lab, job));
}

#[test]
fn a_gpu_without_mig_whose_mps_server_fails_is_not_reported_as_unchanged() {
    let mut lab = Lab::new("1xA100-40GB", 60.0, "[modes]\nallowed = [\"streams\", \"mps\", \"mig\"]\n");
    lab.stop();
    let driver = Driver::open(Some(&lab.machine.library()), DEADLINE).unwrap();
    let uuid = driver.inventory().unwrap().gpus.remove(0).uuid;
    mig::apply(&driver, &uuid, &"3g.20gb,3g.20gb".parse().unwrap()).unwrap();
    std::fs::remove_file(lab.machine.programs().join(carma_gpu::mps::PROGRAM)).unwrap();
    lab.start();
    let mut client = lab.shell("true");
    client.resources.mode = RequestedMode::Mps;
    lab.submit(client);
    let message = |words: &str| lab.reader().events_after(0, 1000).unwrap().iter().any(|stored| stored.text.contains(words));
    until(|| (message("could not be switched to mps") || message("keeps its mode")).then_some(()));
    assert!(!message("keeps its mode"));
    let plain = lab.submit(lab.shell("true"));
    assert_eq!(limits(&lab, plain), Limits::Streams);
    assert!(lab.reader().load().unwrap().machine_changes.is_empty(), "there is nothing to put back");
}

#[test]
fn an_idle_gpu_is_cut_for_jobs_that_gain_by_it_and_made_whole_for_one_that_needs_all_of_it() {
    let rules = "policy = \"exclusive\"\n[modes]\nallowed = [\"streams\", \"mig\"]\nevery = 300\n";
    let lab = Lab::new("1xA100-40GB", 40.0, rules);
    for job in together(&lab, 2) {
        assert!(matches!(limits(&lab, job), Limits::Mig { .. }), "{:?}", limits(&lab, job));
    }
    let mut large = lab.shell("true");
    large.resources.memory = Some(MiB(30_000));
    let large = lab.submit(large);
    assert_eq!(limits(&lab, large), Limits::Streams);
    assert_eq!(lab.job(large).attempts[0].placement.devices[0].device, gpu());
}

#[test]
fn a_partitioned_gpu_that_left_the_allocation_is_restored_when_it_returns() {
    let mut lab = Lab::new("1xA100-40GB", 40.0, "policy = \"exclusive\"\n[modes]\nallowed = [\"streams\", \"mig\"]\nevery = 300\n");
    for job in together(&lab, 2) {
        assert!(matches!(limits(&lab, job), Limits::Mig { .. }), "{:?}", limits(&lab, job));
    }
    let is_cut = |lab: &Lab| lab.machine.with(|state| state.gpus[0].mig != 0).unwrap();
    lab.stop();
    lab.configure("");
    let nothing = Allocation::from_variables(|name| (name == "CUDA_VISIBLE_DEVICES").then(String::new));
    lab.limit(carma_gpu::Limits { allocation: nothing, ..carma_gpu::Limits::default() });
    lab.start();
    assert!(is_cut(&lab), "others may use its instances now");
    lab.stop();
    lab.limit(carma_gpu::Limits::default());
    lab.start();
    until(|| (!is_cut(&lab)).then_some(()));
}
