//! A manager inside an allocation: it uses the GPUs it was given and no others.

use std::fs;
use std::process::Command;

use carma_core::{JobId, MiB, Outcome, RequestedMode};
use carma_gpu::{DEADLINE, Driver, mig};
use carma_manager::api::JobDetail;
use carma_manager::request::JobRequest;

use super::lab::{program, until};
use super::up::ManagerProcess;

const GPUS: &str = "4xA100-40GB";

/// A manager that is not started yet, with these variables in its environment.
fn allocated(variables: &[(&'static str, &str)]) -> ManagerProcess {
    let mut up = ManagerProcess::stopped(Some((GPUS, 60.0)), "");
    for (name, value) in variables {
        up.set(name, value);
    }
    up
}

fn uuids(up: &ManagerProcess) -> Vec<String> {
    up.machine.as_ref().unwrap().with(|state| state.gpus.iter().map(|gpu| gpu.uuid.get().to_owned()).collect()).unwrap()
}

/// A job that needs most of a GPU's memory, so that two of them never share one.
fn large(up: &ManagerProcess, script: &str) -> JobRequest {
    let mut request = up.shell_job(script);
    (request.resources.gpus, request.resources.memory) = (1, Some(MiB(30_000)));
    // The submitter's value does not reach the job.
    request.environment.insert("CUDA_VISIBLE_DEVICES".to_owned(), "2,3".to_owned());
    request
}

fn gpus_of(detail: &JobDetail) -> Vec<u16> {
    detail.attempts.iter().flat_map(|attempt| &attempt.placement.devices).map(|granted| granted.device.gpu.ordinal).collect()
}

/// Runs six large jobs, and returns their GPUs and the UUIDs that they saw.
fn run_six(up: &ManagerProcess) -> (Vec<u16>, Vec<String>) {
    let [seen, gate] = ["seen", "gate"].map(|name| up.folder().join(name));
    let script = format!("echo $CUDA_VISIBLE_DEVICES >> {}; until test -e {}; do sleep 0.02; done", seen.display(), gate.display());
    let jobs: Vec<JobId> = (0..6).map(|_| up.submit(large(up, &script))).collect();
    // A job per GPU runs until all GPUs have one.
    let mut client = up.client();
    let gpus = u64::from(client.status().unwrap().gpus);
    until(|| (client.status().unwrap().jobs.running == gpus).then_some(()));
    fs::write(gate, "").unwrap();
    let mut placed = Vec::new();
    for job in jobs {
        let detail = up.wait_until_done(job);
        assert_eq!(detail.outcome(), Some(&Outcome::Succeeded));
        placed.extend(gpus_of(&detail));
    }
    placed.sort_unstable();
    placed.dedup();
    let mut seen: Vec<String> = fs::read_to_string(seen).unwrap().lines().map(str::to_owned).collect();
    seen.sort_unstable();
    seen.dedup();
    (placed, seen)
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}

/// The output of `carma status`.
fn status(up: &ManagerProcess) -> String {
    let output = Command::new(program()).arg("status").env("CARMA_SOCKET", up.places().socket).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Lines are wrapped.
    String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn only_gpus_in_cuda_visible_devices_are_used() {
    let mut up = allocated(&[("CUDA_VISIBLE_DEVICES", "0,1")]);
    up.start();
    let (placed, seen) = run_six(&up);
    assert_eq!(placed, [0, 1]);
    assert_eq!(seen, sorted(uuids(&up)[..2].to_vec()));
    let words = "GPUs 2 and 3 are not used: not in CUDA_VISIBLE_DEVICES";
    assert!(status(&up).contains(words) && status(&up).contains("2 GPUs"), "{}", status(&up));
    assert!(up.log_text().contains(words), "{}", up.log_text());
}

#[test]
fn only_gpus_of_the_slurm_job_are_used() {
    // Without SLURM_JOB_ID the list means nothing: it was left by something else.
    for (id, expected) in [("77", vec![1, 2]), ("", vec![0, 1, 2, 3])] {
        let mut up = allocated(&[("SLURM_JOB_ID", id), ("SLURM_JOB_GPUS", "1,2")]);
        up.start();
        assert_eq!(run_six(&up).0, expected, "SLURM_JOB_ID={id}");
        assert_eq!(status(&up).contains("GPUs 0 and 3 are not used: not in this Slurm job (SLURM_JOB_GPUS)"), expected.len() == 2);
    }
}

#[test]
fn a_slurm_job_that_counts_its_gpus_from_zero_gets_its_own() {
    // With ConstrainDevices every job has `0,1`; SLURM_JOB_GPUS has the numbers on the node.
    let mut up = allocated(&[("CUDA_VISIBLE_DEVICES", "0,1"), ("SLURM_JOB_ID", "78"), ("SLURM_JOB_GPUS", "2,3")]);
    up.start();
    assert_eq!(run_six(&up).0, [2, 3]);
}

#[test]
fn a_gpu_is_named_by_its_uuid() {
    let mut up = allocated(&[]);
    let uuid = uuids(&up)[2].clone();
    up.set("CUDA_VISIBLE_DEVICES", uuid.as_str());
    up.start();
    assert_eq!(run_six(&up), (vec![2], vec![uuid]));
}

/// Cuts the first GPU in two, and returns the UUIDs of its instances.
fn cut(up: &ManagerProcess) -> Vec<String> {
    let driver = Driver::open(Some(&up.machine.as_ref().unwrap().library()), DEADLINE).unwrap();
    let gpu = driver.inventory().unwrap().gpus.remove(0).uuid;
    let instances = mig::apply(&driver, &gpu, &"3g.20gb,3g.20gb".parse().unwrap()).unwrap().instances;
    instances.iter().map(|instance| instance.compute[0].uuid.to_string()).collect()
}

#[test]
fn on_a_partitioned_gpu_only_the_allocated_instance_is_used() {
    let mut up = ManagerProcess::stopped(Some((GPUS, 60.0)), "[modes]\nallowed = [\"streams\", \"mps\", \"mig\"]\n");
    let instances = cut(&up);
    up.set("CUDA_VISIBLE_DEVICES", instances[1].as_str());
    up.start();
    let seen = up.folder().join("seen");
    let jobs = [(); 3].map(|()| {
        let mut job = up.shell_job(&format!("echo $CUDA_VISIBLE_DEVICES >> {}", seen.display()));
        job.resources.gpus = 1;
        up.submit(job)
    });
    assert!(jobs.into_iter().all(|job| up.wait_until_done(job).outcome() == Some(&Outcome::Succeeded)));
    assert_eq!(fs::read_to_string(seen).unwrap(), format!("{}\n", instances[1]).repeat(3));
    // To serve this one, the GPU would have to be whole.
    let mut client = up.shell_job("true");
    (client.resources.gpus, client.resources.mode) = (1, RequestedMode::Mps);
    up.submit(client);
    until(|| up.log_text().contains("s0/gpu0 keeps its mode: other processes use its MIG instances").then_some(()));
    assert_eq!(up.machine.as_ref().unwrap().with(|state| state.instances(0).len()).unwrap(), 2);
}

#[test]
fn training_runs_on_the_gpus_of_the_allocation() {
    let mut up = allocated(&[("CUDA_VISIBLE_DEVICES", "3")]);
    up.start();
    let train = "emu train --workload efficientnet_cifar100_bs128_20e --memory 5GiB --seconds 60";
    let detail = up.wait_until_done(up.submit(large(&up, &format!("exec {} {train}", program().display()))));
    assert_eq!((detail.outcome(), gpus_of(&detail)), (Some(&Outcome::Succeeded), vec![3]));
}

#[test]
fn without_any_gpu_in_the_allocation_jobs_for_the_cpu_run() {
    let mut up = allocated(&[("CUDA_VISIBLE_DEVICES", "")]);
    up.start();
    let mut later = large(&up, "true");
    later.schedule.wait_for_hardware = true;
    let waits = up.submit(later);
    assert_eq!(up.wait_until_done(up.submit(up.shell_job("true"))).outcome(), Some(&Outcome::Succeeded));
    assert!(up.client().job(&waits.0.to_string()).unwrap().outcome().is_none());
    assert!(status(&up).contains("0 GPUs"), "{}", status(&up));
    assert!(status(&up).contains("GPUs 0, 1, 2 and 3 are not used: not in CUDA_VISIBLE_DEVICES"), "{}", status(&up));
}

#[test]
fn a_job_on_a_gpu_that_left_the_allocation_is_moved() {
    let mut up = allocated(&[("CUDA_VISIBLE_DEVICES", "2,3")]);
    up.start();
    let end = up.folder().join("end");
    let script = format!("while ! test -e {}; do sleep 0.02; done", end.display());
    let jobs = [(); 2].map(|()| up.submit(large(&up, &script)));
    let mut client = up.client();
    let mut detail = |job: JobId| client.job(&job.0.to_string()).unwrap();
    let job = until(|| jobs.into_iter().find(|job| gpus_of(&detail(*job)) == [3]));
    up.kill();
    up.set("CUDA_VISIBLE_DEVICES", "0,1,2");
    up.start();
    let mut client = up.client();
    let mut placed = || gpus_of(&client.job(&job.0.to_string()).unwrap());
    let placed = until(|| Some(placed()).filter(|placed| placed.len() == 2));
    assert!(placed[1] < 2, "{placed:?}");
    assert!(up.log_text().contains("s0/gpu3 is lost"), "{}", up.log_text());
    fs::write(end, "").unwrap();
    assert_eq!(up.wait_until_done(job).outcome(), Some(&Outcome::Succeeded));
}
