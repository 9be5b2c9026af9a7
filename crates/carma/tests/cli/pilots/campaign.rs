//! Managers, agents, pilots, supervisors and daemons of Slurm are killed at random moments under load, for as long as `make kill-slurm` says.

mod checks;
mod load;
mod strikes;

use std::fs;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use carma_manager::client::{Address, Client};
use carma_testing::need;
use carma_testing::slurm::Options;
use fastrand::Rng;

use self::checks::{check_jobs, free_gpus, left_processes};
use self::load::Load;
use self::strikes::Strikes;
use super::lab::Lab;

/// After the last kill, all jobs end within this time.
const END: Duration = Duration::from_secs(300);

/// A number from the environment.
pub(super) fn number<T: FromStr>(variable: &str, otherwise: T) -> T {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
        Err(_) => otherwise,
    }
}

#[test]
#[ignore = "takes long: make kill-slurm"]
fn after_many_random_kills_in_a_cluster_every_job_has_ended_once_and_nothing_is_left() {
    let (kills, seed): (usize, u64) = (number("CARMA_KILLS", 200), number("CARMA_SEED", 1));
    let mut lab = need!(Lab::with(&Options::of(3, 4)));
    // Folders of agents, apart from those of other tests.
    let local = lab.cluster.folder().join("local");
    fs::create_dir(&local).unwrap();
    add_pool(&lab);
    let load = Load::new(&lab);
    let mut strikes = Strikes::new(local, Rng::with_seed(seed));
    let ends = AtomicBool::new(false);
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| load.submit_until(&ends, seed));
        while strikes.count() < kills {
            strikes.strike(&mut lab, begin);
        }
        ends.store(true, Ordering::Relaxed);
    });
    eprintln!("{} kills in {:.0} s; waiting for all jobs", strikes.count(), begin.elapsed().as_secs_f64());
    strikes.settle();
    let mut client = client(&lab);
    let since = Instant::now();
    loop {
        strikes.resume_pool(&lab);
        let jobs = client.status().unwrap().jobs;
        if jobs.running + jobs.waiting + jobs.held == 0 {
            break;
        }
        assert!(since.elapsed() < END, "{} jobs wait and {} run\n{}", jobs.waiting, jobs.running, lab.report());
        thread::sleep(Duration::from_millis(500));
    }
    // Counts change a moment before they are stored.
    let mut details = crate::manager::crash::all_jobs(&mut client);
    lab.until("all ends are stored", || {
        details = crate::manager::crash::all_jobs(&mut client);
        details.iter().all(|detail| detail.outcome().is_some())
    });
    lab.text(&["pool", "remove", "gpu"]);
    lab.until("no pilot and no server is left", || {
        lab.cluster.squeue(["-t", "PENDING,RUNNING,COMPLETING", "-o", "%j"]).is_empty() && lab.servers().is_empty()
    });
    lab.until("the pool is gone", || lab.json(&["pool", "list"]).as_array().is_some_and(Vec::is_empty));
    lab.until("no agent is left", || lab.agents().is_empty());
    lab.until(&format!("no process is left of {:?}", left_processes(&lab)), || left_processes(&lab).is_empty());
    assert!(free_gpus(&lab), "GPUs are in use");
    eprintln!("seed {seed}: {strikes}");
    eprintln!("{}", check_jobs(&load.into_asked(), &details, strikes.struck(), &lab));
}

/// A manager without tokens, on its socket.
fn client(lab: &Lab) -> Client {
    Client::at(Address::Socket(lab.state().join("carma.sock"))).unwrap()
}

fn add_pool(lab: &Lab) {
    let folder = lab.cluster.folder().display();
    let setup = format!("export CARMA_EMU={folder}/emu-$SLURMD_NODENAME TMPDIR={folder}/local");
    let pool = ["pool", "add", "slurm", "gpu", "--gpus", "2", "--mem", "1GiB", "--max", "3", "--backlog", "3"];
    // A minute of Slurm's time limit would add ends that are not kills.
    lab.text(&[&pool[..], &["--time", "2h", "--patience", "1s", "--idle", "30s", "--setup", &setup]].concat());
}
