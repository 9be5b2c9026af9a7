//! What jobs are said to have taken, when managers are killed and started again.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use carma_core::JobId;
use carma_manager::api::{JobAction, JobDetail};
use carma_manager::request::JobRequest;

use super::lab::{program, until};
use super::up::ManagerProcess;

/// Emulated GPUs whose minutes pass in seconds.
const SPEED: f64 = 60.0;

/// A job on a GPU until the file exists.
fn until_file(up: &ManagerProcess, gate: &str) -> JobRequest {
    let gate = up.folder().join(gate);
    let mut job = up.shell_job(&format!("until test -e {}; do sleep 0.02; done", gate.display()));
    job.resources.gpus = 1;
    job
}

/// A training job of so many seconds of its GPU.
fn train(up: &ManagerProcess, seconds: u32) -> JobRequest {
    let workload = "--workload efficientnet_cifar100_bs128_20e --memory 5GiB";
    let mut job = up.shell_job(&format!("exec {} emu train {workload} --seconds {seconds}", program().display()));
    job.resources.gpus = 1;
    job
}

/// How long its only attempt ran, in seconds of its GPU.
fn ran(detail: &JobDetail) -> f64 {
    let [attempt] = &detail.attempts[..] else { panic!("{:?}", detail.attempts) };
    (attempt.ended.unwrap().0.checked_sub(attempt.launched.0).unwrap()) as f64 / 1000.0
}

fn starts(up: &ManagerProcess, job: JobId) {
    until(|| up.client().job(&job.0.to_string()).unwrap().state.active().map(drop));
    until(|| up.state().join(format!("attempts/{}/1/shim.pid", job.0)).exists().then_some(()));
}

/// The energy counters of all GPUs.
fn energy(up: &ManagerProcess) -> BTreeMap<String, f64> {
    let page = up.client().metrics().unwrap();
    let lines = page.lines().filter(|line| line.starts_with("carma_gpu_energy_joules_total{"));
    lines.filter_map(|line| line.rsplit_once(' ')).map(|(labels, joules)| (labels.to_owned(), joules.parse().unwrap())).collect()
}

#[test]
fn time_without_a_manager_is_not_charged_to_a_job_that_ended_meanwhile() {
    let mut up = ManagerProcess::new(Some(("1xA100-40GB", 1.0)), "[queue]\nfair_share = true\n");
    let job = up.submit(until_file(&up, "gate"));
    starts(&up, job);
    up.kill();
    fs::write(up.folder().join("gate"), "").unwrap();
    let record = up.state().join(format!("attempts/{}/1/exit.json", job.0));
    until(|| record.exists().then_some(()));
    thread::sleep(Duration::from_secs(8));
    up.start();
    let took = ran(&up.wait_until_done(job));
    let ended: serde_json::Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
    let second =
        |key: &str| ended[key]["secs_since_epoch"].as_u64().unwrap() as f64 + ended[key]["nanos_since_epoch"].as_f64().unwrap() / 1e9;
    let recorded = second("ended") - second("started");
    assert!((recorded - 0.1..recorded + 4.0).contains(&took), "{took} s, and {recorded} s are recorded");
    // Next to nothing is not kept.
    let shares = up.client().shares().unwrap();
    assert!(shares.iter().all(|share| share.gpu_seconds < recorded + 4.0), "{shares:?}");
}

#[test]
fn the_history_has_the_whole_run_time_of_a_job_across_restarts() {
    let mut up = ManagerProcess::new(Some(("1xA100-40GB", SPEED)), "");
    let job = up.submit(until_file(&up, "gate"));
    starts(&up, job);
    let begin = Instant::now();
    thread::sleep(Duration::from_secs(1));
    up.kill();
    thread::sleep(Duration::from_secs(4));
    up.start();
    thread::sleep(Duration::from_secs(1));
    let took = begin.elapsed().as_secs_f64() * SPEED;
    fs::write(up.folder().join("gate"), "").unwrap();
    let recorded = ran(&up.wait_until_done(job));
    assert!(recorded > took - 30.0, "{recorded} s of {took} s");
}

#[test]
fn energy_is_charged_once_and_its_counters_never_go_back_when_managers_are_killed() {
    let mut up = ManagerProcess::new(Some(("1xA100-40GB", SPEED)), "");
    let first = up.submit(train(&up, 900));
    let first = up.wait_until_done(first);
    let second = up.submit(train(&up, 1_000_000));
    starts(&up, second);
    until(|| energy(&up).values().any(|joules| *joules > 0.0).then_some(()));
    let mut before = energy(&up);
    for _ in 0..2 {
        thread::sleep(Duration::from_millis(1500));
        let shown = energy(&up);
        up.kill();
        up.start();
        let after = until(|| Some(energy(&up)).filter(|after| !after.is_empty()));
        for (labels, joules) in before.iter().chain(&shown) {
            assert!(after.get(labels).is_some_and(|after| after >= joules), "{labels}: {joules}, then {after:?}");
        }
        before = after;
    }
    let id = second.0.to_string();
    assert_eq!(up.client().act(&id, &JobAction::Cancel).unwrap().done, [second]);
    let second = up.wait_until_done(second);
    let watts = |detail: &JobDetail| detail.attempts[0].energy.unwrap().0 / ran(detail);
    // The GPU cannot draw more than 400 W.
    assert!((30.0..420.0).contains(&watts(&second)), "{} W, after {} W", watts(&second), watts(&first));
}

#[test]
fn finished_logs_stay_after_a_restart_while_all_logs_fit() {
    let mut up = ManagerProcess::new(None, "[manager.logs]\nsize = 1\nsize_per_user = 3\n");
    let job = up.submit(up.shell_job("echo kept"));
    up.wait_until_done(job);
    let gate = up.folder().join("gate");
    let running = [(); 4].map(|()| up.submit(up.shell_job(&format!("until test -e {}; do sleep 0.02; done", gate.display()))));
    for job in running {
        starts(&up, job);
    }
    up.kill();
    // It goes after logs that are too large.
    let unknown = up.state().join("attempts/99");
    fs::create_dir(&unknown).unwrap();
    up.start();
    until(|| (!unknown.exists()).then_some(()));
    let log = up.state().join(format!("attempts/{}/1/stdout.log", job.0));
    assert_eq!(fs::read_to_string(log).unwrap(), "kept\n", "{}", up.log_text());
    fs::write(gate, "").unwrap();
    for job in running {
        up.wait_until_done(job);
    }
}
