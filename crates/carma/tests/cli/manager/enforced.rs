//! A job that takes more GPU memory than it reserved: with limits it fails alone, without them it takes a neighbour down.

use std::fs;

use carma_core::{JobId, MiB, Verdict};
use carma_manager::request::{JobCommand, JobRequest};

use super::lab::{Lab, until};

/// A training process that waits for a file before it takes memory, and keeps it for these seconds.
fn job(lab: &Lab, reserved: u64, takes: &str, file: &str, seconds: u32) -> JobRequest {
    let wait = format!("while ! test -e {}; do sleep 0.02; done", lab.folder().join(file).display());
    let train = lab.train(&format!("--workload resnet18_cifar100_bs128_20e --memory {takes} --seconds {seconds}"));
    let JobCommand::Program(words) = &train.command else { panic!("a program") };
    let mut request = lab.shell(&format!("{wait}; {}", words[2]));
    request.resources.memory = Some(MiB(reserved));
    request
}

fn runs(lab: &Lab, job: JobId) {
    until(|| lab.job(job).job.job.state.active().map(|_| ()));
}

/// First fit goes by reservations alone, so that all three jobs are placed together.
const POLICY: &str = "policy = \"ff\"\n";

/// The verdicts on the first attempts of two good jobs and of one that takes 20 GiB with 5 GiB reserved.
fn verdicts(configuration: &str) -> [Verdict; 3] {
    let lab = Lab::new("1xA100-40GB", 60.0, configuration);
    let good = [(); 2].map(|()| lab.submit(job(&lab, 15 << 10, "14GiB", "good", 60)));
    // It is still there when the others take theirs, also on a busy host.
    let wrong = lab.submit(job(&lab, 5 << 10, "20GiB", "wrong", 900));
    for job in [good[0], good[1], wrong] {
        runs(&lab, job);
    }
    let ended = |job: JobId| lab.job(job).attempts[0].end.clone().map(|end| end.verdict);
    fs::write(lab.folder().join("wrong"), "").unwrap();
    let held = || lab.machine.with(|state| state.contexts().iter().map(|context| context.bytes).max()).unwrap().unwrap_or_default();
    until(|| (held() >= 20 << 30 || ended(wrong).is_some()).then_some(()));
    fs::write(lab.folder().join("good"), "").unwrap();
    [good[0], good[1], wrong].map(|job| until(|| ended(job)))
}

#[test]
fn with_mps_limits_a_wrong_estimate_fails_alone() {
    let [first, second, wrong] = verdicts(&format!("{POLICY}[manager.gpus]\nmps = [\"all\"]\n"));
    assert_eq!((first, second, wrong), (Verdict::Succeeded, Verdict::Succeeded, Verdict::OutOfMemory));
}

#[test]
fn in_streams_without_limits_it_takes_a_neighbour_down() {
    let [first, second, wrong] = verdicts(POLICY);
    assert_eq!(wrong, Verdict::Succeeded);
    assert!([first, second].contains(&Verdict::OutOfMemory), "one of those that kept to their reservation");
}
