//! Limits that the kernel enforces on jobs.

use std::fs;
use std::process::Command;

use carma_core::MiB;
use carma_manager::attempt::{Exit, HostLimits, Order};
use carma_manager::supervise::{Enforced, enforceable};
use carma_testing::{Missing, need, root};

use super::{ended, launch, shell};

/// That this machine enforces a limit, and the tests may set it.
fn enforced(limit: impl Fn(Enforced) -> bool) -> Result<(), Missing> {
    root()?;
    if limit(enforceable()) { Ok(()) } else { Err(Missing::ControlGroups) }
}

fn limited(script: &str, limits: HostLimits) -> Order {
    Order { limits, ..shell(1, script) }
}

#[test]
fn a_job_that_exceeds_its_host_memory_is_killed_and_the_kill_is_counted() {
    need!(enforced(|enforced| enforced.memory));
    let state = tempfile::tempdir().unwrap();
    let limits = HostLimits { memory: Some(MiB(64)), ..HostLimits::default() };
    // tail keeps the last line of its input, which never ends.
    let folder = launch(&state, limited("exec tail /dev/zero", limits));
    let ended = ended(&folder);
    assert_eq!(ended.exit, Exit::Signal(9));
    assert!(ended.oom_kills.is_some_and(|kills| kills >= 1) && ended.at_memory_limit, "{ended:?}");
}

#[test]
fn a_job_within_its_limits_is_not_affected() {
    need!(enforced(|enforced| enforced.memory && enforced.processes));
    let state = tempfile::tempdir().unwrap();
    let limits = HostLimits { memory: Some(MiB(64)), cpus: Some(1), processes: Some(20), gpus: Some(vec![0]) };
    let folder = launch(&state, limited("true | cat; : > /dev/null", limits));
    let ended = ended(&folder);
    assert_eq!((ended.exit, ended.oom_kills), (Exit::Code(0), Some(0)));
}

#[test]
fn a_fork_bomb_stops_at_the_limit_of_processes() {
    need!(enforced(|enforced| enforced.processes));
    let state = tempfile::tempdir().unwrap();
    let limits = HostLimits { processes: Some(20), ..HostLimits::default() };
    let folder = launch(&state, limited("for i in $(seq 40); do sleep 60 & done; exit 0", limits));
    let exit = ended(&folder).exit;
    let errors = fs::read_to_string(folder.errors()).unwrap();
    assert!(exit != Exit::Code(0) && errors.to_lowercase().contains("fork"), "{exit:?} {errors}");
}

#[test]
fn a_job_gets_no_more_than_its_cores() {
    need!(enforced(|enforced| enforced.cpus));
    let state = tempfile::tempdir().unwrap();
    let limits = HostLimits { cpus: Some(1), ..HostLimits::default() };
    // Three busy loops for a second; then the time that they had, in hundredths of a second.
    let script = "for i in 1 2 3; do timeout 1 sh -c 'while :; do :; done' & done; wait; cut -d' ' -f16,17 /proc/self/stat; times";
    let folder = launch(&state, limited(script, limits));
    assert_eq!(ended(&folder).exit, Exit::Code(0));
    let printed = fs::read_to_string(folder.output()).unwrap();
    // The last line of `times` is the time of all children: minutes and seconds of the user and of the system.
    let children = printed.lines().last().unwrap();
    let seconds = |time: &str| {
        let (minutes, seconds) = time.split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.trim_end_matches('s').parse::<f64>().unwrap()
    };
    let used: f64 = children.split_whitespace().map(seconds).sum();
    assert!(used < 1.5, "{used} s of a core in about a second: {printed}");
}

#[test]
fn gpus_of_other_jobs_cannot_be_opened() {
    need!(enforced(|enforced| enforced.gpus));
    let state = tempfile::tempdir().unwrap();
    for minor in ["0", "1", "255"] {
        let file = state.path().join(format!("nvidia{minor}"));
        assert!(Command::new("mknod").arg(file).args(["c", "195", minor]).status().unwrap().success());
    }
    let folder = state.path().display();
    let script = format!("for minor in 0 1 255; do cat {folder}/nvidia$minor 2>&1 | sed 's/.*: //'; done");
    let folder = launch(&state, limited(&script, HostLimits { gpus: Some(vec![1]), ..HostLimits::default() }));
    ended(&folder);
    let printed = fs::read_to_string(folder.output()).unwrap();
    // Without a driver, a permitted device does not exist.
    assert_eq!(printed.lines().collect::<Vec<_>>(), ["Operation not permitted", "No such device or address", "No such device or address"]);
}
