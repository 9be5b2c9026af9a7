//! The cluster of tests, against what a real Slurm does.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use carma_testing::need;
use carma_testing::slurm::{Cluster, Options};

/// A job that prints its GPUs, and then stays.
const STAYS: &str = "echo $CUDA_VISIBLE_DEVICES; exec sleep 600";

#[test]
fn jobs_outlive_a_killed_controller_and_a_killed_node() {
    let since = Instant::now();
    let mut cluster = need!(Cluster::start(&Options::of(3, 4)));
    assert!(since.elapsed() < Duration::from_secs(10), "it took {:?}", since.elapsed());
    assert_eq!(cluster.nodes(), ["gn0", "gn1", "gn2"]);
    let submit = || cluster.sbatch(["--gres=gpu:2", "-w", "gn0", "--wrap", STAYS]);
    let jobs = [submit(), submit()];
    cluster.wait_for(|cluster| jobs.iter().all(|job| !cluster.printed(*job).is_empty()));
    let mut gpus = jobs.map(|job| cluster.printed(job));
    gpus.sort();
    assert_eq!(gpus, ["0,1\n", "2,3\n"], "jobs of one node have GPUs of their own");

    // The controller saves its state every five seconds.
    sleep(Duration::from_secs(6));
    cluster.kill_controller();
    cluster.start_controller();
    cluster.wait_for(|cluster| cluster.state(jobs[0]) == "RUNNING");
    cluster.kill_node("gn0");
    cluster.start_node("gn0");
    assert_eq!(cluster.state(jobs[1]), "RUNNING");
}

#[test]
fn a_job_asks_for_shards_and_a_failed_job_comes_back_with_more() {
    let cluster = need!(Cluster::start(&Options::default()));
    let job = cluster.sbatch(["--gres=shard:10", "--wrap", "echo $SLURM_RESTART_COUNT/$SLURM_SHARDS_ON_NODE; sleep 60"]);
    cluster.wait_for(|cluster| cluster.printed(job).contains("/10"));
    let scontrol = |words: &[&str]| {
        let output = cluster.output("scontrol", words);
        assert!(output.status.success(), "{words:?}: {output:?}");
    };
    let id = job.to_string();
    scontrol(&["requeuehold", &id]);
    // Until the job has ended, Slurm sets its start to a later time.
    cluster.wait_for(|cluster| cluster.state(job) == "PENDING");
    scontrol(&["update", "job", &id, "gres=shard:20"]);
    scontrol(&["update", "job", &id, "starttime=now"]);
    scontrol(&["release", &id]);
    cluster.wait_for(|cluster| cluster.printed(job).contains("1/20"));
}

#[test]
fn all_daemons_end_with_the_cluster() {
    let cluster = need!(Cluster::start(&Options::default()));
    let pid = cluster.folder().join("pid");
    let script = format!("setsid sh -c 'echo $$ > {}; exec sleep 600' & sleep 600", pid.display());
    cluster.sbatch(["--wrap", &script]);
    cluster.wait_for(|_| fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    let process = Path::new("/proc").join(fs::read_to_string(&pid).unwrap().trim());
    let folder = cluster.folder().to_owned();
    assert!(process.exists());
    drop(cluster);
    assert!(!folder.exists());
    let still_runs = fs::read_to_string(process.join("stat")).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(!still_runs, "a process of a job is left");
}

#[test]
fn all_daemons_end_with_a_killed_test() {
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("folder");
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--ignored", "--exact", "starts_a_cluster_and_waits"]).env("NAMED", &named).stdout(Stdio::null());
    let mut test = test.spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while !named.exists() && test.try_wait().unwrap().is_none() && Instant::now() < end {
        sleep(Duration::from_millis(20));
    }
    test.kill().unwrap();
    test.wait().unwrap();
    let Ok(cluster) = fs::read_to_string(&named) else {
        need!(carma_testing::program("slurmctld"));
        panic!("the test did not start a cluster");
    };
    while Path::new(&cluster).exists() {
        assert!(Instant::now() < end, "{cluster} is left");
        sleep(Duration::from_millis(20));
    }
    let left = Command::new("pgrep").args(["-f", &cluster]).output().unwrap();
    assert!(left.stdout.is_empty(), "processes are left: {}", String::from_utf8_lossy(&left.stdout));
}

#[test]
#[ignore = "part of another test"]
fn starts_a_cluster_and_waits() {
    let cluster = need!(Cluster::start(&Options::default()));
    let named = std::env::var_os("NAMED").unwrap();
    // Renamed, so that it is never there in part.
    let part = Path::new(&named).with_extension("part");
    fs::write(&part, cluster.folder().display().to_string()).unwrap();
    fs::rename(part, named).unwrap();
    sleep(Duration::from_secs(60));
}

#[test]
fn control_groups_keep_jobs_from_the_gpus_of_others() {
    let cluster = need!(Cluster::start(&Options { control_groups: true, ..Options::default() }));
    let job = cluster.sbatch(["--gres=gpu:1", "--wrap", "grep -c slurm_gn /proc/self/cgroup; echo ready; exec sleep 600"]);
    cluster.wait_for(|cluster| cluster.printed(job).contains("ready"));
    assert!(!cluster.printed(job).starts_with('0'), "{}", cluster.printed(job));
}
