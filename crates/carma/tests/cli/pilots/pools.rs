//! When pilots are requested, and what they touch.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use carma_testing::need;
use carma_testing::slurm::Options;

use super::lab::Lab;

#[test]
fn a_job_gets_a_pilot_and_an_idle_pilot_is_returned() {
    let lab = need!(Lab::new());
    assert!(lab.text(&["status"]).contains("no GPUs"), "the manager has none of its own");
    let job = lab.submit(&[], "echo to the log; sleep 1");
    assert!(lab.text(&["why", &job.to_string()]).contains("there is none"));
    assert!(lab.pilots().is_empty(), "without a pool nothing is requested");
    lab.pool(&["--time", "10m", "--idle", "2s"]);
    assert!(lab.text(&["pool", "test", "gpu"]).contains("to start at"));
    assert_eq!(lab.finished(job), 1);
    assert_eq!(lab.text(&["logs", &job.to_string()]), "to the log\n");
    let shown = lab.text(&["pool", "show", "gpu"]);
    assert!(shown.contains("GPU memory: 40.0 GiB") && shown.contains("last wait in the queue"), "{shown}");
    lab.until("the idle pilot is returned", || lab.pilots().is_empty() && lab.servers().is_empty());
    lab.until("it is forgotten", || lab.json(&["pool", "show", "gpu"])["pilots"].as_array().unwrap().is_empty());
}

#[test]
fn pilots_on_one_node_use_only_their_own_gpus() {
    shares_a_node(&need!(Lab::new()));
}

/// With device control groups both pilots see GPUs 0 and 1.
#[test]
fn pilots_use_only_their_gpus_where_slurm_constrains_devices() {
    need!(carma_testing::root());
    shares_a_node(&need!(Lab::with(&Options { control_groups: true, ..Options::of(1, 4) })));
}

fn shares_a_node(lab: &Lab) {
    let node = lab.cluster.nodes()[0].clone();
    lab.pool(&["--backlog", "2", "--", "-w", &node]);
    let jobs = [(); 2].map(|()| lab.submit(&["--gpus", "2", "--exclusive"], "sleep 3"));
    let gpus: Vec<BTreeSet<String>> = jobs
        .iter()
        .map(|job| {
            lab.started(*job, 1);
            lab.starts(*job)[0].2.split(',').map(str::to_owned).collect()
        })
        .collect();
    let servers = lab.servers();
    assert_eq!(servers.len(), 2, "{servers:?}");
    assert!(servers.iter().all(|server| server["node"] == node.as_str() && server["gpus"] == 2), "{servers:?}");
    assert_eq!(gpus[0].union(&gpus[1]).count(), 4, "{gpus:?}");
    assert_eq!(jobs.map(|job| lab.finished(job)), [1, 1]);
}

#[test]
fn no_pilot_is_requested_for_a_job_that_it_cannot_run() {
    let lab = need!(Lab::new());
    lab.pool(&["--time", "10m", "--gpu-memory", "40GiB"]);
    let refused = lab.carma(&["submit", "--gpus", "3", "--", "true"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("needs sbatch"), "{error}");
    let long = lab.submit(&["--time", "2h"], "true");
    thread::sleep(Duration::from_secs(2));
    assert!(lab.pilots().is_empty());
    let why = lab.text(&["why", &long.to_string()]);
    assert!(why.contains("pool gpu: a pilot runs for 10 min; the job may need 2 h"), "{why}");
}

#[test]
fn a_pool_whose_pilots_fail_is_paused_and_says_why() {
    let lab = need!(Lab::new());
    lab.text(&["pool", "add", "slurm", "gpu", "--setup", "echo no such module >&2; false"]);
    let job = lab.submit(&[], "true");
    lab.until("the pool is paused", || lab.text(&["pool", "list"]).contains("paused after failures"));
    let status = lab.text(&["status"]);
    assert!(status.contains("pool gpu is paused after failures") && status.contains("no such module"), "{status}");
    assert!(lab.text(&["why", &job.to_string()]).contains("paused after failures"));
    assert!(lab.pilots().is_empty());
    lab.text(&["pool", "remove", "gpu"]);
    lab.until("the pool is gone", || !lab.text(&["pool", "list"]).contains("gpu"));
    lab.pool(&[]);
    assert_eq!(lab.finished(job), 1);
}
