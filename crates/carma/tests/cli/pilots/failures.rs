//! What Slurm does to pilots.

use std::fs;
use std::thread;
use std::time::Duration;

use carma_testing::need;
use carma_testing::slurm::Options;

use super::lab::{Lab, is_alive};

/// It checkpoints on TERM, and its second attempt resumes.
const CHECKPOINTS: &str = "file=$CARMA_CHECKPOINT_DIR/step; test -e $file && { echo resumed from $(cat $file); exit 0; }
trap 'echo 42 > $file; exit 143' TERM
sleep 600 & wait";

fn batch_job(lab: &Lab) -> String {
    lab.servers()[0]["batch_job"].as_str().unwrap().to_owned()
}

#[test]
fn a_cancelled_pilot_checkpoints_its_job_which_resumes_on_another() {
    let lab = need!(Lab::new());
    lab.pool(&[]);
    let job = lab.submit(&["--checkpoint"], CHECKPOINTS);
    let other = lab.submit(&[], "test $CARMA_ATTEMPT = 1 && sleep 600; true");
    lab.started(job, 1);
    lab.started(other, 1);
    let first = batch_job(&lab);
    lab.cluster.output("scancel", [&first]);
    assert_eq!((lab.finished(job), lab.finished(other)), (2, 2));
    assert_eq!(lab.text(&["logs", &job.to_string()]), "resumed from 42\n");
    assert_ne!(batch_job(&lab), first);
    let shown = lab.json(&["show", &other.to_string()]);
    assert!(shown.to_string().contains("its server ended"), "{shown}");
}

#[test]
fn usr1_drains_a_pilot() {
    let lab = need!(Lab::new());
    lab.pool(&[]);
    let long = lab.submit(&[], "sleep 6");
    let resumed = lab.submit(&["--checkpoint"], CHECKPOINTS);
    lab.started(long, 1);
    lab.started(resumed, 1);
    lab.cluster.output("scancel", ["-b", "-s", "USR1", &batch_job(&lab)]);
    lab.until("it takes nothing new", || lab.servers().iter().any(|server| server["draining"].is_string()));
    let new = lab.submit(&[], "true");
    assert_eq!(lab.finished(new), 1);
    assert_eq!(lab.finished(resumed), 2, "it resumes on the successor");
    assert_eq!(lab.finished(long), 1, "a job that cannot checkpoint goes on to the end");
}

#[test]
fn a_controller_that_hangs_yields_exactly_one_pilot() {
    let lab = need!(Lab::new());
    lab.pool(&[]);
    lab.cluster.pause_controller();
    let job = lab.submit(&[], "sleep 5");
    // sbatch gives up after ten seconds, and the controller has the request all the same.
    thread::sleep(Duration::from_secs(12));
    let status = lab.text(&["status"]);
    lab.cluster.continue_controller();
    lab.started(job, 1);
    assert_eq!(lab.pilots().len(), 1, "{status}");
    assert_eq!(lab.finished(job), 1);
    let all = lab.cluster.squeue(["-t", "all", "-o", "%j"]);
    assert_eq!(all.iter().filter(|name| name.starts_with("carma-")).count(), 1, "{all:?}");
}

#[test]
fn jobs_continue_while_the_controller_is_down() {
    let mut lab = need!(Lab::new());
    lab.pool(&[]);
    let job = lab.submit(&[], "sleep 20; echo done");
    let process = lab.started(job, 1);
    lab.cluster.kill_controller();
    lab.until("the status says so", || lab.text(&["status"]).contains("the batch system does not answer"));
    assert!(is_alive(process));
    assert_eq!(lab.finished(job), 1);
    lab.cluster.start_controller();
    let next = lab.submit(&[], "true");
    assert_eq!(lab.finished(next), 1);
}

#[test]
fn a_pilot_that_slurm_forgets_is_replaced() {
    let mut lab = need!(Lab::new());
    // It waits, so that it can be lost.
    lab.pool(&["--", "--begin=now+1hour"]);
    let job = lab.submit(&[], "true");
    lab.until("it is requested", || lab.pilots().len() == 1);
    let first = lab.pilots();
    // A controller that loses its state knows no job.
    lab.cluster.kill_controller();
    let state = lab.cluster.folder().join("state");
    fs::read_dir(state).unwrap().flatten().for_each(|entry| drop(fs::remove_file(entry.path())));
    lab.cluster.start_controller();
    lab.until("another one is requested", || lab.pilots().len() == 1 && lab.pilots()[0].split('|').nth(1) != first[0].split('|').nth(1));
    thread::sleep(Duration::from_secs(3));
    assert_eq!(lab.pilots().len(), 1);
    lab.text(&["cancel", &job.to_string()]);
}

#[test]
fn a_pilot_at_its_time_limit_requeues_its_jobs_in_time() {
    let lab = need!(Lab::new());
    // A minute is Slurm's shortest limit.
    lab.pool(&["--time", "1m"]);
    let job = lab.submit(&["--checkpoint"], CHECKPOINTS);
    lab.started(job, 1);
    assert_eq!(lab.finished(job), 2);
    assert_eq!(lab.text(&["logs", &job.to_string()]), "resumed from 42\n");
}

#[test]
fn a_preempted_pilot_requeues_its_jobs() {
    let options = Options::of(1, 2)
        .line("PreemptType=preempt/partition_prio")
        .line("PreemptMode=CANCEL")
        .line("PartitionName=low Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=10")
        .line("PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=9 PreemptMode=OFF");
    let lab = need!(Lab::with(&options));
    lab.pool(&["--partition", "low"]);
    let job = lab.submit(&["--checkpoint"], CHECKPOINTS);
    lab.started(job, 1);
    let first = batch_job(&lab);
    let urgent = lab.cluster.sbatch(["-p", "high", "--gres=gpu:2", "--mem=1G", "--wrap", "sleep 2"]);
    lab.cluster.wait_for(|cluster| cluster.state(urgent) == "COMPLETED");
    assert_eq!(lab.finished(job), 2);
    assert_eq!(lab.text(&["logs", &job.to_string()]), "resumed from 42\n");
    assert_ne!(batch_job(&lab), first);
}

#[test]
fn a_failed_node_ends_its_pilot() {
    let mut lab = need!(Lab::with(&Options::of(2, 2).line("SlurmdTimeout=5")));
    lab.pool(&[]);
    let job = lab.submit(&[], "test $CARMA_ATTEMPT = 1 && sleep 600; true");
    let process = lab.started(job, 1);
    let node = lab.servers()[0]["node"].as_str().unwrap().to_owned();
    // The node is gone with everything on it.
    lab.cluster.kill_node(&node);
    lab.agents().into_iter().for_each(|agent| super::lab::signal(agent, "KILL"));
    lab.until("its job dies", || !is_alive(process));
    assert_eq!(lab.finished(job), 2);
    assert_ne!(lab.servers()[0]["node"].as_str().unwrap(), node);
}
